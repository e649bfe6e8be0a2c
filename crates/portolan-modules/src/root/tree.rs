//! Whole trees below a root: removed, without following a link and without leaving a file system.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use camino::Utf8Path;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::{FileKind, Root, Status};

/// The deepest tree that is removed; each level holds a file handle and some of the stack.
const MAX_DEPTH: usize = 256;

impl Root {
    /// Removes whatever is at a path, with everything in it. Nothing there is no error.
    ///
    /// # Errors
    /// When a tree is too deep, something else is mounted in it, or the system refuses it. What was removed until then
    /// stays removed.
    pub fn remove_all(&self, path: &Utf8Path) -> io::Result<()> {
        let place = match self.place(path) {
            Ok(place) => place,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let Some(found) = place.status()? else {
            return Ok(());
        };
        let name = CString::new(place.name.as_str())?;
        let top = Top {
            device: found.device,
        };
        top.remove(place.parent.as_fd(), &name, 0)?;
        place.sync();
        Ok(())
    }
}

/// The tree that is removed.
struct Top {
    device: u64,
}

impl Top {
    fn remove(&self, parent: BorrowedFd<'_>, name: &CString, depth: usize) -> io::Result<()> {
        let found = rustix::fs::statat(parent, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        let found = Status::of(&found);
        if found.device != self.device {
            return Err(in_tree(name, "something else is mounted there"));
        }
        if found.kind != FileKind::Directory {
            return Ok(rustix::fs::unlinkat(
                parent,
                name.as_c_str(),
                AtFlags::empty(),
            )?);
        }
        if depth >= MAX_DEPTH {
            return Err(in_tree(name, "the tree is too deep"));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(parent, name.as_c_str(), flags, Mode::empty())?;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                self.remove(directory.as_fd(), &entry.file_name().to_owned(), depth + 1)?;
            }
        }
        Ok(rustix::fs::unlinkat(
            parent,
            name.as_c_str(),
            AtFlags::REMOVEDIR,
        )?)
    }
}

fn in_tree(name: &CString, reason: &str) -> io::Error {
    io::Error::other(format!("`{}`: {reason}", name.to_string_lossy()))
}
