//! The lines that were edited between two trees, each with its file as it would be without that edit.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_diff::{Run, align};
use portolan_object::Place;
use portolan_vfs::Vfs;

use crate::experiment::ChangedFile;

/// The most edits that are looked at one by one.
const MAX_EDITS: usize = 64;

/// The most entries of directories that are looked at to find them.
const MAX_ENTRIES: usize = 100_000;

/// The largest file whose lines are compared; larger ones are data.
const MAX_FILE_BYTES: usize = 512 * 1024;

/// Lines that stand in place of others.
pub(super) struct Edit {
    /// The first of them; where lines were only taken out, the one that follows.
    pub(super) place: Place,
    /// How many they are.
    count: u32,
    /// The whole file with these lines as they were.
    reverted: String,
}

impl Edit {
    /// Whether a place is on one of these lines.
    pub(super) fn holds(&self, place: &Place) -> bool {
        let first = self.place.at.line;
        place.file == self.place.file
            && (first..first.saturating_add(self.count)).contains(&place.at.line)
    }

    /// The file with these lines as they were.
    pub(super) fn reverted(&self) -> ChangedFile {
        ChangedFile {
            path: Utf8PathBuf::from(self.place.file.as_str()),
            content: self.reverted.clone().into_bytes(),
        }
    }
}

/// The edits between two trees; none where there are too many to tell them apart.
pub(super) fn edits(old: &dyn Vfs, new: &dyn Vfs) -> Vec<Edit> {
    let mut search = Search {
        old,
        new,
        entries: 0,
        edits: Vec::new(),
    };
    search.directory(Utf8Path::new("/"));
    let Search { entries, edits, .. } = search;
    if entries > MAX_ENTRIES || edits.len() > MAX_EDITS {
        return Vec::new();
    }
    edits
}

struct Search<'a> {
    old: &'a dyn Vfs,
    new: &'a dyn Vfs,
    entries: usize,
    edits: Vec<Edit>,
}

impl Search<'_> {
    fn directory(&mut self, directory: &Utf8Path) {
        for entry in self.new.list(directory).unwrap_or_default() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES || self.edits.len() > MAX_EDITS {
                return;
            }
            let path = directory.join(&entry.name);
            let stamp = self.new.stamp(&path);
            let is_same = stamp.is_some() && stamp == self.old.stamp(&path);
            if is_same || entry.is_symlink || entry.name == ".git" {
                continue;
            }
            if entry.is_directory {
                self.directory(&path);
            } else {
                self.file(&path);
            }
        }
    }

    fn file(&mut self, path: &Utf8Path) {
        let (Some(old), Some(new)) = (read(self.old, path), read(self.new, path)) else {
            return;
        };
        if old != new {
            self.edits.extend(edits_of(path, &old, &new));
        }
    }
}

fn read(files: &dyn Vfs, path: &Utf8Path) -> Option<String> {
    let bytes = files.read(path).ok()?;
    (bytes.len() <= MAX_FILE_BYTES).then_some(())?;
    String::from_utf8(bytes).ok()
}

/// The edits of one file. As many lines in place of as many are edits of single lines.
fn edits_of(path: &Utf8Path, old: &str, new: &str) -> Vec<Edit> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut edits = Vec::new();
    for run in align(&old, &new) {
        let Run::Replaced { old: was, new: is } = run else {
            continue;
        };
        let mut add = |was: std::ops::Range<usize>, is: std::ops::Range<usize>| {
            let parts = [&new[..is.start], &old[was], &new[is.end..]];
            let line = u32::try_from(is.start + 1).unwrap_or(u32::MAX);
            edits.push(Edit {
                place: Place::line(path.as_str(), line),
                count: u32::try_from(is.len()).unwrap_or(u32::MAX),
                reverted: parts.concat().concat(),
            });
        };
        if was.len() == is.len() {
            for (was, is) in was.zip(is) {
                add(was..was + 1, is..is + 1);
            }
        } else {
            add(was, is);
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use portolan_vfs::Memory;

    use super::*;

    #[test]
    fn each_edit_is_taken_back_alone() {
        let tree = |text: &str| -> Memory { [("/a/b.yaml", text)].into_iter().collect() };
        let old = tree("a: 1\nb: 2\nc: 3\n");
        let new = tree("a: 1\nb: 9\nc: 8\nd: 7\n");
        let edits = edits(&old, &new);
        let shown: Vec<_> = edits
            .iter()
            .map(|edit| (edit.place.to_string(), edit.reverted.as_str()))
            .collect();
        assert_eq!(
            shown,
            [("/a/b.yaml:2".to_owned(), "a: 1\nb: 2\nc: 3\n")],
            "lines of another number are one edit"
        );
    }
}
