//! A new content for a file, written beside it and put in its place in one step.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::attributes::{Kept, copy_xattrs};
use super::{FileKind, Follow, Place, Root};

/// A file as it should be.
#[derive(Debug, Clone, Copy)]
pub struct NewFile<'a> {
    /// All of its bytes.
    pub content: &'a [u8],
    /// Its permissions; those of the file that it replaces without them, and then `0644`.
    pub mode: Option<u32>,
    /// The id of its owner; that of the file that it replaces without it.
    pub uid: Option<u32>,
    /// The id of its group; that of the file that it replaces without it.
    pub gid: Option<u32>,
}

/// A file that lies beside its place. Dropped before it is committed, it leaves nothing.
#[derive(Debug)]
pub struct StagedFile {
    place: Place,
    temporary: String,
    path: Utf8PathBuf,
    kept: Kept,
    is_committed: bool,
}

/// How often another random name is tried; one is enough unless somebody takes them on purpose.
const ATTEMPTS: u64 = 16;

/// The permissions of a file for which nobody says any.
const DEFAULT_MODE: u32 = 0o644;

impl Root {
    /// Writes a file beside its place: content, owner, extended attributes and permissions, all of it on the disk.
    /// A link at the path is replaced, not followed.
    ///
    /// # Errors
    /// When its directory is missing, or something at the path is no file, or the system refuses it.
    pub fn stage(&self, path: &Utf8Path, new: &NewFile<'_>) -> io::Result<StagedFile> {
        self.stage_with(path, new, |_| Ok(()))
    }

    /// The same for content that is written piece by piece, after that of `new`.
    ///
    /// # Errors
    /// As [`stage`](Self::stage), and those of `write`.
    pub fn stage_with(
        &self,
        path: &Utf8Path,
        new: &NewFile<'_>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<StagedFile> {
        let place = self.place(path)?;
        let old = match place.status()? {
            Some(old) if old.kind == FileKind::File => Some(old),
            Some(old) if old.kind == FileKind::Link => None,
            Some(old) if old.kind == FileKind::Directory => {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            Some(_) => return Err(io::Error::other("it is not a regular file")),
            None => None,
        };
        let (temporary, mut file) = temporary(place.parent.as_fd())?;
        let mut staged = StagedFile {
            path: path.with_file_name(&temporary),
            place,
            temporary,
            kept: Kept::default(),
            is_committed: false,
        };
        file.write_all(new.content)?;
        write(&mut file)?;
        // The owner first: a change of it takes the setuid bit away.
        let uid = new.uid.or(old.map(|old| old.uid)).map(Uid::from_raw);
        let gid = new.gid.or(old.map(|old| old.gid)).map(Gid::from_raw);
        rustix::fs::fchown(&file, uid, gid)?;
        if old.is_some()
            && let Some(replaced) = self.open_file(path, Follow::No)?
        {
            staged.kept = copy_xattrs(&replaced, &file);
        }
        let mode = new.mode.or(old.map(|old| old.mode)).unwrap_or(DEFAULT_MODE);
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        file.sync_all()?;
        Ok(staged)
    }

    /// Writes a file in one step: readers see the old content or the new one.
    ///
    /// # Errors
    /// As [`stage`](Self::stage) and [`StagedFile::commit`].
    pub fn replace(&self, path: &Utf8Path, new: &NewFile<'_>) -> io::Result<Kept> {
        self.stage(path, new)?.commit()
    }

    /// Makes a file that was not there, to be written by the caller, who also sees to it that it reaches the disk.
    ///
    /// # Errors
    /// When something is there, its directory is missing, or the system refuses it.
    pub fn create_file(&self, path: &Utf8Path, new: &NewFile<'_>) -> io::Result<File> {
        let place = self.place(path)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let mut file = File::from(rustix::fs::openat(
            &place.parent,
            &*place.name,
            flags,
            mode,
        )?);
        file.write_all(new.content)?;
        rustix::fs::fchown(
            &file,
            new.uid.map(Uid::from_raw),
            new.gid.map(Gid::from_raw),
        )?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(new.mode.unwrap_or(DEFAULT_MODE)))?;
        Ok(file)
    }

    /// Writes into the file that is there, which stays the same file: for bind mounts and for files with several names.
    /// Readers may see a part of the new content.
    ///
    /// # Errors
    /// When there is no regular file, or it cannot be written.
    pub fn write_through(&self, path: &Utf8Path, content: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(self.resolve(path, flags)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.write_all(content)?;
        file.set_len(content.len() as u64)?;
        file.sync_all()
    }
}

impl StagedFile {
    /// Where it lies, below the root.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// When the system refuses it, as for a path that something is mounted on.
    pub fn commit(mut self) -> io::Result<Kept> {
        let parent = &self.place.parent;
        rustix::fs::renameat(parent, &*self.temporary, parent, &*self.place.name)?;
        self.is_committed = true;
        self.place.sync();
        Ok(std::mem::take(&mut self.kept))
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.is_committed {
            // What cannot be removed is a file with an odd name.
            let _ = rustix::fs::unlinkat(&self.place.parent, &*self.temporary, AtFlags::empty());
        }
    }
}

/// Makes a file that only we can read, under a name that nobody can guess and that was not there.
fn temporary(directory: BorrowedFd<'_>) -> io::Result<(String, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    with_new_name(|name| rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o600)))
        .map(|(name, handle)| (name, File::from(handle)))
}

/// Calls something that makes a new name, until the name was not there before.
pub(super) fn with_new_name<T>(
    mut make: impl FnMut(&str) -> Result<T, Errno>,
) -> io::Result<(String, T)> {
    let mut tried = 0;
    loop {
        // The keys of a new state come from the system's random numbers.
        let random = RandomState::new().hash_one(tried);
        let name = format!(".{random:016x}.portolan");
        match make(&name) {
            Ok(made) => return Ok((name, made)),
            Err(Errno::EXIST) if tried < ATTEMPTS => tried += 1,
            Err(error) => return Err(error.into()),
        }
    }
}
