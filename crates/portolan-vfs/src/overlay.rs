//! A tree of files with one of them replaced.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{DirEntry, FileKind, Vfs, VfsError};

/// Reads as the tree below, but for one file.
pub struct Overlay {
    /// The tree below.
    pub files: Arc<dyn Vfs>,
    /// The file that is replaced.
    pub path: Utf8PathBuf,
    /// What it holds instead.
    pub content: Vec<u8>,
}

impl Vfs for Overlay {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        if path == self.path {
            Ok(self.content.clone())
        } else {
            self.files.read(path)
        }
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        self.files.list(directory)
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        self.files.kind(path)
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        self.files.canonicalize(path)
    }
}
