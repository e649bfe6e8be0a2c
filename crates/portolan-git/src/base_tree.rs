//! The files of the old side; unchanged files are read from the new side.
//!
//! Reading a commit means unpacking it object by object. If git says that the new side has the same file, that file
//! is used, and whatever is made from it is made once for both sides.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{DirEntry, FileKind, Lineage, Stamp, Vfs, VfsError, clean};

use crate::Tree;

/// A commit's files.
pub struct BaseTree {
    commit: Tree,
    lineage: Lineage,
    new: Arc<dyn Vfs>,
}

impl BaseTree {
    /// `new` must follow from the lineage with everything touched that differs.
    pub fn new(commit: Tree, lineage: Lineage, new: Arc<dyn Vfs>) -> Self {
        Self {
            commit,
            lineage,
            new,
        }
    }

    /// Where a path is to be looked up.
    fn side(&self, path: &Utf8Path) -> &dyn Vfs {
        let is_untouched = self.new.stamp(path) == Some(self.lineage.stamp(path));
        if is_untouched && !self.is_behind_link(path) {
            self.new.as_ref()
        } else {
            &self.commit
        }
    }

    /// Whether a link is on the way: what it leads to may have been touched elsewhere.
    fn is_behind_link(&self, path: &Utf8Path) -> bool {
        let mut above = path.ancestors();
        let nearest = above.find_map(|above| Some((above, self.new.canonicalize(above).ok()?)));
        nearest.is_none_or(|(above, real)| above != real)
    }
}

impl Vfs for BaseTree {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let path = clean(path);
        self.side(&path).read(&path)
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let directory = clean(directory);
        self.side(&directory).list(&directory)
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        let path = clean(path);
        self.side(&path).kind(&path)
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let path = clean(path);
        self.side(&path).canonicalize(&path)
    }

    fn stamp(&self, path: &Utf8Path) -> Option<Stamp> {
        Some(self.lineage.stamp(&clean(path)))
    }
}
