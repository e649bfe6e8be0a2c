//! Files that a user gives in place of a source: `[[KIND/]NAMESPACE/]NAME=PATH`.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_flux::{BadSourcePattern, SourcePattern};
use portolan_sources::{ArchiveError, Limits, unpack};
use portolan_vfs::{Disk, Vfs, VfsError};

/// Files that stand for a source.
#[derive(Clone)]
pub struct SourceMapping {
    /// Which source.
    pub pattern: SourcePattern,
    /// A directory, or what an archive holds.
    pub files: Arc<dyn Vfs>,
}

/// A mapping that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceMappingError {
    /// There is no `=`.
    #[error("`{0}` is not of the form [[KIND/]NAMESPACE/]NAME=PATH")]
    Form(String),
    /// What stands before the `=` names no source.
    #[error(transparent)]
    Pattern(#[from] BadSourcePattern),
    /// The directory cannot be opened.
    #[error(transparent)]
    Directory(#[from] VfsError),
    /// The archive cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is no archive.
    #[error("cannot unpack `{path}`")]
    Archive {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        #[source]
        source: ArchiveError,
    },
}

impl SourceMapping {
    /// Reads a mapping and opens its directory, or the archive (`.tgz`, `.tar.gz`, `.tar`) that it names.
    pub fn open(text: &str) -> Result<Self, SourceMappingError> {
        let form = || SourceMappingError::Form(text.to_owned());
        let (pattern, path) = text.split_once('=').ok_or_else(form)?;
        if path.is_empty() {
            return Err(form());
        }
        let pattern = pattern.parse()?;
        let path = Utf8Path::new(path);
        let files: Arc<dyn Vfs> = if path.is_file() {
            Arc::new(archive(path)?)
        } else {
            Arc::new(Disk::open(path)?)
        };
        Ok(Self { pattern, files })
    }
}

fn archive(path: &Utf8Path) -> Result<portolan_vfs::Memory, SourceMappingError> {
    let limits = Limits::default();
    let failed = |source| SourceMappingError::Read {
        path: path.to_owned(),
        source,
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > limits.artifact_bytes {
        let limit = limits.artifact_bytes;
        return Err(SourceMappingError::Archive {
            path: path.to_owned(),
            source: ArchiveError::TooLarge { limit },
        });
    }
    let content = std::fs::read(path).map_err(failed)?;
    unpack(&content, &limits).map_err(|source| SourceMappingError::Archive {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match SourceMapping::open(text) {
            Ok(_) => panic!("{text} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_no_mapping_is_refused_with_the_form() {
        for text in ["web", "web=", ""] {
            assert_eq!(
                refused(text),
                format!("`{text}` is not of the form [[KIND/]NAMESPACE/]NAME=PATH")
            );
        }
        assert!(refused("Deployment/a/b=.").contains("does not name a source"));
    }

    #[test]
    fn a_file_that_is_no_archive_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path())
            .unwrap()
            .join("web.tgz");
        std::fs::write(&path, "<html>").unwrap();
        assert_eq!(
            refused(&format!("web={path}")),
            format!("cannot unpack `{path}`")
        );
    }
}
