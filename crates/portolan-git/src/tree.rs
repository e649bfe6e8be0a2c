//! The files of a commit as a `Vfs`, read from the object database without a checkout.
//!
//! Symbolic links are followed inside the tree; a link that leads out is refused. A submodule is an empty directory,
//! as in a clone without submodules (and in Flux by default).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use gix::ObjectId;
use gix::object::tree::EntryKind;
use portolan_vfs::{DirEntry, FileKind, MAX_FILE_BYTES, Vfs, VfsError, clean};

/// The most links that one path may lead through, as in Linux.
const MAX_LINKS: usize = 40;
/// The longest text of a link that is followed.
const MAX_LINK_BYTES: u64 = 4096;

/// The files of one commit.
#[derive(Clone)]
pub struct Tree {
    repository: gix::ThreadSafeRepository,
    root: ObjectId,
    /// Directories read so far: every lookup starts at the root, so the upper ones are read over and over.
    directories: Arc<Mutex<HashMap<ObjectId, Arc<Directory>>>>,
}

#[derive(Default)]
struct Directory {
    entries: Vec<Entry>,
}

struct Entry {
    name: String,
    /// Whether the name is not UTF-8, so that it only stands for the real one.
    is_foreign: bool,
    kind: EntryKind,
    id: ObjectId,
}

/// Where a path leads.
struct Found {
    path: Utf8PathBuf,
    node: Node,
}

enum Node {
    Directory(ObjectId),
    Submodule,
    File(ObjectId),
}

// === impl Tree ===

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({})", self.root)
    }
}

impl Tree {
    pub(crate) fn new(repository: gix::ThreadSafeRepository, root: ObjectId) -> Self {
        Self {
            repository,
            root,
            directories: Arc::default(),
        }
    }

    /// The tree object's id: equal ids mean equal files.
    pub fn id(&self) -> String {
        self.root.to_string()
    }

    pub(crate) fn object_id(&self) -> ObjectId {
        self.root
    }

    /// The files below a directory of the tree; nothing when there is no such directory.
    pub fn subtree(&self, directory: &Utf8Path) -> Result<Option<Self>, VfsError> {
        let found = self.find(directory)?;
        Ok(found.and_then(|found| match found.node {
            Node::Directory(id) => Some(Self::new(self.repository.clone(), id)),
            Node::Submodule | Node::File(_) => None,
        }))
    }

    /// Walks a path from the root, following links.
    fn find(&self, path: &Utf8Path) -> Result<Option<Found>, VfsError> {
        let mut walk = Walk::new(path);
        while let Some(name) = walk.pending.pop() {
            if name == ".." {
                walk.leave()?;
                continue;
            }
            let directory = self.directory(walk.here(self.root), path)?;
            let Some(entry) = directory.find(&name) else {
                return Ok(None);
            };
            if entry.is_foreign {
                return Err(VfsError::NotUtf8(path.to_owned()));
            }
            match entry.kind {
                EntryKind::Tree => walk.entered.push((name, entry.id)),
                EntryKind::Link => walk.follow(&self.link(entry.id, path)?)?,
                EntryKind::Commit => return Ok(walk.end(name, Node::Submodule)),
                EntryKind::Blob | EntryKind::BlobExecutable => {
                    return Ok(walk.end(name, Node::File(entry.id)));
                }
            }
        }
        let node = Node::Directory(walk.here(self.root));
        Ok(Some(Found {
            path: walk.path(),
            node,
        }))
    }

    fn found(&self, path: &Utf8Path) -> Result<Found, VfsError> {
        let found = self.find(path)?;
        found.ok_or_else(|| VfsError::NotFound(path.to_owned()))
    }

    fn directory(&self, id: ObjectId, path: &Utf8Path) -> Result<Arc<Directory>, VfsError> {
        if let Some(known) = self.known().get(&id) {
            return Ok(Arc::clone(known));
        }
        let repository = self.repository.to_thread_local();
        let tree = repository
            .find_tree(id)
            .map_err(|source| io_error(path, source))?;
        let tree = tree.decode().map_err(|source| io_error(path, source))?;
        let mut directory = Directory::default();
        for entry in &tree.entries {
            let name = String::from_utf8_lossy(entry.filename);
            directory.entries.push(Entry {
                is_foreign: name.as_bytes() != entry.filename,
                name: name.into_owned(),
                kind: entry.mode.kind(),
                id: entry.oid.to_owned(),
            });
        }
        // Git sorts directories as if their names ended in a slash.
        directory.entries.sort_by(|a, b| a.name.cmp(&b.name));
        let directory = Arc::new(directory);
        self.known().insert(id, Arc::clone(&directory));
        Ok(directory)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectId, Arc<Directory>>> {
        self.directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self, id: ObjectId, path: &Utf8Path) -> Result<String, VfsError> {
        let target = self.blob(id, MAX_LINK_BYTES, path)?;
        String::from_utf8(target).map_err(|_| VfsError::BadLink(path.to_owned()))
    }

    fn blob(&self, id: ObjectId, limit: u64, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let repository = self.repository.to_thread_local();
        let header = repository
            .find_header(id)
            .map_err(|source| io_error(path, source))?;
        if header.size() > limit {
            return Err(VfsError::TooLarge(path.to_owned()));
        }
        let mut blob = repository
            .find_blob(id)
            .map_err(|source| io_error(path, source))?;
        Ok(blob.take_data())
    }

    /// Whether an entry leads to a directory, as `list` must say.
    fn is_directory_entry(&self, directory: &Utf8Path, entry: &Entry) -> bool {
        match entry.kind {
            EntryKind::Tree | EntryKind::Commit => true,
            EntryKind::Link => self.is_directory(&directory.join(&entry.name)),
            EntryKind::Blob | EntryKind::BlobExecutable => false,
        }
    }
}

impl Vfs for Tree {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        match self.found(path)?.node {
            Node::File(id) => self.blob(id, MAX_FILE_BYTES, path),
            Node::Directory(_) | Node::Submodule => Err(VfsError::IsDirectory(path.to_owned())),
        }
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let found = self.found(directory)?;
        let id = match found.node {
            Node::Directory(id) => id,
            Node::Submodule => return Ok(Vec::new()),
            Node::File(_) => return Err(VfsError::NotDirectory(directory.to_owned())),
        };
        let content = self.directory(id, directory)?;
        let entry = |entry: &Entry| DirEntry {
            name: entry.name.clone(),
            is_symlink: entry.kind == EntryKind::Link,
            is_directory: self.is_directory_entry(&found.path, entry),
        };
        Ok(content.entries.iter().map(entry).collect())
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        let found = self.find(path)?;
        Ok(found.map(|found| match found.node {
            Node::File(_) => FileKind::File,
            Node::Directory(_) | Node::Submodule => FileKind::Directory,
        }))
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        Ok(self.found(path)?.path)
    }
}

// === impl Directory ===

impl Directory {
    fn find(&self, name: &str) -> Option<&Entry> {
        let at = self
            .entries
            .binary_search_by(|entry| entry.name.as_str().cmp(name));
        at.ok().and_then(|at| self.entries.get(at))
    }
}

/// A path on its way: what has been entered, and what is still to be walked (last first).
struct Walk {
    asked: Utf8PathBuf,
    entered: Vec<(String, ObjectId)>,
    pending: Vec<String>,
    links: usize,
}

impl Walk {
    fn new(path: &Utf8Path) -> Self {
        let cleaned = clean(path);
        let mut walk = Self {
            asked: path.to_owned(),
            entered: Vec::new(),
            pending: Vec::new(),
            links: 0,
        };
        walk.push(&cleaned);
        walk
    }

    fn push(&mut self, path: &Utf8Path) {
        let parts = path.components().filter_map(|component| match component {
            Utf8Component::Normal(name) => Some(name.to_owned()),
            Utf8Component::ParentDir => Some("..".to_owned()),
            _ => None,
        });
        let parts: Vec<String> = parts.collect();
        self.pending.extend(parts.into_iter().rev());
    }

    fn here(&self, root: ObjectId) -> ObjectId {
        self.entered.last().map_or(root, |(_, id)| *id)
    }

    fn leave(&mut self) -> Result<(), VfsError> {
        let left = self.entered.pop();
        left.map(drop).ok_or_else(|| self.bad_link())
    }

    fn follow(&mut self, target: &str) -> Result<(), VfsError> {
        self.links += 1;
        if self.links > MAX_LINKS || target.is_empty() || target.starts_with('/') {
            return Err(self.bad_link());
        }
        self.push(Utf8Path::new(target));
        Ok(())
    }

    /// Ends at something that is no directory; nothing lies below it.
    fn end(mut self, name: String, node: Node) -> Option<Found> {
        if !self.pending.is_empty() {
            return None;
        }
        self.entered
            .push((name, ObjectId::null(gix::hash::Kind::Sha1)));
        Some(Found {
            path: self.path(),
            node,
        })
    }

    fn path(&self) -> Utf8PathBuf {
        let mut path = Utf8PathBuf::from("/");
        path.extend(self.entered.iter().map(|(name, _)| name));
        path
    }

    fn bad_link(&self) -> VfsError {
        VfsError::BadLink(self.asked.clone())
    }
}

fn io_error(path: &Utf8Path, source: gix::Error) -> VfsError {
    VfsError::Io {
        path: path.to_owned(),
        source: io::Error::other(source),
    }
}
