//! Why a file could not be written.

use std::io;

use camino::Utf8PathBuf;

/// Why a file could not be written. Nothing of it is there then; an older file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A name in the path leads elsewhere or cannot be a name.
    #[error("cannot write `{path}`: `{name}` is not a file name")]
    BadName {
        /// The path asked for.
        path: Utf8PathBuf,
        /// The part of it that is refused.
        name: String,
    },
    /// A symbolic link stands in the way.
    #[error("cannot write `{path}`: `{link}` is a symbolic link")]
    Link {
        /// The path asked for.
        path: Utf8PathBuf,
        /// The link.
        link: Utf8PathBuf,
    },
    /// Something that is neither a file nor a directory stands in the way.
    #[error("cannot write `{path}`: `{found}` is not a regular file")]
    Special {
        /// The path asked for.
        path: Utf8PathBuf,
        /// What was found.
        found: Utf8PathBuf,
    },
    /// The operating system said no.
    #[error("cannot write `{path}`")]
    Io {
        /// The path asked for.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl WriteError {
    /// Returns what the user can do about it; `None` if the error says it itself.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::BadName { .. } => None,
            Self::Link { .. } | Self::Special { .. } => {
                Some("remove it, or choose another directory")
            }
            Self::Io { source, .. } => advice(source),
        }
    }
}

/// Returns what the user can do about a failed write; `None` if nothing can be said in general.
pub fn advice(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space, or write to another place")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("choose a place that you may write to")
        }
        _ => None,
    }
}
