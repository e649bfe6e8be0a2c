//! A server whose credentials are files. Others may replace them at any time, as a mounted Secret is: they are read again
//! before each question, and a server is set up anew only when their content has changed.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use portolan_http::{Credentials, Identity, Secret, Tls};

use crate::server::{Authorization, Prometheus, ServerError, ServerSettings};

/// The most that a file with a credential may hold.
const MAX_BYTES: u64 = 1 << 20;

/// Where a server is, and the files with what it wants to be told.
#[derive(Debug, Clone, Default)]
pub struct ServerFiles {
    /// The address, with `http` or `https` and the path before `/api/v1`, if any.
    pub address: String,
    /// The certificate authority of the server.
    pub ca: Option<PathBuf>,
    /// A client certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// A bearer token; it goes before a user.
    pub token: Option<PathBuf>,
    /// A user with a password.
    pub user: Option<(String, PathBuf)>,
    /// Headers by name, with their values.
    pub headers: Vec<(String, PathBuf)>,
    /// The longest that a query may take, with its answer; the usual if it is zero.
    pub deadline: Duration,
}

impl ServerFiles {
    /// Reads all files and sets the server up. Nothing is sent.
    pub fn server(&self) -> Result<Prometheus, ServerError> {
        Prometheus::new(self.settings(&self.read()?))
    }

    /// The content of every file, in the order of [`ServerFiles::files`].
    fn read(&self) -> Result<Vec<Secret>, ServerError> {
        self.files().map(read).collect()
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        let identity = self
            .identity
            .iter()
            .flat_map(|(certificate, key)| [certificate, key]);
        let login = match (&self.token, &self.user) {
            (Some(token), _) => Some(token),
            (None, user) => user.as_ref().map(|(_, password)| password),
        };
        let headers = self.headers.iter().map(|(_, file)| file);
        let all = self.ca.iter().chain(identity).chain(login).chain(headers);
        all.map(PathBuf::as_path)
    }

    fn settings(&self, contents: &[Secret]) -> ServerSettings {
        let mut contents = contents.iter().cloned();
        let mut next = || contents.next().unwrap_or_else(|| Secret::from(""));
        let authorities = self.ca.iter().map(|_| next().expose().to_owned()).collect();
        let identity = self.identity.as_ref().map(|_| Identity {
            certificate: next().expose().to_owned(),
            key: next(),
        });
        // An editor leaves the end of a line; a certificate is not hurt by the lack of it.
        let authorization = match (&self.token, &self.user) {
            (Some(_), _) => Authorization::Bearer(next()),
            (None, Some((user, _))) => {
                Authorization::Basic(Credentials::new(user, next().expose()))
            }
            (None, None) => Authorization::None,
        };
        let headers = self
            .headers
            .iter()
            .map(|(name, _)| (name.clone(), next()))
            .collect();
        let mut settings = ServerSettings {
            tls: Tls {
                authorities,
                identity,
                skip_verification: false,
            },
            authorization,
            headers,
            ..ServerSettings::new(&self.address)
        };
        if !self.deadline.is_zero() {
            settings.deadline = self.deadline;
        }
        settings
    }
}

/// A server that follows its files.
#[derive(Debug)]
pub struct FileServer {
    files: ServerFiles,
    current: Mutex<(Vec<Secret>, Prometheus)>,
}

impl FileServer {
    /// Reads the files once, so that a wrong address or a missing file is told at the start.
    pub fn new(files: ServerFiles) -> Result<Self, ServerError> {
        let contents = files.read()?;
        let server = Prometheus::new(files.settings(&contents))?;
        Ok(Self {
            files,
            current: Mutex::new((contents, server)),
        })
    }

    /// The server as the files say now.
    pub fn current(&self) -> Result<Prometheus, ServerError> {
        let contents = self.files.read()?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != contents {
            let server = Prometheus::new(self.files.settings(&contents))?;
            *current = (contents, server);
        }
        Ok(current.1.clone())
    }
}

/// The text of a file without the line end that editors leave.
fn read(path: &Path) -> Result<Secret, ServerError> {
    let failed = |source| ServerError::File {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        let error = std::io::Error::other("it is larger than 1 MiB");
        return Err(failed(error));
    }
    Ok(Secret::from(text.trim_end_matches(['\r', '\n'])))
}
