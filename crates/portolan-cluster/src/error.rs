//! Why a cluster did not give what was asked for.

use std::time::Duration;

/// Why a cluster did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no usable kubeconfig, and this is not a pod.
    #[error("cannot tell which cluster is meant")]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A kubeconfig is not one. The parser's own words quote the file, which holds credentials: only the place is told.
    #[error("the kubeconfig cannot be read: it is not YAML, or not a kubeconfig{place}")]
    Kubeconfig {
        /// `, at line 3`, or nothing where it is not known.
        place: String,
    },
    /// The API server could not be reached.
    #[error("cannot reach the API server")]
    Unreachable(#[source] kube::Error),
    /// The API server took too long.
    #[error("the API server did not answer `{path}` within {seconds} s", seconds = .after.as_secs())]
    Timeout {
        /// What was asked for.
        path: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The API server answered with an error.
    #[error("the API server answered {code} to `{path}`: {message}")]
    Status {
        /// What was asked for.
        path: String,
        /// The HTTP status.
        code: u16,
        /// What it said.
        message: String,
    },
    /// A list changed too much while it was read.
    #[error("the list `{path}` changed too much while it was read")]
    Gone {
        /// What was asked for.
        path: String,
        /// A token that goes on with the list as it is now, when the server gives one.
        fresh: Option<String>,
    },
    /// The answer could not be understood.
    #[error("cannot understand the answer to `{path}`: {message}")]
    Answer {
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        message: String,
    },
}

/// The kinds of errors, as metrics tell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// No cluster is configured.
    Config,
    /// The API server cannot be reached.
    Unreachable,
    /// It takes too long.
    Timeout,
    /// The credentials are not known, or no longer.
    Unauthorized,
    /// They do not suffice.
    Forbidden,
    /// Too many requests.
    Throttled,
    /// The list changed too much while it was read.
    Gone,
    /// The API server failed.
    Server,
    /// Anything else.
    Other,
}

impl ClusterError {
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_) | Self::Kubeconfig { .. } => ErrorKind::Config,
            Self::Unreachable(_) => ErrorKind::Unreachable,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Gone { .. } => ErrorKind::Gone,
            Self::Answer { .. } => ErrorKind::Other,
            Self::Status { code, .. } => match code {
                401 => ErrorKind::Unauthorized,
                403 => ErrorKind::Forbidden,
                429 => ErrorKind::Throttled,
                500..=599 => ErrorKind::Server,
                _ => ErrorKind::Other,
            },
        }
    }
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Config,
        Self::Unreachable,
        Self::Timeout,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Throttled,
        Self::Gone,
        Self::Server,
        Self::Other,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Throttled => "throttled",
            Self::Gone => "gone",
            Self::Server => "server",
            Self::Other => "other",
        }
    }
}
