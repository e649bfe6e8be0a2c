//! A directory below a root as a root of its own.

use std::io;

use camino::Utf8Path;

use super::{DIRECTORY, Root};

impl Root {
    /// A directory as a root of its own, for work among what somebody else may change: none of its links leads out.
    ///
    /// # Errors
    /// When there is no directory, or it cannot be opened.
    pub fn inside(&self, directory: &Utf8Path) -> io::Result<Self> {
        Ok(Self {
            path: self.machine_path(directory),
            directory: self.resolve(directory, DIRECTORY)?,
            is_machine: false,
        })
    }
}
