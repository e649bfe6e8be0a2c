//! A file that gets its name when it is written.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::AtFlags;

use crate::error::WriteError;
use crate::output::OutputDir;

/// A file without a name yet. Dropped without one, it leaves nothing.
#[derive(Debug)]
pub struct Staged<'a> {
    output: &'a OutputDir,
    inside: OwnedFd,
    temporary: String,
    file: File,
}

impl<'a> Staged<'a> {
    pub(crate) fn new(
        output: &'a OutputDir,
        inside: OwnedFd,
        temporary: String,
        file: File,
    ) -> Self {
        Self {
            output,
            inside,
            temporary,
            file,
        }
    }

    /// Gives the file its name below the directory, with everything in it on the disk; directories on the way are made.
    ///
    /// The rules for the path are those of [`OutputDir::write`].
    pub fn commit(self, path: &Utf8Path) -> Result<Utf8PathBuf, WriteError> {
        self.file.sync_data().map_err(|source| WriteError::Io {
            path: self.output.path().join(path),
            source,
        })?;
        self.output
            .adopt(self.inside.as_fd(), &self.temporary, path)
    }
}

impl Write for Staged<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // After a commit there is nothing left under this name.
        let _ = rustix::fs::unlinkat(&self.inside, &*self.temporary, AtFlags::empty());
    }
}
