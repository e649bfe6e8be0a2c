//! Why something remote could not be fetched.

use camino::Utf8PathBuf;
use portolan_git::GitError;
use portolan_helm::IndexError;
use portolan_http::{HttpError, Unreachable};
use portolan_oci::{OciError, ReferenceError};

use crate::ArchiveError;

/// A source that could not be had; `what` names it as the repository does.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The network is off limits and the cache does not have it.
    #[error("{what} is not in the cache, and --offline fetches nothing")]
    Offline {
        /// The source.
        what: String,
    },
    /// Only pinned sources are wanted.
    #[error("{what} is not pinned in the lock file")]
    NotPinned {
        /// The source.
        what: String,
    },
    /// The remote now has something else under the same address.
    #[error("{what} has changed: `{pinned}` is pinned, but `{actual}` is there now")]
    Changed {
        /// The source.
        what: String,
        /// The digest in the lock file.
        pinned: String,
        /// The digest of what came.
        actual: String,
    },
    /// The lock file names another place than the source does.
    #[error("{what} is pinned to `{url}`, but the source has another address")]
    PinnedElsewhere {
        /// The source.
        what: String,
        /// The place in the lock file.
        url: String,
    },
    /// The chart repository's index announces a digest that nobody can check.
    #[error("the index announces the digest `{digest}` for {what}, which is not a SHA-256")]
    UnknownDigest {
        /// The source.
        what: String,
        /// The digest as written.
        digest: String,
    },
    /// The content does not have the digest that the repository's index names.
    #[error("{what} has the digest `{actual}`, but the repository's index says `{announced}`")]
    WrongDigest {
        /// The source.
        what: String,
        /// The digest in the index.
        announced: String,
        /// The digest of what came.
        actual: String,
    },
    /// The chart repository's index offers no such chart.
    #[error("cannot find {what}")]
    Index {
        /// The source.
        what: String,
        /// What the index says.
        #[source]
        source: IndexError,
    },
    /// No tag or version lies in the range.
    #[error("{what}: no version in the range `{range}`")]
    NoVersion {
        /// The source.
        what: String,
        /// The range asked for.
        range: String,
    },
    /// The range or filter cannot be read.
    #[error("{what}: `{range}` is not a version range: {reason}")]
    BadRange {
        /// The source.
        what: String,
        /// The range or filter as written.
        range: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The artifact is not of the wanted kind.
    #[error("{what} has no layer of type `{media_type}`")]
    NoLayer {
        /// The source.
        what: String,
        /// The wanted type.
        media_type: String,
    },
    /// The source is larger than allowed.
    #[error("{what} has {size} bytes, more than the {limit} allowed")]
    TooLarge {
        /// The source.
        what: String,
        /// Its announced size.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The address is not one of a registry.
    #[error("cannot read the address of {what}")]
    Reference {
        /// The source.
        what: String,
        /// What is wrong.
        #[source]
        source: ReferenceError,
    },
    /// The archive cannot be unpacked.
    #[error("cannot unpack {what}")]
    Archive {
        /// The source.
        what: String,
        /// What is wrong.
        #[source]
        source: ArchiveError,
    },
    /// The bucket's list cannot be understood.
    #[error("cannot list {what}: {reason}")]
    Bucket {
        /// The source.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// A chart's dependency cannot be brought.
    #[error("cannot bring the dependency `{name}` from `{repository}`: {reason}")]
    Dependency {
        /// The dependency's name.
        name: String,
        /// Its repository as written.
        repository: String,
        /// What is wrong.
        reason: String,
    },
    /// No connection can be made to its host.
    #[error("cannot fetch {what}")]
    Unreachable {
        /// The source.
        what: String,
        /// The host and what stands in the way: the same for everything that is wanted from it.
        #[source]
        source: Unreachable,
    },
    /// A web server did not give it.
    #[error("cannot fetch {what}")]
    Http {
        /// The source.
        what: String,
        /// What happened.
        #[source]
        source: HttpError,
    },
    /// A registry did not give it.
    #[error("cannot pull {what}")]
    Oci {
        /// The source.
        what: String,
        /// What happened.
        #[source]
        source: Box<OciError>,
    },
    /// A git remote did not give it.
    #[error("cannot fetch {what}")]
    Git {
        /// The source.
        what: String,
        /// What happened.
        #[source]
        source: Box<GitError>,
    },
    /// The cache cannot be written or read.
    #[error("cannot use the cache at `{path}`")]
    Cache {
        /// The file or directory.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
}

impl SourceError {
    /// The host that could not be reached, when that is the cause: the same for everything wanted from it.
    pub fn unreachable(&self) -> Option<&Unreachable> {
        match self {
            Self::Unreachable { source, .. } => Some(source),
            _ => None,
        }
    }

    /// What is wrong with the host that was asked, where it most likely is with everything wanted from it:
    /// `` `charts.example` answers 503 (Service Unavailable) ``.
    pub fn failing_host(&self) -> Option<String> {
        let http = match self {
            Self::Http { source, .. } => source,
            Self::Oci { source, .. } => match source.as_ref() {
                OciError::Http(source) => source,
                _ => return None,
            },
            _ => return None,
        };
        http.failing_host()
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Offline { .. } => Some("`portolan fetch` brings it while there is a network"),
            Self::NotPinned { .. } => Some("`portolan fetch` pins it"),
            Self::Changed { .. } => {
                Some("if the change is meant, `portolan fetch --update` pins the new content")
            }
            Self::PinnedElsewhere { .. } => {
                Some("if the source has moved, `portolan fetch --update` pins the new place")
            }
            Self::UnknownDigest { .. } => Some(
                "whoever keeps the chart repository must write `sha256` digests into its index",
            ),
            Self::NoVersion { .. } | Self::BadRange { .. } => {
                Some("see which versions there are, and change the range in the source")
            }
            Self::Unreachable { .. } => Some(UNREACHABLE),
            Self::Http { source, .. } => http_hint(source),
            Self::Oci { source, .. } => match source.as_ref() {
                OciError::Unauthorized { .. } => Some(LOGIN),
                OciError::DockerConfig(_) => Some(DOCKER_CONFIG),
                OciError::NotFound { .. } => Some("check the address and the tag or digest"),
                OciError::Http(source) => http_hint(source),
                _ => None,
            },
            Self::Git { source, .. } => match source.as_ref() {
                GitError::Unauthorized { .. } => Some(LOGIN),
                GitError::Fetch { .. } => Some(UNREACHABLE),
                _ => None,
            },
            _ => None,
        }
    }
}

const LOGIN: &str = "log in with `docker login` or in `~/.netrc`, or let the source's `secretRef` name a Secret of \
                     this repository";
const UNREACHABLE: &str = "check the network and the address; `--source NAME=DIR` gives the files from a directory, \
                           `--offline` uses what was fetched before";
const DOCKER_CONFIG: &str =
    "fix the file of logins, or let `DOCKER_CONFIG` name the directory of another";

fn http_hint(error: &HttpError) -> Option<&'static str> {
    match error {
        HttpError::Status {
            status: 401 | 403, ..
        } => Some(LOGIN),
        HttpError::Status { status: 404, .. } => Some("check the address and the version"),
        HttpError::Status { status: 500.., .. } => Some(
            "the server failed: try again later; `--source NAME=DIR` gives the files from a directory",
        ),
        HttpError::Request { .. } => Some(UNREACHABLE),
        HttpError::TooSlow { .. } => Some("try again later: what had come was thrown away"),
        HttpError::Truncated { .. } => Some("try again: what had come was thrown away"),
        _ => None,
    }
}

/// Names the source in errors of the crates below.
pub(crate) trait Naming<T> {
    /// Says which source failed.
    fn of(self, what: &str) -> Result<T, SourceError>;
}

impl<T> Naming<T> for Result<T, HttpError> {
    fn of(self, what: &str) -> Result<T, SourceError> {
        let what = what.to_owned();
        self.map_err(|source| match source {
            HttpError::Unreachable { source, .. } => SourceError::Unreachable { what, source },
            source => SourceError::Http { what, source },
        })
    }
}

impl<T> Naming<T> for Result<T, OciError> {
    fn of(self, what: &str) -> Result<T, SourceError> {
        let what = what.to_owned();
        self.map_err(|source| match source {
            OciError::Http(HttpError::Unreachable { source, .. }) => {
                SourceError::Unreachable { what, source }
            }
            source => SourceError::Oci {
                what,
                source: Box::new(source),
            },
        })
    }
}

impl<T> Naming<T> for Result<T, GitError> {
    fn of(self, what: &str) -> Result<T, SourceError> {
        let what = what.to_owned();
        self.map_err(|source| match source {
            GitError::Unreachable { source, .. } => SourceError::Unreachable { what, source },
            source => SourceError::Git {
                what,
                source: Box::new(source),
            },
        })
    }
}

impl<T> Naming<T> for Result<T, ReferenceError> {
    fn of(self, what: &str) -> Result<T, SourceError> {
        self.map_err(|source| SourceError::Reference {
            what: what.to_owned(),
            source,
        })
    }
}

impl<T> Naming<T> for Result<T, ArchiveError> {
    fn of(self, what: &str) -> Result<T, SourceError> {
        self.map_err(|source| SourceError::Archive {
            what: what.to_owned(),
            source,
        })
    }
}
