//! Files that must survive a crash of the machine: whole, and on the disk before anybody acts on them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use camino::Utf8Path;

/// Replaces a file in one step; only its owner may read it. When this returns, the file and its name are on the disk.
pub(crate) fn write_durable(path: &Utf8Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Utf8Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// Creates a file that must not exist yet; only its owner may read it. When this returns, it is on the disk.
pub(crate) fn create_durable(path: &Utf8Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()?;
    sync_directory(path.parent().unwrap_or(Utf8Path::new(".")))
}

/// Makes a directory, and those above it, for its owner alone.
pub(crate) fn private_directory(path: &Utf8Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Brings the names in a directory to the disk.
pub(crate) fn sync_directory(path: &Utf8Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
