//! Where the files of an image come from.
//!
//! `portolan_vfs::Vfs` gives whole files, follows links and hides modes. That is right for manifests, but not for a
//! tree of many gigabytes whose links themselves are copied. So an image is read through this trait;
//! `portolan-layout` implements it for a directory, [`crate::Memory`] for tests.

use std::io::{self, Read};

/// A tree of files that an image is made of. Paths are relative, with `/`, and `""` is the root.
pub trait Source: Sync {
    /// Lists a directory in any order. Links are listed as links.
    fn list(&self, directory: &str) -> io::Result<Vec<Listed>>;

    /// Opens a regular file; a link anywhere in the path is an error.
    fn open(&self, path: &str) -> io::Result<Box<dyn OpenFile>>;

    /// The names of a file's extended attributes that an image could lose: `user.*` and `security.capability`.
    fn attribute_names(&self, path: &str) -> io::Result<Vec<String>>;

    /// The value of a file's extended attribute, `None` if it has none of that name.
    fn attribute(&self, path: &str, name: &str) -> io::Result<Option<Vec<u8>>>;
}

/// A file that is read from its beginning to its end.
pub trait OpenFile: Read {
    /// Says which file this is and in which state.
    fn stamp(&self) -> io::Result<Stamp>;
}

/// One name in a directory, links not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The last part of the path; it need not be UTF-8.
    pub name: Vec<u8>,
    /// What it is.
    pub kind: ListedKind,
    /// The permission bits, setuid, setgid and sticky among them.
    pub mode: u32,
    /// Which file it is and in which state.
    pub stamp: Stamp,
}

/// What a name in a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and what it says; that need not be UTF-8.
    Link(Vec<u8>),
    /// Something that no image can hold: `device`, `FIFO` or `socket`.
    Special(&'static str),
}

/// Which file it is and in which state: equal stamps mean equal content, unless both are very young.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The device that the file lies on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its length in bytes.
    pub size: u64,
    /// When its content last changed, in nanoseconds since 1970.
    pub modified: i64,
    /// When anything of it last changed, in nanoseconds since 1970.
    pub changed: i64,
}
