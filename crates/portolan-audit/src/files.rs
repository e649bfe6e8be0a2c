//! Files, directories and charts, checked on all cores.
//!
//! ```text
//! paths ──walk──▶ sorted list of files and charts ──workers──▶ findings in the order of the list
//! ```
//!
//! One file per worker is in memory at a time. Nothing is left out silently: what cannot be read is a finding, and so is
//! a file whose check panics.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use portolan_yaml::Position;

use crate::chart;
use crate::checker::{Checker, Site};
use crate::finding::Finding;
use crate::manifest::{Checked, unreadable};

/// The largest file that is read.
pub(crate) const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// How deep directories may lie in each other.
pub(crate) const MAX_DEPTH: usize = 128;

/// What a scan of files gave.
#[derive(Debug, Clone, Default)]
pub struct Scanned {
    /// What was found, by file and line.
    pub findings: Vec<Finding>,
    /// How many files were read.
    pub files: usize,
    /// How many objects were checked.
    pub objects: usize,
    /// How many charts were rendered.
    pub charts: usize,
}

/// Something to check.
enum Item {
    File(PathBuf),
    Chart(PathBuf),
    /// Could not even be listed.
    Lost(PathBuf, String),
}

impl Item {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Chart(path) | Self::Lost(path, _) => path,
        }
    }
}

/// Checks files, and directories with everything below them.
pub fn scan(checker: &Checker, paths: &[PathBuf]) -> Scanned {
    let mut walk = Walk::default();
    for path in paths {
        walk.add(path);
    }
    check_items(&walk.items, |item| check_item(checker, item))
}

/// Checks the items on all cores; the findings are in the order of the items.
fn check_items(items: &[Item], check: impl Fn(&Item) -> Part + Sync) -> Scanned {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut parts: Vec<(usize, Part)> = std::thread::scope(|scope| {
        let work = || {
            let mut parts = Vec::new();
            while let Some((index, item)) = take(&next, items) {
                let part = check_or_report(&check, item);
                // Most files have nothing to tell but their counts.
                match parts.last_mut() {
                    Some((_, last)) if part.checked.findings.is_empty() => Part::count(last, &part),
                    _ => parts.push((index, part)),
                }
            }
            parts
        };
        let threads: Vec<_> = (0..workers.min(items.len().max(1)))
            .map(|_| scope.spawn(work))
            .collect();
        threads.into_iter().flat_map(joined).collect()
    });
    parts.sort_by_key(|(index, _)| *index);
    let mut scanned = Scanned::default();
    for (_, part) in parts {
        scanned.files += part.files;
        scanned.charts += part.charts;
        scanned.objects += part.checked.objects;
        scanned.findings.extend(part.checked.findings);
    }
    scanned
}

/// What a worker found. Its checks are guarded one by one, so a panic here is a defect of this file: it goes on to the
/// caller, because the findings of the worker are lost.
fn joined<T>(worker: std::thread::ScopedJoinHandle<'_, T>) -> T {
    worker
        .join()
        .unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// Checks an item; a panic is a finding of that item and touches no other.
fn check_or_report(check: &impl Fn(&Item) -> Part, item: &Item) -> Part {
    // A check only reads what it shares with others, so a panic leaves nothing half-changed behind.
    panic::catch_unwind(AssertUnwindSafe(|| check(item))).unwrap_or_else(|panic| Part {
        checked: lost(item.path(), &not_checked(panic.as_ref())),
        ..Part::default()
    })
}

/// Why an item was not checked, in the words of the panic.
fn not_checked(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given");
    format!("was not checked because of a defect in portolan: {text}")
}

fn take<'a>(next: &AtomicUsize, items: &'a [Item]) -> Option<(usize, &'a Item)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, items.get(index)?))
}

/// What one item gave.
#[derive(Default)]
struct Part {
    checked: Checked,
    files: usize,
    charts: usize,
}

impl Part {
    fn count(total: &mut Self, part: &Self) {
        total.files += part.files;
        total.charts += part.charts;
        total.checked.objects += part.checked.objects;
    }
}

fn check_item(checker: &Checker, item: &Item) -> Part {
    match item {
        Item::File(path) => Part {
            checked: check_file(checker, path),
            files: 1,
            charts: 0,
        },
        Item::Chart(path) => Part {
            checked: chart::check(checker, path),
            files: 0,
            charts: 1,
        },
        Item::Lost(path, reason) => Part {
            checked: lost(path, reason),
            ..Part::default()
        },
    }
}

fn check_file(checker: &Checker, path: &Path) -> Checked {
    match read(path) {
        Ok(bytes) => checker.check_text(&bytes, &site(path)),
        Err(reason) => lost(path, &reason),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let text = |error: io::Error| format!("cannot be read: {error}");
    let found = fs::metadata(path).map_err(text)?;
    if !found.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if found.len() > MAX_FILE_BYTES {
        return Err(format!("is larger than {MAX_FILE_BYTES} bytes"));
    }
    fs::read(path).map_err(text)
}

fn site(path: &Path) -> Site {
    Site {
        file: Some(path.to_string_lossy().into_owned()),
        ..Site::default()
    }
}

fn lost(path: &Path, reason: &str) -> Checked {
    Checked {
        findings: vec![unreadable(&site(path), Position::default(), reason)],
        objects: 0,
    }
}

// === Walking ===

#[derive(Default)]
struct Walk {
    items: Vec<Item>,
    /// Directories that symbolic links led to; each is walked once.
    linked: HashSet<PathBuf>,
}

impl Walk {
    fn add(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => self.directory(path, 0),
            Ok(_) if is_archive(path) => self.items.push(Item::Chart(path.to_owned())),
            Ok(_) => self.items.push(Item::File(path.to_owned())),
            Err(error) => self.lost(path, &error),
        }
    }

    fn directory(&mut self, path: &Path, depth: usize) {
        if path.join("Chart.yaml").is_file() {
            self.items.push(Item::Chart(path.to_owned()));
            return;
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(_) if depth >= MAX_DEPTH => {
                let reason = format!("lies more than {MAX_DEPTH} directories deep");
                return self.items.push(Item::Lost(path.to_owned(), reason));
            }
            Ok(entries) => entries,
            Err(error) => return self.lost(path, &error),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            self.entry(&entry, depth);
        }
    }

    fn entry(&mut self, entry: &fs::DirEntry, depth: usize) {
        // What `directory.join(name)` would say, without a leading `./`.
        let path = entry.path();
        let path = path.strip_prefix(".").unwrap_or(&path).to_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                if entry.file_name() != ".git" {
                    self.directory(&path, depth + 1);
                }
            }
            Ok(kind) if kind.is_symlink() => self.link(&path, depth),
            Ok(_) if is_manifest(&path) => self.items.push(Item::File(path)),
            Ok(_) => {}
            Err(error) => self.lost(&path, &error),
        }
    }

    fn link(&mut self, path: &Path, depth: usize) {
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => {
                let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                if self.linked.insert(real) {
                    self.directory(path, depth + 1);
                }
            }
            Ok(_) if is_manifest(path) => self.items.push(Item::File(path.to_owned())),
            // A dangling link matters only where a manifest was meant.
            Err(error) if is_manifest(path) => self.lost(path, &error),
            Ok(_) | Err(_) => {}
        }
    }

    fn lost(&mut self, path: &Path, error: &io::Error) {
        self.items.push(Item::Lost(
            path.to_owned(),
            format!("cannot be read: {error}"),
        ));
    }
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(extension))
    })
}

fn is_archive(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".tgz") || name.ends_with(".tar.gz")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn scan_directory(files: &[(&str, &str)]) -> (tempfile::TempDir, Scanned) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let checker = Checker::new(Target::kubernetes("1.32".parse().unwrap()));
        let scanned = scan(&checker, &[directory.path().to_owned()]);
        (directory, scanned)
    }

    fn told(directory: &tempfile::TempDir, scanned: &Scanned) -> Vec<String> {
        let root = format!("{}/", directory.path().display());
        let line =
            |finding: &Finding| format!("{} {}", finding.place().replace(&root, ""), finding.level);
        scanned.findings.iter().map(line).collect()
    }

    #[test]
    fn everything_below_a_directory_is_checked_in_order() {
        let (directory, scanned) = scan_directory(&[
            ("b/job.yaml", "apiVersion: batch/v1beta1\nkind: CronJob\n"),
            (
                "a/web.yml",
                "apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n",
            ),
            (
                "c.json",
                "{\"apiVersion\": \"extensions/v1beta1\", \"kind\": \"Ingress\"}",
            ),
            ("notes.txt", "apiVersion: batch/v1beta1\nkind: CronJob\n"),
            ("broken.yaml", "a: [\n"),
        ]);
        assert_eq!(
            told(&directory, &scanned),
            [
                "a/web.yml:4 removed",
                "b/job.yaml:1 removed",
                "broken.yaml:2 unparsed",
                "c.json:1 removed"
            ]
        );
        assert_eq!((scanned.files, scanned.objects), (4, 4));
    }

    #[test]
    fn a_chart_is_rendered_and_its_findings_point_to_the_template() {
        let template = "{{- if .Values.enabled }}\n# comment\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: {{ .Release.Name }}\n{{- end }}\n";
        let (directory, scanned) = scan_directory(&[
            (
                "web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.2.0\n",
            ),
            ("web/values.yaml", "enabled: true\n"),
            ("web/templates/pdb.yaml", template),
            (
                "bad/Chart.yaml",
                "apiVersion: v2\nname: bad\nversion: 1.0.0\n",
            ),
            (
                "bad/templates/a.yaml",
                "{{ required \"say it\" .Values.it }}\n",
            ),
        ]);
        assert_eq!(
            told(&directory, &scanned),
            [
                "bad/Chart.yaml unparsed",
                "web/templates/pdb.yaml:3 removed"
            ]
        );
        assert_eq!(scanned.charts, 2);
        assert!(
            scanned.findings[0].message.contains("say it"),
            "{}",
            scanned.findings[0].message
        );
    }

    #[test]
    fn a_check_that_panics_is_a_finding_and_loses_no_other() {
        let items: Vec<Item> = (0..40)
            .map(|number| Item::File(PathBuf::from(format!("{number:02}.yaml"))))
            .collect();
        let check = |item: &Item| {
            let name = item.path().to_string_lossy();
            assert!(name != "17.yaml", "index out of bounds");
            Part {
                checked: lost(item.path(), "seen"),
                files: 1,
                charts: 0,
            }
        };
        let scanned = check_items(&items, check);
        assert_eq!((scanned.findings.len(), scanned.files), (40, 39));
        for (index, finding) in scanned.findings.iter().enumerate() {
            assert_eq!(finding.place(), format!("{index:02}.yaml"));
            let expected = match index {
                17 => "was not checked because of a defect in portolan: index out of bounds",
                _ => "seen",
            };
            assert_eq!(finding.message, expected);
            assert_eq!(finding.level, crate::Level::Unparsed);
        }
    }

    #[test]
    fn what_is_not_there_is_told() {
        let scanned = scan(&Checker::default(), &[PathBuf::from("/no/such/file.yaml")]);
        assert_eq!(scanned.findings[0].level, crate::Level::Unparsed);
    }
}
