//! The state of the files of a directory at one moment, and which files differ between two snapshots.
//!
//! A file event only says that something may have happened; a snapshot says what. So nothing depends on how an editor
//! saves, on the order of events, or on every event arriving.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};

/// How deep directories are looked into.
const MAX_DEPTH: usize = 64;

/// Every file below a directory, with what tells that it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot(BTreeMap<Utf8PathBuf, Stamp>);

/// What changes when a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl Snapshot {
    /// Looks at a directory; one that is not there has no files. Git's own files do not count.
    pub(super) fn of(root: &Utf8Path) -> Self {
        let mut files = BTreeMap::new();
        let mut queue = vec![(root.to_owned(), 0)];
        while let Some((directory, depth)) = queue.pop() {
            // A directory may go while we look; what was in it is then gone too.
            let entries = directory.read_dir_utf8().into_iter().flatten();
            for entry in entries.flatten() {
                let path = entry.path().to_owned();
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() {
                    if entry.file_name() != ".git" && depth < MAX_DEPTH {
                        queue.push((path, depth + 1));
                    }
                } else if let Ok(metadata) = fs::metadata(&path) {
                    let stamp = Stamp {
                        modified: metadata.modified().ok(),
                        length: metadata.len(),
                    };
                    let inside = path.strip_prefix(root).unwrap_or(&path).to_owned();
                    files.insert(inside, stamp);
                }
            }
        }
        Self(files)
    }

    /// The files that were written, added or taken away since another snapshot.
    pub(super) fn since(&self, before: &Self) -> Vec<Utf8PathBuf> {
        let written = self
            .0
            .iter()
            .filter(|(path, stamp)| before.0.get(*path) != Some(stamp));
        let gone = before
            .0
            .iter()
            .filter(|(path, _)| !self.0.contains_key(*path));
        let mut paths: Vec<Utf8PathBuf> =
            written.chain(gone).map(|(path, _)| path.clone()).collect();
        paths.sort();
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_written_added_or_taken_away_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        for name in ["kept", "written", "gone"] {
            fs::write(root.join(name), "1").unwrap();
        }
        fs::create_dir(root.join(".git")).unwrap();
        let before = Snapshot::of(root);
        fs::write(root.join("written"), "12").unwrap();
        fs::write(root.join("added"), "1").unwrap();
        fs::write(root.join(".git/index"), "1").unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        let after = Snapshot::of(root);
        assert_eq!(after.since(&before), ["added", "gone", "written"]);
        assert!(after.since(&after).is_empty());
    }

    #[test]
    fn a_directory_that_is_gone_has_no_files() {
        assert_eq!(
            Snapshot::of(Utf8Path::new("/nowhere/at/all")),
            Snapshot::default()
        );
    }
}
