//! A directory that stands for `/`. No path and no link leads out of it, whoever wrote them.
//!
//! ```text
//! "/etc/web/x" ──openat2(RESOLVE_IN_ROOT)──▶ handle of /etc/web ──*at(handle, "x")──▶ looked at, replaced, removed
//! ```
//!
//! The kernel resolves every path with this directory as its root: an absolute link, or one with `..`, ends inside.
//! What is done to the last name is done on the handle of its directory, so a link that appears meanwhile changes
//! nothing.

mod attributes;
mod change;
mod inside;
mod staged;
mod tree;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

pub use attributes::Kept;
pub use staged::{NewFile, StagedFile};

/// A directory that stands for `/`, held open.
#[derive(Debug)]
pub struct Root {
    path: Utf8PathBuf,
    directory: OwnedFd,
    is_machine: bool,
}

/// Why a directory cannot stand for `/`.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// It is the machine's own root directory.
    #[error("`{0}` is the root directory of this machine")]
    Machine(Utf8PathBuf),
    /// It belongs to somebody else, who could change it meanwhile.
    #[error("the directory `{path}` belongs to user {owner}")]
    Owner {
        /// The directory.
        path: Utf8PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
    /// It cannot be opened.
    #[error("cannot open the directory `{path}`: {source}")]
    Open {
        /// The directory.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// What it is.
    pub kind: FileKind,
    /// Its permissions, with setuid, setgid and sticky bits.
    pub mode: u32,
    /// The id of its owner.
    pub uid: u32,
    /// The id of its group.
    pub gid: u32,
    /// How many bytes it has.
    pub size: u64,
    /// How many names it has.
    pub links: u64,
    /// The file system that it is on.
    pub device: u64,
    /// Its number in the file system.
    pub inode: u64,
}

/// What something in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

/// Whether a link at the end of a path is followed. Links before it always are, inside the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// The link leads on.
    Yes,
    /// The link itself is meant.
    No,
}

/// How often a path is resolved again when directories on its way are moved at the same time.
const RESOLVE_TRIES: usize = 32;

/// How many links may follow each other at the end of a path; the kernel's own number.
pub(crate) const MAX_LINKS: usize = 40;

impl Root {
    /// The machine's own root directory.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn machine() -> Result<Self, RootError> {
        Self::open("/".into(), true)
    }

    /// Another directory that stands for `/`.
    ///
    /// # Errors
    /// When it is `/` itself, belongs to another user, or cannot be opened.
    pub fn other(path: &Utf8Path) -> Result<Self, RootError> {
        let failed = |source| RootError::Open {
            path: path.to_owned(),
            source,
        };
        let real = path.canonicalize_utf8().map_err(failed)?;
        let root = Self::open(&real, false)?;
        let found = rustix::fs::fstat(&root.directory).map_err(|error| failed(error.into()))?;
        let machine = std::fs::metadata("/").map_err(failed)?;
        if (found.st_dev, found.st_ino) == (machine.dev(), machine.ino()) {
            return Err(RootError::Machine(path.to_owned()));
        }
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err(RootError::Owner {
                path: path.to_owned(),
                owner: found.st_uid,
            });
        }
        Ok(root)
    }

    fn open(path: &Utf8Path, is_machine: bool) -> Result<Self, RootError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(path.as_std_path(), flags, Mode::empty()).map_err(|error| {
                RootError::Open {
                    path: path.to_owned(),
                    source: error.into(),
                }
            })?;
        Ok(Self {
            path: path.to_owned(),
            directory,
            is_machine,
        })
    }

    /// Where the directory is on the machine.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Whether it is the machine's own root directory.
    pub fn is_machine(&self) -> bool {
        self.is_machine
    }

    /// Where a path below the root is on the machine, for programs that are not confined to the root.
    pub fn machine_path(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.path.join(path.as_str().trim_start_matches('/'))
    }

    /// What is at a path; `None` if there is nothing.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn status(&self, path: &Utf8Path, follow: Follow) -> io::Result<Option<Status>> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        if follow == Follow::No {
            flags |= OFlags::NOFOLLOW;
        }
        match self.resolve(path, flags) {
            Ok(handle) => Ok(Some(Status::of(&rustix::fs::fstat(handle)?))),
            // A file where a directory should be means as well that there is nothing below it.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The content of a regular file; `None` if there is nothing. Links are followed.
    ///
    /// # Errors
    /// When it is no regular file, is larger than the limit, or cannot be read.
    pub fn read(&self, path: &Utf8Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        match self.open_file(path, Follow::Yes)? {
            None => Ok(None),
            Some(file) => read_limited(file, limit).map(Some),
        }
    }

    /// A regular file, open to be read; `None` if there is nothing.
    ///
    /// # Errors
    /// When it is no regular file or cannot be opened.
    pub fn open_file(&self, path: &Utf8Path, follow: Follow) -> io::Result<Option<File>> {
        // Without waiting: a pipe that nobody writes to would be waited for.
        let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if follow == Follow::No {
            flags |= OFlags::NOFOLLOW;
        }
        let handle = match self.resolve(path, flags) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match Status::of(&rustix::fs::fstat(&handle)?).kind {
            FileKind::File => Ok(Some(File::from(handle))),
            FileKind::Directory => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            _ => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// The space of the disk that a file or directory is on: free bytes that everybody may use, and all.
    ///
    /// # Errors
    /// When there is nothing, or the system does not say.
    pub fn disk_space(&self, path: &Utf8Path) -> io::Result<(u64, u64)> {
        let handle = self.resolve(path, OFlags::PATH | OFlags::CLOEXEC)?;
        let found = rustix::fs::fstatvfs(&handle)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok((bytes(found.f_bavail), bytes(found.f_blocks)))
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// When it is no directory, cannot be read, or has a name that is not UTF-8.
    pub fn list(&self, path: &Utf8Path) -> io::Result<Vec<String>> {
        let handle = self.resolve(path, DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(handle)? {
            let entry = entry?;
            let name = entry.file_name().to_str().map_err(|_| {
                let shown = entry.file_name().to_string_lossy();
                io::Error::other(format!("the name `{shown}` in it is not UTF-8"))
            })?;
            if !matches!(name, "." | "..") {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Where a link leads, as it is written; `None` if there is nothing.
    ///
    /// # Errors
    /// When it is no link, or leads to a path that is not UTF-8.
    pub fn read_link(&self, path: &Utf8Path) -> io::Result<Option<String>> {
        let place = match self.place(path) {
            Ok(place) => place,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match rustix::fs::readlinkat(&place.parent, place.name.as_str(), Vec::new()) {
            Ok(target) => target
                .into_string()
                .map(Some)
                .map_err(|_| io::Error::other("it leads to a path that is not UTF-8")),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a path with this directory as its root.
    fn resolve(&self, path: &Utf8Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        for _ in 0..RESOLVE_TRIES {
            let opened = rustix::fs::openat2(
                &self.directory,
                path.as_std_path(),
                flags,
                Mode::empty(),
                ResolveFlags::IN_ROOT,
            );
            match opened {
                Err(Errno::AGAIN | Errno::INTR) => {}
                decided => return decided,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Whether a path is a directory without a link or `..` on the way.
    pub(crate) fn is_plain_directory(&self, path: &Utf8Path) -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
        let is_upwards = path.components().any(|part| part.as_str() == "..");
        !is_upwards
            && rustix::fs::openat2(
                &self.directory,
                path.as_std_path(),
                flags,
                Mode::empty(),
                resolve,
            )
            .is_ok()
    }

    /// The directory of a path, and its last name.
    fn place(&self, path: &Utf8Path) -> Result<Place, Errno> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let parent = path.parent().ok_or(Errno::ISDIR)?;
        Ok(Place {
            parent: self.resolve(parent, DIRECTORY)?,
            name: name.to_owned(),
        })
    }
}

/// How directories are opened whose content is read or changed.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// A name in a directory.
#[derive(Debug)]
struct Place {
    parent: OwnedFd,
    name: String,
}

impl Place {
    fn status(&self) -> Result<Option<Status>, Errno> {
        match rustix::fs::statat(&self.parent, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(Status::of(&found))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the names in the directory survive a power cut; some file systems cannot promise that, and say so.
    fn sync(&self) {
        let _ = rustix::fs::fsync(self.parent.as_fd());
    }
}

impl Status {
    fn of(found: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Link,
            _ => FileKind::Other,
        };
        Self {
            kind,
            mode: found.st_mode & 0o7777,
            uid: found.st_uid,
            gid: found.st_gid,
            size: u64::try_from(found.st_size).unwrap_or_default(),
            links: found.st_nlink,
            device: found.st_dev,
            inode: found.st_ino,
        }
    }
}

/// Reads a file to its end, but no more than the limit.
fn read_limited(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut limited = file.take(limit.saturating_add(1));
    limited.read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        let message = format!("it is larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(content)
}
