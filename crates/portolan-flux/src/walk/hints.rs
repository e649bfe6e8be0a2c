//! Where in a tree an object is probably written, so one object can be found without building everything.
//!
//! Every manifest is searched for `name:` and `kind:` lines, which costs far less than reading it as YAML. A
//! Kustomization whose directory leads to such a file probably emits the object. If the guess is wrong, more is built
//! than needed, with the same result.

use std::collections::{BTreeSet, HashMap};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::{Dialect, Node};

use crate::kustomization::generate;

/// How deep directories are searched.
const MAX_DEPTH: usize = 64;

/// Names and kinds in the manifests of a tree.
pub(crate) struct Hints {
    by_name: HashMap<String, Vec<usize>>,
    files: Vec<Manifest>,
}

struct Manifest {
    path: Utf8PathBuf,
    kinds: BTreeSet<String>,
}

/// Which files a directory is built from.
#[derive(Default)]
pub(crate) struct Reach {
    files: BTreeSet<Utf8PathBuf>,
    visited: BTreeSet<Utf8PathBuf>,
}

impl Hints {
    /// Searches a tree.
    pub(crate) fn search(files: &dyn Vfs) -> Self {
        let mut hints = Self {
            by_name: HashMap::new(),
            files: Vec::new(),
        };
        for_each_manifest(files, Utf8Path::new("/"), 0, &mut |path| {
            hints.add(files, path);
        });
        hints
    }

    fn add(&mut self, files: &dyn Vfs, path: Utf8PathBuf) {
        let Ok(bytes) = files.read(&path) else { return };
        let text = String::from_utf8_lossy(&bytes);
        let mut kinds = BTreeSet::new();
        let mut names = BTreeSet::new();
        for line in text.lines() {
            let line = line.trim_start_matches([' ', '-']);
            if let Some(kind) = line.strip_prefix("kind:") {
                kinds.insert(scalar(kind));
            } else if let Some(name) = line.strip_prefix("name:") {
                names.insert(scalar(name));
            } else if line.starts_with("configMapGenerator:") {
                kinds.insert("ConfigMap".to_owned());
            } else if line.starts_with("secretGenerator:") {
                kinds.insert("Secret".to_owned());
            }
        }
        for name in names {
            self.by_name.entry(name).or_default().push(self.files.len());
        }
        self.files.push(Manifest { path, kinds });
    }

    /// The files that probably hold an object of this kind and name.
    pub(crate) fn files(&self, kind: &str, name: &str) -> impl Iterator<Item = &Utf8Path> {
        let with_name = self.by_name.get(name).into_iter().flatten();
        with_name
            .filter_map(|at| self.files.get(*at))
            .filter(move |manifest| manifest.kinds.contains(kind))
            .map(|manifest| manifest.path.as_path())
    }
}

/// The text of a plain value on one line, without an anchor, quotes or a comment.
fn scalar(text: &str) -> String {
    let text = text.split(" #").next().unwrap_or(text).trim();
    let text = match text.strip_prefix('&') {
        Some(anchored) => anchored.split_once(' ').map_or("", |(_, value)| value),
        None => text,
    };
    text.trim().trim_matches(['"', '\'']).to_owned()
}

impl Reach {
    /// Follows a directory's kustomization files.
    pub(crate) fn of(files: &dyn Vfs, directory: &Utf8Path) -> Self {
        let mut reach = Self::default();
        reach.directory(files, directory, 0);
        reach
    }

    /// Whether a file is one of those that are built.
    pub(crate) fn covers(&self, path: &Utf8Path) -> bool {
        self.files.contains(path)
    }

    /// The files of a tree that its kustomization files apply as patches.
    pub(crate) fn patch_files(files: &dyn Vfs) -> BTreeSet<Utf8PathBuf> {
        let mut patches = Self::default();
        for_each_manifest(files, Utf8Path::new("/"), 0, &mut |path| {
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
                return;
            };
            if generate::FILE_NAMES.contains(&name) {
                let bytes = files.read(&path).unwrap_or_default();
                let documents = portolan_yaml::parse_bytes(&bytes, Dialect::Helm);
                patches.patches(directory, &documents.unwrap_or_default());
            }
        });
        patches.files
    }

    /// The kustomization files on the way.
    pub(crate) fn kustomization_files(&self) -> impl Iterator<Item = &Utf8Path> {
        let files = self.files.iter().map(Utf8PathBuf::as_path);
        files.filter(|path| {
            path.file_name()
                .is_some_and(|name| generate::FILE_NAMES.contains(&name))
        })
    }

    fn directory(&mut self, files: &dyn Vfs, directory: &Utf8Path, depth: usize) {
        if depth > MAX_DEPTH || !self.visited.insert(directory.to_owned()) {
            return;
        }
        match generate::existing(files, directory) {
            Some(file) => self.kustomization(files, directory, file, depth),
            None => self.scan(files, directory, depth),
        }
    }

    /// A directory without a kustomization file: all manifests, and directories that have one.
    fn scan(&mut self, files: &dyn Vfs, directory: &Utf8Path, depth: usize) {
        for entry in files.list(directory).unwrap_or_default() {
            let path = directory.join(&entry.name);
            if entry.is_directory {
                self.directory(files, &path, depth + 1);
            } else if generate::is_manifest(&path) {
                self.files.insert(path);
            }
        }
    }

    /// Whatever a kustomization file names that exists.
    fn kustomization(
        &mut self,
        files: &dyn Vfs,
        directory: &Utf8Path,
        file: Utf8PathBuf,
        depth: usize,
    ) {
        let bytes = files.read(&file).unwrap_or_default();
        self.files.insert(file);
        let documents = portolan_yaml::parse_bytes(&bytes, Dialect::Helm).unwrap_or_default();
        let fields = [
            "resources",
            "components",
            "bases",
            "generators",
            "transformers",
        ];
        self.patches(directory, &documents);
        for field in fields {
            let entries = documents
                .iter()
                .filter_map(|document| document.get(field).and_then(Node::as_list))
                .flatten();
            for written in entries.filter_map(Node::as_str) {
                let path = resolve(directory, written);
                if files.is_directory(&path) {
                    self.directory(files, &path, depth + 1);
                } else {
                    self.files.insert(path);
                }
            }
        }
    }

    /// Files that patches are written in.
    fn patches(&mut self, directory: &Utf8Path, documents: &[Node]) {
        for document in documents {
            let entries = |field: &str| document.get(field).and_then(Node::as_list);
            let patches = entries("patches").into_iter().flatten();
            let named = patches.filter_map(|patch| patch.get("path"));
            let older = entries("patchesStrategicMerge").into_iter().flatten();
            for written in named.chain(older).filter_map(Node::as_str) {
                // An older patch may be the text itself.
                if !written.contains('\n') {
                    self.files.insert(resolve(directory, written));
                }
            }
        }
    }
}

pub(crate) fn for_each_manifest(
    files: &dyn Vfs,
    directory: &Utf8Path,
    depth: usize,
    visit: &mut impl FnMut(Utf8PathBuf),
) {
    if depth > MAX_DEPTH {
        return;
    }
    for entry in files.list(directory).unwrap_or_default() {
        let path = directory.join(&entry.name);
        if entry.is_directory {
            for_each_manifest(files, &path, depth + 1, visit);
        } else if generate::is_manifest(&path) || entry.name == "Kustomization" {
            visit(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;

    fn tree() -> Memory {
        [
            (
                "/apps/kustomization.yaml",
                "resources: [../base/web, db.yaml]\n",
            ),
            ("/apps/db.yaml", "kind: Kustomization\nmetadata: {}\n"),
            ("/apps/unused.yaml", "kind: Secret\n"),
            (
                "/base/web/release.yaml",
                "kind: HelmRelease\nmetadata:\n  name: &app \"web\" # it\n",
            ),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn an_object_is_found_by_its_lines() {
        let hints = Hints::search(&tree());
        let files: Vec<_> = hints.files("HelmRelease", "web").collect();
        assert_eq!(files, ["/base/web/release.yaml"]);
        assert_eq!(hints.files("Secret", "web").count(), 0);
    }

    #[test]
    fn a_directory_reaches_what_its_kustomization_file_names() {
        let reach = Reach::of(&tree(), Utf8Path::new("/apps"));
        assert!(reach.covers(Utf8Path::new("/base/web/release.yaml")));
        assert!(reach.covers(Utf8Path::new("/apps/db.yaml")));
        assert!(!reach.covers(Utf8Path::new("/apps/unused.yaml")));
    }
}
