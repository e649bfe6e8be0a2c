//! A fleet server with the files of its credentials, which are read when they are needed.

use std::path::{Path, PathBuf};

use portolan_http::Secret;

use crate::client::{FleetClient, FleetError};

/// A server, and who asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetServerFiles {
    /// Its address, with `https`.
    pub address: String,
    /// The file with the token of who asks.
    pub token: PathBuf,
    /// The certificate of its authority, trusted besides those of the machine.
    pub authority: Option<PathBuf>,
}

/// Why a server cannot be asked. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ServerFilesError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What it holds, or the address, cannot be used.
    #[error(transparent)]
    Client(#[from] FleetError),
}

/// What the files hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileContents {
    token: Secret,
    authority: Option<String>,
}

impl FleetServerFiles {
    /// Reads the files and sets up a client; nothing is sent.
    ///
    /// # Errors
    /// When a file cannot be read, or something cannot be used.
    pub fn client(&self) -> Result<FleetClient, ServerFilesError> {
        self.client_with(self.read()?)
    }

    /// Reads the files.
    pub(crate) fn read(&self) -> Result<FileContents, ServerFilesError> {
        let token = read(&self.token)?;
        Ok(FileContents {
            token: Secret::from(token.trim().to_owned()),
            authority: self.authority.as_deref().map(read).transpose()?,
        })
    }

    /// A client with what the files hold.
    pub(crate) fn client_with(
        &self,
        contents: FileContents,
    ) -> Result<FleetClient, ServerFilesError> {
        let authorities = contents.authority.into_iter().collect();
        let client = FleetClient::new(&self.address, contents.token, authorities)?;
        Ok(client)
    }
}

fn read(path: &Path) -> Result<String, ServerFilesError> {
    std::fs::read_to_string(path).map_err(|source| ServerFilesError::Read {
        path: path.to_owned(),
        source,
    })
}
