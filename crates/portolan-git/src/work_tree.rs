//! Where the files of a work tree may differ from a commit, found without reading them.
//!
//! ```text
//! commit's tree ◀──ids──▶ index ◀──size, times, inode──▶ files on disk
//! ```
//!
//! The index has the id of every tracked file, and the size, times and inode that the file had when git last compared
//! it. A file is read only if these differ.

use std::collections::{BTreeSet, HashSet};

use camino::{Utf8Path, Utf8PathBuf};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _, ByteVec as _};
use gix::index::entry::{Stage, Stat, stat};
use gix::index::fs::Metadata;
use gix::index::{Entry, State, extension};
use portolan_vfs::Vfs;

use crate::{CommitId, GitError, Repository};

/// How deep directories are searched for files that git does not track.
const MAX_DEPTH: usize = 128;

/// How the index is compared with the disk. Git writes nanoseconds, and without them every file of a fresh clone would
/// look as young as the index itself, which proves nothing.
const STAT: stat::Options = stat::Options {
    trust_ctime: true,
    check_stat: true,
    use_nsec: true,
    use_stdev: false,
};

impl Repository {
    /// Every path below a directory of the work tree at or below which its files may differ from a commit's.
    ///
    /// `files` are those of the directory; paths are absolute in it. Nothing when there is no index to ask, or none that
    /// lists every file.
    pub fn touched_since(
        &self,
        commit: CommitId,
        directory: &Utf8Path,
        files: &dyn Vfs,
    ) -> Result<Option<BTreeSet<Utf8PathBuf>>, GitError> {
        let repository = self.local();
        let Ok(index) = repository.open_index() else {
            return Ok(None);
        };
        let Some(work_tree) = self.work_tree() else {
            return Ok(None);
        };
        if index.is_sparse() {
            return Ok(None);
        }
        let mut comparison = Comparison {
            repository: self,
            prefix: prefix(directory),
            index: &index,
            root: work_tree.join(directory),
            files,
            touched: BTreeSet::new(),
        };
        let tree = self.tree(commit)?.object_id();
        comparison.compare_with_tree(tree)?;
        comparison.compare_with_disk();
        comparison.find_untracked();
        Ok(Some(comparison.touched))
    }
}

/// A directory of the work tree as the index writes it: empty, or with a slash at its end.
fn prefix(directory: &Utf8Path) -> BString {
    let mut prefix = BString::from(directory.as_str());
    if !prefix.is_empty() {
        prefix.push_byte(b'/');
    }
    prefix
}

/// An index between a commit and a disk.
struct Comparison<'a> {
    repository: &'a Repository,
    prefix: BString,
    index: &'a State,
    root: Utf8PathBuf,
    files: &'a dyn Vfs,
    touched: BTreeSet<Utf8PathBuf>,
}

/// A directory that is in the commit, in the index, or in both.
struct Pending<'a> {
    /// With a slash at its end.
    path: BString,
    tree: Option<ObjectId>,
    cached: Option<&'a extension::Tree>,
}

impl Comparison<'_> {
    /// Compares ids; directories whose tree the index knows to be equal are not looked into.
    fn compare_with_tree(&mut self, root: ObjectId) -> Result<(), GitError> {
        let mut queue = vec![Pending {
            path: BString::default(),
            tree: Some(root),
            cached: self.index.tree(),
        }];
        while let Some(pending) = queue.pop() {
            if !pending.is_equal() {
                self.compare_directory(&pending, &mut queue)?;
            }
        }
        Ok(())
    }

    fn compare_directory<'a>(
        &mut self,
        pending: &Pending<'a>,
        queue: &mut Vec<Pending<'a>>,
    ) -> Result<(), GitError> {
        let mut committed = self.repository.children(pending.tree)?;
        let mut directory: Option<BString> = None;
        let index = self.index;
        for entry in index.prefixed_entries(pending.path.as_ref()).unwrap_or(&[]) {
            let path = entry.path(index);
            let rest = path.strip_prefix(pending.path.as_slice()).unwrap_or(path);
            let Some(end) = rest.find_byte(b'/') else {
                let known = committed.remove(rest.as_bstr());
                let is_same = known.is_some_and(|known| known.is(entry));
                if !is_same {
                    self.touch(path);
                }
                continue;
            };
            let name = rest.get(..end).unwrap_or(rest).as_bstr();
            if directory.as_ref().is_some_and(|last| last == name) {
                continue;
            }
            directory = Some(name.to_owned());
            let mut below = pending.path.clone();
            below.push_str(name);
            below.push_byte(b'/');
            queue.push(Pending {
                path: below,
                tree: committed.remove(name).and_then(Child::into_tree),
                cached: pending.cached_child(name),
            });
        }
        for name in committed.into_keys() {
            let mut gone = pending.path.clone();
            gone.push_str(&name);
            self.touch(gone.as_ref());
        }
        Ok(())
    }

    fn compare_with_disk(&mut self) {
        let index = self.index;
        for entry in index.prefixed_entries(self.prefix.as_ref()).unwrap_or(&[]) {
            if !entry.mode.is_submodule() && !self.is_as_indexed(entry) {
                self.touch(entry.path(index));
            }
        }
    }

    /// Whether the file on disk has the content that the index names.
    fn is_as_indexed(&self, entry: &Entry) -> bool {
        if entry.stage() != Stage::Unconflicted {
            return false;
        }
        let Some(inside) = self.inside(entry.path(self.index)) else {
            return true;
        };
        let on_disk = self.root.join(inside.strip_prefix("/").unwrap_or(&inside));
        let Ok(metadata) = Metadata::from_path_no_follow(on_disk.as_std_path()) else {
            return false;
        };
        if entry
            .mode
            .change_to_match_fs(&metadata, true, false)
            .is_some()
        {
            return false;
        }
        let looks_alike =
            Stat::from_fs(&metadata).is_ok_and(|stat| stat.matches(&entry.stat, STAT));
        looks_alike && !entry.stat.is_racy(self.index.timestamp(), STAT)
            || !metadata.is_symlink() && self.has_content(&inside, entry.id)
    }

    fn has_content(&self, inside: &Utf8Path, id: ObjectId) -> bool {
        let Ok(bytes) = self.files.read(inside) else {
            return false;
        };
        gix::objs::compute_hash(id.kind(), gix::objs::Kind::Blob, &bytes)
            .is_ok_and(|read| read == id)
    }

    /// Files on disk that the index does not have.
    fn find_untracked(&mut self) {
        let tracked = Tracked::by(self.index);
        let mut queue = vec![(Utf8PathBuf::from("/"), 0)];
        while let Some((directory, depth)) = queue.pop() {
            let listed = self.files.list(&directory);
            let Some(entries) = listed.ok().filter(|_| depth < MAX_DEPTH) else {
                // What cannot be looked at proves nothing.
                self.touched.insert(directory);
                continue;
            };
            for entry in entries.iter().filter(|entry| entry.name != ".git") {
                let path = directory.join(&entry.name);
                let mut name = self.prefix.clone();
                name.push_str(path.strip_prefix("/").unwrap_or(&path).as_str());
                let is_directory = entry.is_directory && !entry.is_symlink;
                if is_directory && tracked.directories.contains(name.as_bstr()) {
                    queue.push((path, depth + 1));
                } else if !tracked.files.contains(name.as_bstr()) {
                    self.touched.insert(path);
                }
            }
        }
    }

    fn touch(&mut self, path: &BStr) {
        if let Some(inside) = self.inside(path) {
            self.touched.insert(inside);
        }
    }

    /// A path of the index inside of the directory; nothing if it is not below it. A name that is not UTF-8 has no
    /// path, so the directory it lies in stands for it.
    fn inside(&self, path: &BStr) -> Option<Utf8PathBuf> {
        let mut below = path.strip_prefix(self.prefix.as_slice())?;
        loop {
            if let Ok(text) = std::str::from_utf8(below) {
                return Some(Utf8Path::new("/").join(text));
            }
            below = below.get(..below.rfind_byte(b'/').unwrap_or(0))?;
        }
    }
}

/// What an index has, to be asked for one by one: searching it each time would compare long paths over and over.
struct Tracked<'a> {
    files: HashSet<&'a BStr>,
    directories: HashSet<&'a BStr>,
}

impl<'a> Tracked<'a> {
    fn by(index: &'a State) -> Self {
        let mut tracked = Self {
            files: HashSet::with_capacity(index.entries().len()),
            directories: HashSet::new(),
        };
        for entry in index.entries() {
            let path = entry.path(index);
            tracked.files.insert(path);
            if entry.mode.is_submodule() {
                tracked.directories.insert(path);
            }
            tracked.add_directories_of(path);
        }
        tracked
    }

    fn add_directories_of(&mut self, path: &'a BStr) {
        let mut above = path;
        while let Some(end) = above.rfind_byte(b'/') {
            above = above.get(..end).unwrap_or_default().as_bstr();
            if !self.directories.insert(above) {
                return;
            }
        }
    }
}

impl Pending<'_> {
    /// Whether the index knows that it has exactly this tree.
    fn is_equal(&self) -> bool {
        let cached = self.cached.filter(|cached| cached.num_entries.is_some());
        cached.is_some_and(|cached| Some(cached.id) == self.tree)
    }
}

impl<'a> Pending<'a> {
    fn cached_child(&self, name: &BStr) -> Option<&'a extension::Tree> {
        let mut children = self.cached?.children.iter();
        children.find(|child| child.name.as_slice() == name.as_bytes())
    }
}

/// What a commit's tree says about a name.
pub(crate) struct Child {
    mode: gix::objs::tree::EntryMode,
    id: ObjectId,
}

impl Child {
    pub(crate) fn new(mode: gix::objs::tree::EntryMode, id: ObjectId) -> Self {
        Self { mode, id }
    }

    /// Whether the index has the same under this name.
    fn is(&self, entry: &Entry) -> bool {
        entry.id == self.id && entry.mode.to_tree_entry_mode() == Some(self.mode)
    }

    fn into_tree(self) -> Option<ObjectId> {
        self.mode.is_tree().then_some(self.id)
    }
}
