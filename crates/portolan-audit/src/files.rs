//! Files, directories and charts, checked as units of a run.
//!
//! ```text
//! paths ──walk──▶ sorted list of files and charts ──batches──▶ units ──▶ findings in the order of the list
//! ```
//!
//! One file per unit is in memory at a time. Nothing is left out silently: a file that cannot be read is a finding,
//! and so is a file whose check panics and every file of a unit that failed or was cancelled.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portolan_engine::{Failure, Key, Outcome, Report, Run, Unit};
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

/// How many files one unit checks: enough that the unit itself costs nothing beside them.
const BATCH: usize = 32;

/// What a run is to check, for its report.
pub struct ScanPlan {
    batches: Vec<Batch>,
}

/// The items of one unit.
struct Batch {
    key: Key<Part>,
    items: Arc<[Item]>,
}

/// Adds units to a run that check files, and directories with everything below them.
pub fn plan_scan(run: &Run, checker: &Arc<Checker>, paths: &[PathBuf]) -> ScanPlan {
    let mut walk = Walk::default();
    for path in paths {
        walk.add(path);
    }
    let checker = Arc::clone(checker);
    plan_items(run, walk.items, move |item| check_item(&checker, item))
}

/// Adds units to a run that check the items.
fn plan_items(
    run: &Run,
    items: Vec<Item>,
    check: impl Fn(&Item) -> Part + Send + Sync + 'static,
) -> ScanPlan {
    let check = Arc::new(check);
    let mut batches = Vec::new();
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let items: Arc<[Item]> = items.by_ref().take(BATCH).collect();
        let key = Key::from(format!("Files/{}", batches.len() + 1));
        let (batch, check) = (Arc::clone(&items), Arc::clone(&check));
        run.add(
            &key,
            &[],
            Unit::cpu(move |cx| {
                let mut whole = Part::default();
                for item in batch.iter() {
                    if cx.is_cancelled() {
                        return Err(Failure::message("called off"));
                    }
                    whole.add(check_or_report(check.as_ref(), item));
                }
                Ok(whole)
            }),
        );
        batches.push(Batch { key, items });
    }
    ScanPlan { batches }
}

// === impl ScanPlan ===

impl ScanPlan {
    /// What the run found, in the order of the files. Every file of a unit that did not end well is a finding.
    pub fn scanned(&self, report: &Report) -> Scanned {
        let mut scanned = Scanned::default();
        for Batch { key, items } in &self.batches {
            if let Some(part) = report.output(key) {
                scanned.files += part.files;
                scanned.charts += part.charts;
                scanned.objects += part.checked.objects;
                scanned
                    .findings
                    .extend(part.checked.findings.iter().cloned());
                continue;
            }
            let reason = match report.get(&key.untyped()).map(|unit| &unit.outcome) {
                Some(Outcome::Failed(failure)) => format!("{NOT_CHECKED}: {failure}"),
                _ => "was not checked: the run ended before".to_owned(),
            };
            let unchecked = items.iter().map(|item| lost(item.path(), &reason));
            scanned
                .findings
                .extend(unchecked.flat_map(|lost| lost.findings));
        }
        scanned
    }
}

/// Checks an item; a panic is a finding of that item and touches no other.
fn check_or_report(check: &impl Fn(&Item) -> Part, item: &Item) -> Part {
    // A check only reads what it shares with others, so a panic leaves nothing half-changed behind.
    panic::catch_unwind(AssertUnwindSafe(|| check(item))).unwrap_or_else(|panic| Part {
        checked: lost(item.path(), &not_checked(panic.as_ref())),
        ..Part::default()
    })
}

/// What is said of an item whose check failed by itself.
const NOT_CHECKED: &str = "was not checked because of a defect in portolan";

/// Why an item was not checked, in the words of the panic.
fn not_checked(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given");
    format!("{NOT_CHECKED}: {text}")
}

/// What one item gave.
#[derive(Default)]
struct Part {
    checked: Checked,
    files: usize,
    charts: usize,
}

impl Part {
    fn add(&mut self, part: Self) {
        self.files += part.files;
        self.charts += part.charts;
        self.checked.objects += part.checked.objects;
        self.checked.findings.extend(part.checked.findings);
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
    use portolan_engine::{Journal, JournalOptions, Limits};

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
        let scanned = scan(checker, &[directory.path().to_owned()]);
        (directory, scanned)
    }

    fn scan(checker: Checker, paths: &[PathBuf]) -> Scanned {
        finish(|run| plan_scan(run, &Arc::new(checker), paths))
    }

    fn finish(plan: impl FnOnce(&Run) -> ScanPlan) -> Scanned {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let run = Run::new(
            Limits::default(),
            Journal::in_memory(JournalOptions::default()),
        );
        let plan = plan(&run);
        plan.scanned(&runtime.block_on(run.finish()))
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
        let items: Vec<Item> = (0..100)
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
        let scanned = finish(|run| plan_items(run, items, check));
        assert_eq!((scanned.findings.len(), scanned.files), (100, 99));
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

    /// A run that is called off leaves nothing out silently.
    #[test]
    fn files_of_a_unit_that_did_not_end_well_are_findings() {
        let items = (0..70).map(|number| Item::File(PathBuf::from(format!("{number:02}.yaml"))));
        let items: Vec<Item> = items.collect();
        let scanned = finish(|run| {
            let plan = plan_items(run, items, |_| Part::default());
            run.canceller().cancel_unit(&Key::from("Files/2"));
            plan
        });
        let first = scanned.findings.first().map(Finding::place);
        assert_eq!(
            (scanned.findings.len(), first.as_deref()),
            (32, Some("32.yaml"))
        );
        let message = &scanned.findings[0].message;
        assert_eq!(message, "was not checked: the run ended before");
    }

    #[test]
    fn what_is_not_there_is_told() {
        let scanned = scan(Checker::default(), &[PathBuf::from("/no/such/file.yaml")]);
        assert_eq!(scanned.findings[0].level, crate::Level::Unparsed);
    }
}
