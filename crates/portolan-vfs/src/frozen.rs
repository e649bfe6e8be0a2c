//! A tree that is read once: directories are listed when they are first needed, and the lists are kept.
//!
//! A render asks about the same paths many times: whether they exist, what they are, where links lead. The listings
//! answer all of that, so only reading a file goes to the tree below.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use crate::{DirEntry, FileKind, Lineage, Stamp, Vfs, VfsError, clean};

/// A tree whose names do not change while it is used.
pub struct Frozen<V> {
    files: V,
    lineage: Option<Lineage>,
    /// Listings by directory, of those that no link leads to; nothing for what cannot be listed.
    listings: Mutex<HashMap<Box<str>, Option<Arc<Listing>>>>,
}

/// What a directory holds, sorted by name, in one text: a repository has tens of thousands of small directories.
struct Listing {
    names: Box<str>,
    entries: Box<[Listed]>,
}

/// An entry of a listing: its name ends here and begins where the one before ends.
struct Listed {
    end: u32,
    is_symlink: bool,
    is_directory: bool,
}

/// What is known of a path from listings alone.
enum Known {
    Nothing,
    File,
    Directory(Arc<Listing>),
    /// A link is on the way, or a directory that cannot be listed: the tree below has to say.
    Unclear,
}

impl<V: Vfs> Frozen<V> {
    /// Freezes a tree.
    pub fn new(files: V) -> Self {
        Self {
            files,
            lineage: None,
            listings: Mutex::default(),
        }
    }

    /// Says which trees it follows from.
    #[must_use]
    pub fn with_lineage(mut self, lineage: Lineage) -> Self {
        self.lineage = Some(lineage);
        self
    }

    fn listing(&self, directory: &str) -> Option<Arc<Listing>> {
        if let Some(known) = self.listings().get(directory) {
            return known.clone();
        }
        let listed = self.files.list(Utf8Path::new(directory)).ok();
        let listed = listed
            .and_then(|entries| Listing::new(&entries))
            .map(Arc::new);
        self.listings().insert(Box::from(directory), listed.clone());
        listed
    }

    fn listings(&self) -> MutexGuard<'_, HashMap<Box<str>, Option<Arc<Listing>>>> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a clean path from the nearest directory above it that was listed.
    fn find(&self, path: &Utf8Path) -> Known {
        let path = path.as_str();
        let root = || Some((0, self.listing("/")?));
        let Some((mut end, mut listing)) = self.nearest(path).or_else(root) else {
            return Known::Unclear;
        };
        while let Some(rest) = path.get(end + 1..).filter(|rest| !rest.is_empty()) {
            let name = rest.split_once('/').map_or(rest, |(name, _)| name);
            let Some(entry) = listing.find(name) else {
                return Known::Nothing;
            };
            if entry.is_symlink {
                return Known::Unclear;
            }
            end += 1 + name.len();
            if !entry.is_directory {
                let is_last = end == path.len();
                return if is_last { Known::File } else { Known::Nothing };
            }
            match self.listing(path.get(..end).unwrap_or(path)) {
                Some(below) => listing = below,
                None => return Known::Unclear,
            }
        }
        Known::Directory(listing)
    }

    /// The longest beginning of a path that is a listed directory: where it ends, and what is in it.
    fn nearest(&self, path: &str) -> Option<(usize, Arc<Listing>)> {
        let listings = self.listings();
        let mut end = path.len();
        while end > 0 {
            let directory = path.get(..end)?;
            if let Some(Some(listing)) = listings.get(directory) {
                return Some((end, Arc::clone(listing)));
            }
            end = directory.rfind('/')?;
        }
        None
    }
}

impl Listing {
    /// Takes entries over, which are sorted; `None` for more names than any directory has.
    fn new(entries: &[DirEntry]) -> Option<Self> {
        let mut names = String::with_capacity(entries.iter().map(|entry| entry.name.len()).sum());
        let mut listed = Vec::with_capacity(entries.len());
        for entry in entries {
            names.push_str(&entry.name);
            listed.push(Listed {
                end: u32::try_from(names.len()).ok()?,
                is_symlink: entry.is_symlink,
                is_directory: entry.is_directory,
            });
        }
        Some(Self {
            names: names.into_boxed_str(),
            entries: listed.into_boxed_slice(),
        })
    }

    fn name(&self, at: usize) -> &str {
        let end = |at: usize| self.entries.get(at).map_or(0, |entry| entry.end as usize);
        let begin = at.checked_sub(1).map_or(0, end);
        self.names.get(begin..end(at)).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Option<&Listed> {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.name(middle).cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.entries.get(middle),
            }
        }
        None
    }

    fn to_entries(&self) -> Vec<DirEntry> {
        let entries = self.entries.iter().enumerate();
        let entries = entries.map(|(at, entry)| DirEntry {
            name: self.name(at).to_owned(),
            is_symlink: entry.is_symlink,
            is_directory: entry.is_directory,
        });
        entries.collect()
    }
}

impl<V: Vfs> Vfs for Frozen<V> {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let path = clean(path);
        match self.find(&path) {
            Known::Nothing => Err(VfsError::NotFound(path)),
            Known::Directory(_) => Err(VfsError::IsDirectory(path)),
            Known::File | Known::Unclear => self.files.read(&path),
        }
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let directory = clean(directory);
        match self.find(&directory) {
            Known::Nothing => Err(VfsError::NotFound(directory)),
            Known::File => Err(VfsError::NotDirectory(directory)),
            Known::Directory(listing) => Ok(listing.to_entries()),
            Known::Unclear => self.files.list(&directory),
        }
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        let path = clean(path);
        match self.find(&path) {
            Known::Nothing => Ok(None),
            Known::File => Ok(Some(FileKind::File)),
            Known::Directory(_) => Ok(Some(FileKind::Directory)),
            Known::Unclear => self.files.kind(&path),
        }
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let path = clean(path);
        match self.find(&path) {
            Known::Nothing => Err(VfsError::NotFound(path)),
            Known::File | Known::Directory(_) => Ok(path),
            Known::Unclear => self.files.canonicalize(&path),
        }
    }

    fn stamp(&self, path: &Utf8Path) -> Option<Stamp> {
        let path = clean(path);
        self.lineage.as_ref().map(|lineage| lineage.stamp(&path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Disk, Memory};

    fn tree() -> Frozen<Memory> {
        let files = [("/a/b.yaml", "1"), ("/a/c/d.yaml", "2"), ("/e", "3")];
        Frozen::new(files.into_iter().collect())
    }

    #[test]
    fn it_answers_as_the_tree_below_does() {
        let (frozen, below) = (tree(), tree().files);
        for path in [
            "/",
            "/a",
            "/a/b.yaml",
            "/a/c/d.yaml",
            "/a/x",
            "/e",
            "/e/f",
            "/x/y",
        ] {
            let path = Utf8Path::new(path);
            assert_eq!(
                frozen.kind(path).unwrap(),
                below.kind(path).unwrap(),
                "{path}"
            );
            assert_eq!(frozen.read(path).ok(), below.read(path).ok(), "{path}");
            assert_eq!(frozen.list(path).ok(), below.list(path).ok(), "{path}");
            let (one, other) = (frozen.canonicalize(path), below.canonicalize(path));
            assert_eq!(one.ok(), other.ok(), "{path}");
        }
    }

    #[test]
    fn every_name_of_a_large_directory_is_found() {
        let names: Vec<String> = (0..300).map(|number| format!("/d/{number:03}ü")).collect();
        let files = names.iter().map(|name| (name.as_str(), "x"));
        let frozen = Frozen::new(files.collect::<Memory>());
        assert!(
            names
                .iter()
                .all(|name| frozen.is_file(name.as_str().into()))
        );
        assert_eq!(
            frozen.list("/d".into()).unwrap(),
            frozen.files.list("/d".into()).unwrap()
        );
        for name in ["/d/000", "/d/0", "/d/zzz", "/d/150ü2"] {
            assert!(!frozen.is_file(name.into()), "{name}");
        }
    }

    #[test]
    fn names_that_come_later_are_not_seen() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::write(root.join("a"), "1").unwrap();
        let frozen = Frozen::new(Disk::open(root).unwrap());
        assert!(frozen.is_file("/a".into()));
        fs::write(root.join("b"), "1").unwrap();
        assert!(!frozen.is_file("/b".into()));
    }

    #[test]
    fn links_are_followed_by_the_tree_below() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/a"), "x").unwrap();
        std::os::unix::fs::symlink("real", root.join("alias")).unwrap();
        let frozen = Frozen::new(Disk::open(root).unwrap());
        assert_eq!(frozen.read("/alias/a".into()).unwrap(), b"x");
        assert_eq!(frozen.canonicalize("/alias/a".into()).unwrap(), "/real/a");
        assert!(frozen.is_directory("/alias".into()));
    }
}
