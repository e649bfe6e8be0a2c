//! A directory whose files go into an image.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_image::{Listed, ListedKind, OpenFile, Source, Stamp};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// The longest list of attribute names and the longest value: what Linux allows.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// A directory that an image is made of. It is held open, and no link in it is followed.
#[derive(Debug)]
pub struct Directory {
    path: Utf8PathBuf,
    directory: OwnedFd,
}

impl Directory {
    /// Opens a directory. The user chose the path: links in it are followed.
    pub fn open(path: &Utf8Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            path: path.to_owned(),
            directory: rustix::fs::open(path.as_std_path(), flags, Mode::empty())?,
        })
    }

    /// Opens what is at a path, by way of directories only.
    fn at(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        // A pipe must not be waited for.
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let path = if path.is_empty() { "." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(&self.directory, path, flags, Mode::empty(), resolve) {
            // Old kernels, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_step(path, flags),
            other => Ok(other?),
        }
    }

    fn step_by_step(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut at = self.directory.try_clone()?;
        for directory in directories.split('/').filter(|name| !name.is_empty()) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            at = rustix::fs::openat(&at, directory, flags, Mode::empty())?;
        }
        Ok(rustix::fs::openat(&at, name, flags, Mode::empty())?)
    }

    fn whole(&self, path: &str) -> Utf8PathBuf {
        self.path.join(path)
    }
}

impl Source for Directory {
    fn list(&self, directory: &str) -> io::Result<Vec<Listed>> {
        let opened = self.at(directory, OFlags::DIRECTORY)?;
        let mut listed = Vec::new();
        for entry in Dir::read_from(&opened)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let found = match rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                // Gone since it was listed: it is not there.
                Err(Errno::NOENT) => continue,
                other => other?,
            };
            let kind = match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile => ListedKind::File,
                FileType::Directory => ListedKind::Directory,
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&opened, name, Vec::new())?;
                    ListedKind::Link(target.into_bytes())
                }
                FileType::Fifo => ListedKind::Special("FIFO"),
                FileType::Socket => ListedKind::Special("socket"),
                _ => ListedKind::Special("device"),
            };
            listed.push(Listed {
                name: name.to_bytes().to_vec(),
                kind,
                mode: found.st_mode & 0o7777,
                stamp: stamp(&found),
            });
        }
        Ok(listed)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        let file = Opened(File::from(self.at(path, OFlags::empty())?));
        let found = rustix::fs::fstat(file.0.as_fd())?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        Ok(Box::new(file))
    }

    fn attribute_names(&self, path: &str) -> io::Result<Vec<String>> {
        let mut buffer = [0_u8; 4096];
        let path = self.whole(path);
        let length = match rustix::fs::llistxattr(path.as_std_path(), &mut buffer) {
            Ok(length) => length,
            Err(Errno::NOTSUP | Errno::NOENT) => return Ok(Vec::new()),
            Err(Errno::RANGE) => {
                let mut large = vec![0_u8; MAX_ATTRIBUTE_BYTES];
                let length = rustix::fs::llistxattr(path.as_std_path(), &mut large[..])?;
                return Ok(lost(&large[..length]));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(lost(&buffer[..length]))
    }

    fn attribute(&self, path: &str, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0_u8; MAX_ATTRIBUTE_BYTES];
        match rustix::fs::lgetxattr(self.whole(path).as_std_path(), name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                Ok(Some(value))
            }
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The names of attributes that an image loses. Those of security modules and access lists belong to the machine.
fn lost(names: &[u8]) -> Vec<String> {
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    names
        .map(|name| {
            std::ffi::OsStr::from_bytes(name)
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name == "security.capability" || name.starts_with("user."))
        .collect()
}

struct Opened(File);

impl Read for Opened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl OpenFile for Opened {
    fn stamp(&self) -> io::Result<Stamp> {
        Ok(stamp(&rustix::fs::fstat(self.0.as_fd())?))
    }
}

#[expect(
    clippy::useless_conversion,
    reason = "the types of these fields differ between platforms"
)]
fn stamp(found: &Stat) -> Stamp {
    let nanoseconds = |seconds: i64, nanoseconds: i64| {
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(nanoseconds)
    };
    Stamp {
        device: found.st_dev.into(),
        inode: found.st_ino.into(),
        size: found.st_size as u64,
        modified: nanoseconds(found.st_mtime.into(), found.st_mtime_nsec as i64),
        changed: nanoseconds(found.st_ctime.into(), found.st_ctime_nsec as i64),
    }
}
