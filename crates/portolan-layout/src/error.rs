//! Why a store cannot be used.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_files::WriteError;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system said no.
    #[error("cannot use `{path}` of the store")]
    Io {
        /// The file or directory.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A document of the store is not what it should be.
    #[error("`{path}` is not valid")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A layout of a version that is not known.
    #[error("`{path}` is an image layout of version `{version}`, not `1.0.0`")]
    Version {
        /// The store.
        path: Utf8PathBuf,
        /// Its version.
        version: String,
    },
    /// Something else lies where the store should be.
    #[error("`{0}` is neither empty nor an image layout")]
    NotALayout(Utf8PathBuf),
    /// A name that no reader of layouts takes.
    #[error("`{0}` cannot be the name of an image in a layout")]
    RefName(String),
    /// A blob that should be there.
    #[error("the store has no blob `{0}`")]
    Missing(Digest),
}

/// Gives an error of the operating system its path.
pub(crate) trait At<T> {
    fn at(self, path: &Utf8Path) -> Result<T, StoreError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Utf8Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io {
            path: path.to_owned(),
            source,
        })
    }
}
