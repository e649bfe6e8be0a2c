//! Why a cluster did not give what was asked for.

use std::error::Error;
use std::time::Duration;

use kube::client::AuthError;
use portolan_engine::{causes, with_causes};

/// Why a cluster did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no usable kubeconfig, and this is not a pod.
    #[error("cannot determine which cluster to use: {0}")]
    Config(String),
    /// A kubeconfig is not one. The parser's own words quote the file, which holds credentials: only the place is told.
    #[error("the kubeconfig cannot be read: it is not YAML, or not a kubeconfig{place}")]
    Kubeconfig {
        /// `, at line 3`, or nothing where it is not known.
        place: String,
    },
    /// The API server could not be reached.
    #[error("cannot reach the API server at `{server}`: {cause}")]
    Unreachable {
        /// Its address.
        server: String,
        /// Why not.
        cause: String,
    },
    /// Whoever answers cannot prove to be the API server, or does not believe that we may ask.
    #[error("cannot make a safe connection to the API server at `{server}`: {cause}")]
    Untrusted {
        /// Its address.
        server: String,
        /// Why not.
        cause: String,
    },
    /// The credentials could not be got: a helper program failed, or a file is missing.
    #[error("cannot get credentials for the API server at `{server}`: {cause}")]
    Credentials {
        /// Its address.
        server: String,
        /// Why not.
        cause: String,
    },
    /// The API server took too long.
    #[error("the API server at `{server}` did not answer `{path}` within {seconds} s", seconds = .after.as_secs())]
    Timeout {
        /// Its address.
        server: String,
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
    /// Fields that were to be applied are somebody else's.
    #[error("{} of `{path}`", conflicts_text(.conflicts))]
    Conflict {
        /// What was to be changed.
        path: String,
        /// Who has which field.
        conflicts: Vec<FieldConflict>,
    },
    /// Fields were to be changed that cannot be.
    #[error("{} of `{path}` cannot be changed once it is made", fields_text(.fields))]
    Immutable {
        /// What was to be changed.
        path: String,
        /// The paths of the fields: `spec.selector`.
        fields: Vec<String>,
    },
    /// The object is not the one that was meant, or no longer what it was when it was read.
    #[error("`{path}` was changed by somebody else in the meantime")]
    Outdated {
        /// What was to be changed.
        path: String,
    },
    /// An object of that name was to be made and exists.
    #[error("`{path}` exists already")]
    Exists {
        /// Where it was to be made.
        path: String,
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
    /// There is no pod that a stream can lead to.
    #[error("no pod of `{target}` in the namespace `{namespace}` is ready: {why}")]
    NoPod {
        /// What has the pods: `service/web`.
        target: String,
        /// Its namespace.
        namespace: String,
        /// Why not.
        why: String,
    },
    /// The connection to a command in a pod broke before the command ended.
    #[error(
        "the connection to `{path}` broke before the command ended, which may still run: {cause}"
    )]
    Interrupted {
        /// What was asked for.
        path: String,
        /// Why.
        cause: String,
    },
}

/// A field that somebody else applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The field manager.
    pub manager: String,
    /// The field's path: `.spec.replicas`.
    pub field: String,
}

fn conflicts_text(conflicts: &[FieldConflict]) -> String {
    let each = conflicts
        .iter()
        .map(|conflict| format!("`{}` has {}", conflict.manager, conflict.field));
    each.collect::<Vec<_>>().join(", ")
}

fn fields_text(fields: &[String]) -> String {
    let fields = fields.iter().map(|field| format!("`{field}`"));
    fields.collect::<Vec<_>>().join(", ")
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
    /// Somebody else changed the same.
    Conflict,
    /// The API server failed.
    Server,
    /// Anything else.
    Other,
}

/// The words of whoever knows best: the last cause.
fn last_cause(error: &kube::Error) -> String {
    let auth = causes(error).find_map(|cause| cause.downcast_ref::<AuthError>());
    if let Some(AuthError::AuthExecRun { out, .. }) = auth {
        return plugin_words(out);
    }
    let cause = causes(error).last().map(ToString::to_string);
    cause.unwrap_or_default()
}

/// What a program for credentials said of its failure. Its standard output may hold some and is left out.
fn plugin_words(output: &std::process::Output) -> String {
    /// Enough for a sentence or two.
    const MAX_CHARS: usize = 500;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches("error: ");
    if said.is_empty() {
        return format!("it ended with {}", output.status);
    }
    said.chars().take(MAX_CHARS).collect()
}

impl ClusterError {
    /// Why there is no client for a server; credentials may come from a helper program.
    pub(crate) fn no_client(server: &str, helper: Option<&str>, error: &kube::Error) -> Self {
        if !causes(error).any(<dyn Error>::is::<AuthError>) {
            return Self::Config(with_causes(error));
        }
        let cause = last_cause(error);
        Self::Credentials {
            server: server.trim_end_matches('/').to_owned(),
            cause: match helper {
                Some(helper) => format!("`{helper}`: {cause}"),
                None => cause,
            },
        }
    }

    /// Why a request did not get through, in the words of whoever knows best: the last cause.
    pub(crate) fn unreachable(server: &str, error: &kube::Error) -> Self {
        let server = server.to_owned();
        let cause = last_cause(error);
        if causes(error).any(<dyn Error>::is::<AuthError>) {
            Self::Credentials { server, cause }
        } else if causes(error).any(is_tls) {
            Self::Untrusted { server, cause }
        } else {
            Self::Unreachable { server, cause }
        }
    }

    /// Whether the object or the kind does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Status { code: 404, .. })
    }

    /// Whether the API server could not ask a webhook about the object, which may be about to start.
    pub fn is_webhook_failure(&self) -> bool {
        matches!(self, Self::Status { code: 500..=599, message, .. } if message.contains("failed calling webhook"))
    }

    /// What the API server has against an object, if it refuses it for what it is: it is invalid, or somebody who is asked
    /// about every object forbids it. The same object is refused again.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Status {
                code: 400 | 422,
                message,
                ..
            } => Some(message),
            Self::Status {
                code: 403, message, ..
            } if message.contains("denied the request") || message.contains("violates") => {
                Some(message)
            }
            Self::Immutable { .. } => Some("fields were to be changed that cannot be"),
            // What is applied with a field that its type does not have is answered as if the server had failed.
            Self::Status {
                code: 500, message, ..
            } if message.contains("typed patch object") => Some(message),
            _ => None,
        }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_) | Self::Kubeconfig { .. } => ErrorKind::Config,
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Interrupted { .. } => {
                ErrorKind::Unreachable
            }
            Self::Credentials { .. } => ErrorKind::Unauthorized,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Gone { .. } => ErrorKind::Gone,
            Self::Conflict { .. } | Self::Outdated { .. } | Self::Exists { .. } => {
                ErrorKind::Conflict
            }
            Self::Answer { .. } | Self::NoPod { .. } | Self::Immutable { .. } => ErrorKind::Other,
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
    pub const ALL: [Self; 10] = [
        Self::Config,
        Self::Unreachable,
        Self::Timeout,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Throttled,
        Self::Gone,
        Self::Conflict,
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
            Self::Conflict => "conflict",
            Self::Server => "server",
            Self::Other => "other",
        }
    }
}

/// Whether an error is of the encrypted connection: it hides inside errors of reading and writing.
fn is_tls(mut error: &(dyn Error + 'static)) -> bool {
    while let Some(inner) = error.downcast_ref().and_then(std::io::Error::get_ref) {
        error = inner;
    }
    error.is::<rustls::Error>()
}
