//! Read-only files behind one trait, so engines do not know where a file comes from.
//!
//! An engine gets a `&dyn Vfs` and paths; the caller decides whether the files are in a directory ([`Disk`]), in
//! memory ([`Memory`]), in a chart archive or in a git tree object. Paths are absolute inside the file system
//! (`/apps/x.yaml`), UTF-8, and cleaned by [`clean`] and [`resolve`] without access to the file system. [`Frozen`]
//! remembers the names of a tree; a [`Lineage`] says where successive versions of a tree differ; an [`Overlay`] is a
//! tree with one file replaced.
//!
//! This crate knows nothing about YAML, charts or git.

#![warn(missing_docs)]

mod disk;
mod frozen;
mod lineage;
mod memory;
mod overlay;
mod path;

use camino::{Utf8Path, Utf8PathBuf};

pub use disk::Disk;
pub use frozen::Frozen;
pub use lineage::{Lineage, Stamp};
pub use memory::Memory;
pub use overlay::Overlay;
pub use path::{clean, relative, resolve};

/// The largest file that is read: far above any manifest, far below what would hurt.
pub const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// What a path leads to, symbolic links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The last part of the path.
    pub name: String,
    /// Whether the entry itself is a symbolic link.
    pub is_symlink: bool,
    /// Whether it leads to a directory.
    pub is_directory: bool,
}

/// Why a file or directory could not be had.
#[derive(Debug, thiserror::Error)]
pub enum VfsError {
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    NotFound(Utf8PathBuf),
    /// A file was asked for and a directory is there.
    #[error("`{0}` is a directory")]
    IsDirectory(Utf8PathBuf),
    /// A directory was asked for and a file is there.
    #[error("`{0}` is not a directory")]
    NotDirectory(Utf8PathBuf),
    /// A pipe, a device or a socket: reading it may never end.
    #[error("`{0}` is not a regular file")]
    Special(Utf8PathBuf),
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error("`{0}` is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge(Utf8PathBuf),
    /// A symbolic link leads out of the root, or in circles.
    #[error("`{0}` is a symbolic link that leads out of the tree or in circles")]
    BadLink(Utf8PathBuf),
    /// The name of the file or directory is not UTF-8; it is listed with `�` for what is not text.
    #[error("the name of `{0}` is not UTF-8")]
    NotUtf8(Utf8PathBuf),
    /// The operating system said no.
    #[error("cannot read `{path}`")]
    Io {
        /// The path asked for.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
}

impl VfsError {
    /// Returns the error with another path in place of its own.
    #[must_use]
    pub fn with_path(self, change: impl FnOnce(Utf8PathBuf) -> Utf8PathBuf) -> Self {
        match self {
            Self::NotFound(path) => Self::NotFound(change(path)),
            Self::IsDirectory(path) => Self::IsDirectory(change(path)),
            Self::NotDirectory(path) => Self::NotDirectory(change(path)),
            Self::Special(path) => Self::Special(change(path)),
            Self::TooLarge(path) => Self::TooLarge(change(path)),
            Self::BadLink(path) => Self::BadLink(change(path)),
            Self::NotUtf8(path) => Self::NotUtf8(change(path)),
            Self::Io { path, source } => Self::Io {
                path: change(path),
                source,
            },
        }
    }
}

/// A read-only tree of files.
pub trait Vfs: Send + Sync {
    /// Reads a whole file.
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError>;

    /// Reads a whole file into memory that was used before, in place of what it held.
    fn read_into(&self, path: &Utf8Path, buffer: &mut Vec<u8>) -> Result<(), VfsError> {
        *buffer = self.read(path)?;
        Ok(())
    }

    /// Lists a directory, sorted by name.
    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError>;

    /// Says what a path leads to, `None` when nothing is there.
    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError>;

    /// Follows every symbolic link of an existing path.
    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError>;

    /// Names what lies at and below a path, where that is known without reading it.
    fn stamp(&self, _path: &Utf8Path) -> Option<Stamp> {
        None
    }

    /// Whether the path is a regular file.
    fn is_file(&self, path: &Utf8Path) -> bool {
        matches!(self.kind(path), Ok(Some(FileKind::File)))
    }

    /// Whether the path is a directory.
    fn is_directory(&self, path: &Utf8Path) -> bool {
        matches!(self.kind(path), Ok(Some(FileKind::Directory)))
    }
}
