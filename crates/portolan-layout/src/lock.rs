//! Locks between processes: `flock` on a file that is never removed. The operating system releases them when a
//! process dies.

use std::fs::{File, OpenOptions};

use camino::Utf8Path;

use crate::error::{At, StoreError};

/// A lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until nobody else holds the lock.
    pub(crate) fn alone(path: &Utf8Path) -> Result<Self, StoreError> {
        let file = open(path)?;
        file.lock().at(path)?;
        Ok(Self { _file: file })
    }

    /// Waits until nobody holds the lock alone.
    pub(crate) fn shared(path: &Utf8Path) -> Result<Self, StoreError> {
        let file = open(path)?;
        file.lock_shared().at(path)?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Utf8Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    options.open(path).at(path)
}
