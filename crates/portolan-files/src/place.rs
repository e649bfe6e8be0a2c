//! One file at a path that the user gave.

use std::fs;
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::WriteError;
use crate::output::OutputDir;

/// Writes a file at a path that the user gave, in one step. Directories on the way are made.
///
/// The user chose the path, so links in it are followed, and a device or a pipe (`/dev/stdout`, a FIFO that somebody
/// reads) is written to as it is.
pub fn write_file(path: &Utf8Path, content: &[u8]) -> Result<(), WriteError> {
    let failed = |source| WriteError::Io {
        path: path.to_owned(),
        source,
    };
    let target = match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Ok(found) if !found.is_file() => {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .open(path)
                .map_err(failed)?;
            return file.write_all(content).map_err(failed);
        }
        Ok(_) => path.canonicalize_utf8().map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => missing(path).map_err(failed)?,
        Err(error) => return Err(failed(error)),
    };
    let name = target
        .file_name()
        .ok_or_else(|| failed(io::Error::from(io::ErrorKind::IsADirectory)))?;
    let directory = target.parent().unwrap_or(Utf8Path::new(""));
    let directory = OutputDir::open(directory).map_err(failed)?;
    match directory.write(name.into(), content) {
        Ok(_) => Ok(()),
        // The user knows the path as it was written.
        Err(WriteError::Io { source, .. }) => Err(failed(source)),
        Err(other) => Err(other),
    }
}

/// Where a file that is not there yet will be, its directory made; a link that leads nowhere is followed one step.
fn missing(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let target = match path.read_link_utf8() {
        Ok(link) => path.parent().unwrap_or(Utf8Path::new("")).join(link),
        Err(_) => path.to_owned(),
    };
    if let Some(parent) = target.parent().filter(|parent| !parent.as_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    Ok(target)
}
