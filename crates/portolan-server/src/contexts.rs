//! The servers that a client remembers, in a file of JSON: addresses and names of files, never tokens.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::setup::write_private;

/// A server that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetContext {
    /// Its address.
    pub server: String,
    /// The file of the token.
    pub token_file: Option<PathBuf>,
    /// The files of a client certificate and its key, instead of a token.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The file with the certificate of its authority.
    pub ca_file: Option<PathBuf>,
}

/// All servers that are remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetContexts {
    /// The name of the one that is used unless another one is named.
    pub current: Option<String>,
    /// All of them, by name.
    pub all: BTreeMap<String, FleetContext>,
}

/// Why the file of contexts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetContextsError {
    /// It cannot be read.
    #[error("cannot read `{}`", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// It cannot be written.
    #[error("cannot write `{}`", .0.display())]
    Write(PathBuf, #[source] std::io::Error),
    /// Something else is in it.
    #[error("`{}` is not a file of contexts", .0.display())]
    Format(PathBuf, #[source] serde_json::Error),
}

impl FleetContexts {
    /// Reads a file; without one, nothing is remembered.
    ///
    /// # Errors
    /// When the file cannot be read, or is not JSON.
    pub fn read(path: &Path) -> Result<Self, FleetContextsError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(FleetContextsError::Read(path.to_owned(), error)),
        };
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| FleetContextsError::Format(path.to_owned(), error))?;
        let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
        let all = value["contexts"].as_object().into_iter().flatten();
        let all = all.filter_map(|(name, one)| {
            let context = FleetContext {
                server: text(one, "server")?,
                token_file: text(one, "tokenFile").map(PathBuf::from),
                certificate: text(one, "certificateFile")
                    .zip(text(one, "keyFile"))
                    .map(|(certificate, key)| (certificate.into(), key.into())),
                ca_file: text(one, "caFile").map(PathBuf::from),
            };
            Some((name.clone(), context))
        });
        Ok(Self {
            current: text(&value, "current"),
            all: all.collect(),
        })
    }

    /// Writes the file, for its owner alone, and makes its directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FleetContextsError> {
        let all: Map<String, Value> = self
            .all
            .iter()
            .map(|(name, one)| {
                let certificate = one.certificate.as_ref().map(|files| &files.0);
                let key = one.certificate.as_ref().map(|files| &files.1);
                let value = json!({
                    "server": one.server, "tokenFile": one.token_file, "caFile": one.ca_file,
                    "certificateFile": certificate, "keyFile": key,
                });
                (name.clone(), value)
            })
            .collect();
        let value = json!({"current": self.current, "contexts": all});
        let write = || {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            write_private(path, format!("{value:#}\n").as_bytes())
        };
        write().map_err(|error| FleetContextsError::Write(path.to_owned(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("portolan/contexts.json");
        assert_eq!(
            FleetContexts::read(&path).expect("no file"),
            FleetContexts::default()
        );
        let context = FleetContext {
            server: "https://fleet.example.com:7443".to_owned(),
            token_file: Some("/home/me/token".into()),
            certificate: None,
            ca_file: None,
        };
        let by_certificate = FleetContext {
            token_file: None,
            certificate: Some(("/home/me/me.pem".into(), "/home/me/me.key".into())),
            ..context.clone()
        };
        let contexts = FleetContexts {
            current: Some("production".to_owned()),
            all: [
                ("production".to_owned(), context),
                ("staging".to_owned(), by_certificate),
            ]
            .into(),
        };
        contexts.write(&path).expect("written");
        assert_eq!(FleetContexts::read(&path).expect("a file"), contexts);
        std::fs::write(&path, "{").expect("written");
        let error = FleetContexts::read(&path).expect_err("not JSON");
        assert!(matches!(error, FleetContextsError::Format(..)), "{error}");
    }
}
