//! Files named on the command line, or standard input for `-`, read under a limit.

use std::fs::File;
use std::io::{self, Read};

use camino::Utf8Path;

use crate::error::CommandError;

/// The most that is read of one input.
pub(crate) const MAX_BYTES: u64 = portolan_vfs::MAX_FILE_BYTES;

/// A text a user gave us.
pub(crate) struct Input {
    /// Its name for messages.
    pub(crate) name: String,
    /// What is in it.
    pub(crate) bytes: Vec<u8>,
}

impl Input {
    /// Reads a file, or standard input when the name is `-`.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, CommandError> {
        if path == "-" {
            return Self::from_reader("<stdin>", io::stdin().lock());
        }
        let file = File::open(path).map_err(|error| cannot_read(path.as_str(), error))?;
        Self::from_reader(path.as_str(), file)
    }

    fn from_reader(name: &str, reader: impl Read) -> Result<Self, CommandError> {
        let mut bytes = Vec::new();
        let read = reader.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| cannot_read(name, error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(CommandError::usage(format!(
                "`{name}` is larger than {} MiB",
                MAX_BYTES >> 20
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            bytes,
        })
    }
}

fn cannot_read(name: &str, error: io::Error) -> CommandError {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let error =
        CommandError::user(anyhow::Error::new(error).context(format!("cannot read `{name}`")));
    if missing {
        error.hint("`-` reads standard input")
    } else {
        error
    }
}
