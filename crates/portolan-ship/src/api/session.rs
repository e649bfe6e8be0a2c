//! The file that says where a live run can be asked, and by which token; for its owner alone.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::SocketAddr;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::runs::ShipRun;

/// Where a live run can be asked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedRun {
    /// `http://127.0.0.1:4711`
    pub server: String,
    /// What every request must carry.
    pub token: String,
    #[serde(skip)]
    path: Utf8PathBuf,
}

/// Why a session cannot be begun or read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The address of the listener is not known.
    #[error("cannot find out the address of the server")]
    Address(#[source] io::Error),
    /// The file cannot be used.
    #[error("cannot use the session file `{path}`")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The run cannot be read.
    #[error(transparent)]
    Run(#[from] crate::runs::RunError),
    /// Skaffold's API cannot be made.
    #[error("cannot make the API for clients of Skaffold: {0}")]
    Skaffold(String),
    /// The file is something else.
    #[error("`{0}` is not a session file")]
    Parse(Utf8PathBuf),
}

impl ServedRun {
    pub(super) fn begin(run: &ShipRun, address: SocketAddr) -> Result<Self, SessionError> {
        let path = run.session_file();
        let failed = |source| SessionError::File {
            path: path.clone(),
            source,
        };
        let session = Self {
            server: format!("http://{address}"),
            token: random().map_err(failed)?,
            path: path.clone(),
        };
        let text = serde_json::to_vec(&session).map_err(|error| failed(error.into()))?;
        // For its owner alone from the first byte on; one that a killed server left is replaced.
        let directory = path.parent().unwrap_or(Utf8Path::new("."));
        let mut file = NamedTempFile::new_in(directory).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(session)
    }

    /// Reads the session of a run; `None` if nobody serves it.
    pub fn of(run: &ShipRun) -> Result<Option<Self>, SessionError> {
        match Self::read(&run.session_file()) {
            Err(SessionError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Reads a session file.
    pub fn read(path: &Utf8Path) -> Result<Self, SessionError> {
        let text = fs::read(path).map_err(|source| SessionError::File {
            path: path.to_owned(),
            source,
        })?;
        let session: Self =
            serde_json::from_slice(&text).map_err(|_| SessionError::Parse(path.to_owned()))?;
        Ok(Self {
            path: path.to_owned(),
            ..session
        })
    }

    /// Nobody answers any more.
    pub(super) fn end(&self) {
        let is_own = Self::read(&self.path).is_ok_and(|known| known.token == self.token);
        if is_own {
            // Where it cannot be removed, its token is worth nothing.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl std::fmt::Debug for ServedRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServedRun({}, [redacted])", self.server)
    }
}

/// 64 digits that nobody guesses.
fn random() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(portolan_digest::hex(&bytes))
}
