//! `portolan.lock`: the exact content of every remote source.
//!
//! JSON, sorted by key, one entry per source, so it is easy to merge and review:
//!
//! ```json
//! {
//!   "version": 1,
//!   "sources": {
//!     "chart https://stefanprodan.github.io/podinfo podinfo ^6": {
//!       "kind": "chart",
//!       "url": "https://stefanprodan.github.io/podinfo/podinfo-6.5.0.tgz",
//!       "version": "6.5.0",
//!       "digest": "sha256:…"
//!     }
//!   }
//! }
//! ```
//!
//! The key is the request itself: another range is another request, so a pin can never hide a changed request.

use std::collections::BTreeMap;
use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

/// What a request was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// What kind of source it is.
    pub kind: PinKind,
    /// Where the content comes from.
    pub url: String,
    /// The chosen version, tag or ref; empty for plain files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `sha256:…` of the content (of the manifest for artifacts), `sha1:…` of a commit.
    pub digest: String,
}

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinKind {
    /// A chart from an HTTP repository.
    Chart,
    /// An artifact or chart from a registry.
    Oci,
    /// A commit.
    Git,
    /// A file from a web server.
    File,
    /// The objects of a bucket.
    Bucket,
}

/// All pins, by request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    pins: BTreeMap<String, Pin>,
}

/// A lock file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read.
    #[error("cannot read the lock file `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a lock file.
    #[error("the lock file `{path}` is not valid (line {line}, column {column})")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// Where it is wrong.
        line: usize,
        /// Where it is wrong.
        column: usize,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The file was written by a later Portolan.
    #[error("the lock file `{path}` has version {version}, and only {VERSION} is known")]
    Version {
        /// The file.
        path: Utf8PathBuf,
        /// The version in the file.
        version: u64,
    },
    /// The file cannot be written.
    #[error("cannot write the lock file `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
}

/// The version of the format.
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct Wire {
    version: u64,
    sources: BTreeMap<String, Pin>,
}

impl Lock {
    /// Reads a lock file; a missing one holds no pins.
    pub fn load(path: &Utf8Path) -> Result<Self, LockError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(source) => {
                let path = path.to_owned();
                return Err(LockError::Read { path, source });
            }
        };
        Self::parse(path, &text)
    }

    /// Reads the text of a lock file; the path is for what is said of it.
    pub fn parse(path: &Utf8Path, text: &[u8]) -> Result<Self, LockError> {
        let wire: Wire = serde_json::from_slice(text).map_err(|source| LockError::Parse {
            path: path.to_owned(),
            line: source.line(),
            column: source.column(),
            source,
        })?;
        if wire.version != VERSION {
            return Err(LockError::Version {
                path: path.to_owned(),
                version: wire.version,
            });
        }
        Ok(Self { pins: wire.sources })
    }

    /// Writes a lock file in one step: a reader sees the old one or the new one.
    pub fn save(&self, path: &Utf8Path) -> Result<(), LockError> {
        let write = || {
            let directory = path.parent().filter(|parent| !parent.as_str().is_empty());
            let mut file = tempfile::NamedTempFile::new_in(directory.unwrap_or(".".into()))?;
            file.write_all(self.to_text().as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|source: std::io::Error| LockError::Write {
            path: path.to_owned(),
            source,
        })
    }

    /// The text of the lock file: the same pins give the same bytes.
    pub fn to_text(&self) -> String {
        let wire = Wire {
            version: VERSION,
            sources: self.pins.clone(),
        };
        let mut text = serde_json::to_string_pretty(&wire).expect("strings become JSON");
        text.push('\n');
        text
    }

    /// The pin of a request.
    pub fn get(&self, key: &str) -> Option<&Pin> {
        self.pins.get(key)
    }

    /// Pins a request.
    pub fn insert(&mut self, key: impl Into<String>, pin: Pin) {
        self.pins.insert(key.into(), pin);
    }

    /// All requests with their pins, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Pin)> {
        self.pins.iter().map(|(key, pin)| (key.as_str(), pin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let mut lock = Lock::default();
        for key in ["git https://b main", "chart https://a web 1"] {
            lock.insert(
                key,
                Pin {
                    kind: PinKind::Chart,
                    url: "https://a/web-1.tgz".to_owned(),
                    version: String::new(),
                    digest: "sha256:0".to_owned(),
                },
            );
        }
        lock
    }

    #[test]
    fn a_lock_file_is_sorted_and_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path())
            .unwrap()
            .join("portolan.lock");
        lock().save(&path).unwrap();
        assert_eq!(Lock::load(&path).unwrap(), lock());
        let text = lock().to_text();
        assert!(text.find("chart https").unwrap() < text.find("git https").unwrap());
        assert!(text.starts_with("{\n  \"version\": 1,\n  \"sources\": {\n"));
    }

    #[test]
    fn a_missing_lock_file_pins_nothing() {
        let lock = Lock::load("/nonexistent/portolan.lock".into()).unwrap();
        assert_eq!(lock, Lock::default());
    }

    #[test]
    fn a_broken_or_later_lock_file_is_refused_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path())
            .unwrap()
            .join("portolan.lock");
        std::fs::write(&path, "{\n  \"version\": x}").unwrap();
        let error = Lock::load(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("is not valid (line 2, column 14)"),
            "{error}"
        );
        std::fs::write(&path, r#"{"version": 2, "sources": {}}"#).unwrap();
        let error = Lock::load(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("has version 2, and only 1 is known"),
            "{error}"
        );
    }
}
