//! The settings of a repository, in the file `portolan.yaml` in its top directory.

use std::error::Error as _;
use std::fmt::Display;

use portolan_check::{Settings, has_kind, parse_producers, parse_settings};
use portolan_flux::VersionSettings;
use portolan_object::{API_VERSION, Producer, Rule};
use portolan_vfs::{Vfs, VfsError};
use portolan_yaml::{Node, Position};

use crate::ReviewError;

/// Where the file is in a repository.
const PATH: &str = "/portolan.yaml";

/// The file's name, as messages have it.
const NAME: &str = "portolan.yaml";

/// What people call it too.
const OTHER_NAME: &str = "portolan.yml";

/// The file is there and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{NAME}`: {}", io_cause(_0))]
struct Unreadable(VfsError);

/// A settings file that was read; one that is not there says nothing.
pub(crate) struct SettingsFile(Node);

impl SettingsFile {
    /// Reads the file; one that is there and cannot be used is an error.
    pub(crate) fn read(files: &dyn Vfs) -> Result<Self, ReviewError> {
        let bytes = match files.read(PATH.into()) {
            Ok(bytes) => bytes,
            Err(VfsError::NotFound(_)) => {
                refuse_other_names(files)?;
                return Ok(Self(Node::null()));
            }
            Err(VfsError::IsDirectory(_)) => {
                let error = ReviewError::refused(format!("`{NAME}` is a directory"));
                return Err(error.hint(format!(
                    "settings are read from the file `{NAME}`; rename the directory"
                )));
            }
            Err(error) => {
                let error = ReviewError::failed(Unreadable(error));
                return Err(error.hint(format!(
                    "make `{NAME}` readable for you, or take it away to go on without settings"
                )));
            }
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = error.utf8_error().valid_up_to();
            let lines = error.as_bytes().iter().take(before);
            let line = lines.filter(|byte| **byte == b'\n').count() + 1;
            ReviewError::refused(format!("{NAME}:{line}: the text is not UTF-8"))
                .hint("save the file as UTF-8")
        })?;
        match parse_settings(&text) {
            Ok(node) => Ok(Self(node)),
            Err(error) => Err(misplaced(&error, error.at(), &error.hint())),
        }
    }

    /// What somebody should do about a file that is good.
    pub(crate) fn note(&self) -> Option<String> {
        (!has_kind(&self.0)).then(|| {
            format!(
                "the settings in `{NAME}` have no kind: write `apiVersion: {API_VERSION}` and `kind: Settings` above them"
            )
        })
    }

    /// Which versions it chooses.
    pub(crate) fn versions(&self) -> Result<VersionSettings, ReviewError> {
        VersionSettings::read(&self.0, NAME)
            .map_err(|error| misplaced(&error, error.at(), error.hint()))
    }

    /// What controllers make besides what is known.
    pub(crate) fn producers(&self) -> Result<Vec<Producer>, ReviewError> {
        parse_producers(&self.0).map_err(|error| misplaced(&error, error.at(), &error.hint()))
    }

    /// Which findings it wants of these rules.
    pub(crate) fn findings(&self, rules: &[&Rule]) -> Result<Settings, ReviewError> {
        Settings::of(&self.0, rules).map_err(|error| misplaced(&error, error.at(), &error.hint()))
    }
}

/// What the system says; that the file cannot be read was said.
fn io_cause(error: &VfsError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// Refuses a file that is meant for settings and is not read: a link that leads nowhere, or another ending.
fn refuse_other_names(files: &dyn Vfs) -> Result<(), ReviewError> {
    let entries = files.list("/".into()).unwrap_or_default();
    if entries.iter().any(|entry| entry.name == NAME) {
        let error = ReviewError::refused(format!("`{NAME}` is a link that leads to no file"));
        return Err(error.hint("settings are read through it: fix the link or take it away"));
    }
    match entries.iter().find(|entry| entry.name == OTHER_NAME) {
        Some(_) => {
            let error = ReviewError::refused(format!("`{OTHER_NAME}` is not read"));
            Err(error.hint(format!("settings are read from `{NAME}`: rename the file")))
        }
        None => Ok(()),
    }
}

/// A mistake at a place of the file.
fn misplaced(error: impl Display, at: Position, hint: &str) -> ReviewError {
    let place = match (at.line, at.column) {
        (0, _) => NAME.to_owned(),
        (line, 0) => format!("{NAME}:{line}"),
        (line, column) => format!("{NAME}:{line}:{column}"),
    };
    ReviewError::refused(format!("{place}: {error}")).hint(hint)
}
