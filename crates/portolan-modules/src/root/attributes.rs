//! Owner, permissions and extended attributes of what is below a root.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use camino::Utf8Path;
use rustix::fs::{AtFlags, Gid, IFlags, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;

use super::{FileKind, Follow, Root, Status};

/// The most bytes of extended attributes that are carried over; the kernel allows as much for each.
const MAX_XATTR_BYTES: usize = 64 << 10;

/// What was carried over from an old file to a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Extended attributes that the new file could not be given, by name.
    pub lost: Vec<String>,
}

impl Root {
    /// Gives something another owner or group. A link is changed itself.
    ///
    /// # Errors
    /// When there is nothing, or the system refuses it.
    pub fn set_owner(&self, path: &Utf8Path, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        let handle = self.resolve(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        Ok(rustix::fs::chownat(
            handle,
            "",
            uid,
            gid,
            AtFlags::EMPTY_PATH,
        )?)
    }

    /// Gives something other permissions. Links have none: they are refused.
    ///
    /// # Errors
    /// When there is nothing, it is a link, or the system refuses it.
    pub fn set_mode(&self, path: &Utf8Path, mode: u32) -> io::Result<()> {
        let handle = self.resolve(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        if Status::of(&rustix::fs::fstat(&handle)?).kind == FileKind::Link {
            return Err(Errno::LOOP.into());
        }
        // A handle of this kind names the thing whatever its permissions are, but only this path can change them.
        let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
        Ok(rustix::fs::chmod(name, Mode::from_raw_mode(mode))?)
    }

    /// Whether the file or directory cannot be changed by anyone, because it has the immutable or append-only flag.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn is_immutable(&self, path: &Utf8Path) -> io::Result<bool> {
        match self.open_file(path, Follow::No) {
            Ok(Some(file)) => Ok(has_fixed_flag(&file)),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn has_fixed_flag(file: &File) -> bool {
    // File systems without flags say that they do not know the question.
    rustix::fs::ioctl_getflags(file)
        .is_ok_and(|flags| flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND))
}

/// Gives a new file the extended attributes of the one that it replaces: access lists, labels, capabilities, own ones.
pub(super) fn copy_xattrs(from: &File, to: &File) -> Kept {
    let mut kept = Kept::default();
    for name in xattr_names(from) {
        let mut value = Vec::with_capacity(MAX_XATTR_BYTES);
        let read = rustix::fs::fgetxattr(
            from,
            name.as_str(),
            rustix::buffer::spare_capacity(&mut value),
        );
        let set = read.and_then(|_| {
            rustix::fs::fsetxattr(to.as_fd(), name.as_str(), &value, XattrFlags::empty())
        });
        if set.is_err() {
            kept.lost.push(name);
        }
    }
    kept
}

/// The names of the extended attributes of a file; none where the file system has none.
fn xattr_names(file: &File) -> Vec<String> {
    let mut list = Vec::with_capacity(MAX_XATTR_BYTES);
    if rustix::fs::flistxattr(file, rustix::buffer::spare_capacity(&mut list)).is_err() {
        return Vec::new();
    }
    list.split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}
