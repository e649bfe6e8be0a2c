//! A directory below which files are written, and never outside it.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::WriteError;
use crate::staged::Staged;

/// A directory that files are written below. It is held open: what its path leads to later does not matter.
#[derive(Debug)]
pub struct OutputDir {
    path: Utf8PathBuf,
    directory: OwnedFd,
}

/// How often another random name is tried; one is enough unless somebody takes them on purpose.
const ATTEMPTS: usize = 16;

impl OutputDir {
    /// Opens a directory, and makes it first if it is missing. The user chose this path: links in it are followed.
    pub fn create(path: &Utf8Path) -> Result<Self, WriteError> {
        let failed = |source| WriteError::Io {
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir_all(path).map_err(failed)?;
        Self::open(path).map_err(failed)
    }

    pub(crate) fn open(path: &Utf8Path) -> io::Result<Self> {
        let shown = if path.as_str().is_empty() {
            ".".into()
        } else {
            path
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(shown.as_std_path(), flags, Mode::empty())?;
        Ok(Self {
            path: path.to_owned(),
            directory,
        })
    }

    /// Returns the path that it was opened with.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Writes a file below the directory; directories on the way are made. Returns the whole path.
    ///
    /// The path is relative and has no `.`, `..` or empty part. What is there already is replaced, unless it is a link,
    /// a directory or something else that is no regular file.
    pub fn write(&self, path: &Utf8Path, content: &[u8]) -> Result<Utf8PathBuf, WriteError> {
        self.write_with(path, |file| file.write_all(content))
    }

    /// The same for content that is written piece by piece.
    pub fn write_with(
        &self,
        path: &Utf8Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<Utf8PathBuf, WriteError> {
        let whole = self.path.join(path);
        let (name, parents) = self.names(path)?;
        let held = self.parents(&parents, &whole)?;
        let inside = held.as_ref().map_or(self.directory.as_fd(), AsFd::as_fd);
        replace(inside, name, write).map_err(|why| why.at(&whole, &whole))?;
        Ok(whole)
    }

    /// Begins a file whose name will be known when it is written. Until then it lies in a directory below this one.
    pub fn stage(&self, directory: &Utf8Path) -> Result<Staged<'_>, WriteError> {
        let whole = self.path.join(directory);
        let (last, mut names) = self.names(directory)?;
        names.push(last);
        let inside = self.parents(&names, &whole)?;
        let inside = inside.map_or_else(|| self.directory.try_clone(), Ok);
        let inside = inside.map_err(|error| Obstacle::from(error).at(&whole, &whole))?;
        let (name, file) = temporary(inside.as_fd(), Mode::from_raw_mode(0o666))
            .map_err(|why| why.at(&whole, &whole))?;
        Ok(Staged::new(self, inside, name, file))
    }

    /// Puts a file that lies elsewhere below this directory in its place.
    pub(crate) fn adopt(
        &self,
        from: BorrowedFd<'_>,
        temporary: &str,
        path: &Utf8Path,
    ) -> Result<Utf8PathBuf, WriteError> {
        let whole = self.path.join(path);
        let (name, parents) = self.names(path)?;
        let held = self.parents(&parents, &whole)?;
        let inside = held.as_ref().map_or(self.directory.as_fd(), AsFd::as_fd);
        let moved = replaced_mode(inside, name)
            .and_then(|_| Ok(rustix::fs::renameat(from, temporary, inside, name)?));
        moved.map_err(|why| why.at(&whole, &whole))?;
        // As in `replace`.
        let _ = rustix::fs::fsync(inside);
        Ok(whole)
    }

    /// The last name of a path and those before it.
    fn names<'p>(&self, path: &'p Utf8Path) -> Result<(&'p str, Vec<&'p str>), WriteError> {
        let refused = |name: &str| WriteError::BadName {
            path: self.path.join(path),
            name: name.to_owned(),
        };
        let mut names = names(path).map_err(|name| refused(&name))?;
        let last = names.pop().ok_or_else(|| refused(""))?;
        Ok((last, names))
    }

    /// Opens directories one inside the other, and makes those that are missing.
    fn parents(&self, names: &[&str], whole: &Utf8Path) -> Result<Option<OwnedFd>, WriteError> {
        let mut at = self.path.clone();
        let mut held: Option<OwnedFd> = None;
        for name in names {
            at.push(name);
            let inside = held.as_ref().map_or(self.directory.as_fd(), AsFd::as_fd);
            held = Some(subdirectory(inside, name).map_err(|why| why.at(whole, &at))?);
        }
        Ok(held)
    }
}

/// Why one step on the way failed.
enum Obstacle {
    Link,
    Special,
    Io(io::Error),
}

impl Obstacle {
    fn at(self, path: &Utf8Path, found: &Utf8Path) -> WriteError {
        let (path, found) = (path.to_owned(), found.to_owned());
        match self {
            Self::Link => WriteError::Link { path, link: found },
            Self::Special => WriteError::Special { path, found },
            Self::Io(source) => WriteError::Io { path, source },
        }
    }
}

impl From<Errno> for Obstacle {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The names of a relative path; the one that cannot be a name is the error.
fn names(path: &Utf8Path) -> Result<Vec<&str>, String> {
    let names: Vec<&str> = path.as_str().split('/').collect();
    match names
        .iter()
        .find(|name| matches!(**name, "" | "." | "..") || name.contains('\0'))
    {
        Some(wrong) => Err((*wrong).to_owned()),
        None => Ok(names),
    }
}

/// Opens a directory inside another one, and makes it first if it is missing.
fn subdirectory(inside: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Obstacle> {
    match rustix::fs::mkdirat(inside, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(inside, name, flags, Mode::empty()) {
        Ok(directory) => Ok(directory),
        // Linux says of a link that it is no directory.
        Err(Errno::LOOP | Errno::NOTDIR) => match kind(inside, name)? {
            Some((FileType::Symlink, _)) => Err(Obstacle::Link),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory).into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// What stands under a name, links not followed, and its permissions.
fn kind(inside: BorrowedFd<'_>, name: &str) -> Result<Option<(FileType, Mode)>, Obstacle> {
    match rustix::fs::statat(inside, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some((
            FileType::from_raw_mode(found.st_mode),
            Mode::from_raw_mode(found.st_mode),
        ))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The permissions of the file that will be replaced, if there is one; anything but a file is not replaced.
fn replaced_mode(inside: BorrowedFd<'_>, name: &str) -> Result<Option<Mode>, Obstacle> {
    match kind(inside, name)? {
        None => Ok(None),
        Some((FileType::RegularFile, mode)) => Ok(Some(mode)),
        Some((FileType::Symlink, _)) => Err(Obstacle::Link),
        Some((FileType::Directory, _)) => Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
        Some(_) => Err(Obstacle::Special),
    }
}

/// Writes a file under a random name and puts it in the place of the old one.
fn replace(
    inside: BorrowedFd<'_>,
    name: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Obstacle> {
    let mode = replaced_mode(inside, name)?;
    let (temporary, mut file) = temporary(inside, mode.unwrap_or(Mode::from_raw_mode(0o666)))?;
    let written = write(&mut file)
        .and_then(|()| mode.map_or(Ok(()), |mode| Ok(rustix::fs::fchmod(&file, mode)?)))
        .and_then(|()| file.sync_data())
        .and_then(|()| Ok(rustix::fs::renameat(inside, &*temporary, inside, name)?));
    if written.is_ok() {
        // The new name must survive a power cut as well; some file systems cannot promise that, and say so.
        let _ = rustix::fs::fsync(inside);
    }
    if written.is_err() {
        // The error that counts is the first one; what cannot be removed is a file with an odd name.
        let _ = rustix::fs::unlinkat(inside, &*temporary, AtFlags::empty());
    }
    Ok(written?)
}

/// Makes a file under a name that nobody can guess, and that was not there.
fn temporary(inside: BorrowedFd<'_>, mode: Mode) -> Result<(String, File), Obstacle> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut tried = 0;
    loop {
        // The keys of a new state come from the system's random numbers.
        let random = RandomState::new().hash_one(tried);
        let name = format!(".{random:016x}.portolan");
        match rustix::fs::openat(inside, &*name, flags, mode) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) if tried < ATTEMPTS => tried += 1,
            Err(error) => return Err(error.into()),
        }
    }
}
