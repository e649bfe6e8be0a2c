//! Directories, links and names below a root: made, moved and removed.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::staged::with_new_name;
use super::{FileKind, Place, Root};

impl Root {
    /// Makes one directory with these permissions.
    ///
    /// # Errors
    /// When something is there, the directory above is missing, or the system refuses it.
    pub fn make_directory(&self, path: &Utf8Path, mode: u32) -> io::Result<()> {
        let place = self.place(path)?;
        rustix::fs::mkdirat(&place.parent, &*place.name, Mode::from_raw_mode(0o700))?;
        place.sync();
        // The permissions apart, because the process's mask would take some away.
        self.set_mode(path, mode)
    }

    /// Makes an empty directory beside a path and under a name that was not there. Returns its path.
    ///
    /// # Errors
    /// When the directory above is missing, or the system refuses it.
    pub fn make_staging_directory(&self, beside: &Utf8Path) -> io::Result<Utf8PathBuf> {
        let place = self.place(beside)?;
        let mode = Mode::from_raw_mode(0o755);
        let (name, ()) = with_new_name(|name| rustix::fs::mkdirat(&place.parent, name, mode))?;
        Ok(beside.with_file_name(name))
    }

    /// Removes a file or link.
    ///
    /// # Errors
    /// When there is nothing, it is a directory, or the system refuses it.
    pub fn remove_file(&self, path: &Utf8Path) -> io::Result<()> {
        let place = self.place(path)?;
        rustix::fs::unlinkat(&place.parent, &*place.name, AtFlags::empty())?;
        place.sync();
        Ok(())
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// When there is nothing, it is not empty, or the system refuses it.
    pub fn remove_directory(&self, path: &Utf8Path) -> io::Result<()> {
        let place = self.place(path)?;
        rustix::fs::unlinkat(&place.parent, &*place.name, AtFlags::REMOVEDIR)?;
        place.sync();
        Ok(())
    }

    /// Makes a symbolic link with this text as its target, in the place of a file or link that may be there.
    ///
    /// # Errors
    /// When a directory is there, or the system refuses it.
    pub fn symlink(&self, target: &str, path: &Utf8Path) -> io::Result<()> {
        let place = self.place(path)?;
        let (name, ()) = with_new_name(|name| rustix::fs::symlinkat(target, &place.parent, name))?;
        move_over(&place, &name)
    }

    /// Gives a file another name, in the place of a file or link that may be there. A link is taken itself.
    ///
    /// # Errors
    /// When the file is missing, a directory is at the path, both are on different file systems, or the system refuses it.
    pub fn hard_link(&self, existing: &Utf8Path, path: &Utf8Path) -> io::Result<()> {
        let from = self.place(existing)?;
        let place = self.place(path)?;
        let (name, ()) = with_new_name(|name| {
            rustix::fs::linkat(
                &from.parent,
                &*from.name,
                &place.parent,
                name,
                AtFlags::empty(),
            )
        })?;
        move_over(&place, &name)
    }

    /// Lets two things change places in one step.
    ///
    /// # Errors
    /// When one is missing, both are on different file systems, or the system refuses it.
    pub fn exchange(&self, one: &Utf8Path, other: &Utf8Path) -> io::Result<()> {
        let (one, other) = (self.place(one)?, self.place(other)?);
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(&one.parent, &*one.name, &other.parent, &*other.name, flags)?;
        one.sync();
        other.sync();
        Ok(())
    }

    /// Brings everything that was written to the file system of a path to the disk.
    ///
    /// # Errors
    /// When there is no directory, or the disk fails.
    pub fn sync_below(&self, path: &Utf8Path) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self.resolve(path, super::DIRECTORY)?)?)
    }

    /// Moves something to another path; a file or link there is replaced, and so is an empty directory by a directory.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        rustix::fs::renameat(&from.parent, &*from.name, &to.parent, &*to.name)?;
        from.sync();
        to.sync();
        Ok(())
    }
}

/// Puts something that lies beside a place in it, unless a directory is there.
fn move_over(place: &Place, temporary: &str) -> io::Result<()> {
    let is_directory = matches!(place.status()?, Some(old) if old.kind == FileKind::Directory);
    let moved = if is_directory {
        Err(Errno::ISDIR)
    } else {
        rustix::fs::renameat(&place.parent, temporary, &place.parent, &*place.name)
    };
    // A second name of the same file is left by the system as it is: then the temporary one stays.
    let _ = rustix::fs::unlinkat(&place.parent, temporary, AtFlags::empty());
    moved?;
    place.sync();
    Ok(())
}
