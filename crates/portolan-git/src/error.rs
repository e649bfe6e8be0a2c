//! Why git could not answer.

use camino::Utf8PathBuf;
use portolan_http::{HttpError, Unreachable};

/// A failed git operation.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No repository is there or above.
    #[error("`{path}` is not in a git repository")]
    NotARepository {
        /// The directory asked for.
        path: Utf8PathBuf,
        /// What gix said.
        #[source]
        source: Box<gix::Error>,
    },
    /// The repository's path is not UTF-8.
    #[error("the path `{0}` is not UTF-8")]
    PathNotUtf8(String),
    /// The revision names nothing.
    #[error("`{revision}` is not a revision of the repository{}{}", lacking(*shallow), hint(nearest))]
    UnknownRevision {
        /// The revision as written.
        revision: String,
        /// Names that look like it.
        nearest: Vec<String>,
        /// Whether the clone lacks history, so that it may exist elsewhere.
        shallow: bool,
    },
    /// The revision is there, but is no commit.
    #[error("`{revision}` does not lead to a commit")]
    NotACommit {
        /// The revision as written.
        revision: String,
        /// What gix said.
        #[source]
        source: Box<gix::Error>,
    },
    /// Two commits share no history.
    #[error("`{one}` and `{two}` have no commit in common{}", lacking(*shallow))]
    NoMergeBase {
        /// One commit.
        one: String,
        /// The other commit.
        two: String,
        /// Whether the clone lacks history, so that there may be one elsewhere.
        shallow: bool,
    },
    /// A path in a tree is not UTF-8.
    #[error("the name `{0}` in the tree is not UTF-8")]
    NameNotUtf8(String),
    /// The repository lacks objects or cannot be read.
    #[error("cannot read {what}{}", lacking(*shallow))]
    Read {
        /// What was read.
        what: String,
        /// Whether the clone lacks history, which may be the cause.
        shallow: bool,
        /// What gix said.
        #[source]
        source: Box<gix::Error>,
    },
    /// The address cannot be fetched from.
    #[error("cannot fetch from `{url}`: only http and https addresses are fetched")]
    Scheme {
        /// The address, without password.
        url: String,
    },
    /// The remote has no such ref.
    #[error("`{url}` has no {wanted}{}", hint(nearest))]
    UnknownRemoteRef {
        /// The address, without password.
        url: String,
        /// What was asked for.
        wanted: String,
        /// Names that look like it.
        nearest: Vec<String>,
    },
    /// The remote wants another login, or any.
    #[error("`{url}` refuses access: {}", login(*with_login))]
    Unauthorized {
        /// The address, without password.
        url: String,
        /// Whether a login was sent.
        with_login: bool,
    },
    /// Fetching failed.
    #[error("cannot fetch {wanted} from `{url}`")]
    Fetch {
        /// The address, without password.
        url: String,
        /// What was asked for.
        wanted: String,
        /// What gix said.
        #[source]
        source: Box<gix::Error>,
    },
    /// No connection can be made to the host.
    #[error("cannot fetch {wanted} from `{url}`")]
    Unreachable {
        /// The address, without password.
        url: String,
        /// What was asked for.
        wanted: String,
        /// The host and what stands in the way.
        #[source]
        source: Unreachable,
    },
    /// The remote takes too long.
    #[error("`{url}` is too slow: no end after {seconds} seconds")]
    TooSlow {
        /// The address, without password.
        url: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The remote sends too much.
    #[error("`{url}` sends more than {limit} bytes")]
    TooLarge {
        /// The address, without password.
        url: String,
        /// The most that is taken.
        limit: u64,
    },
    /// The remote does not keep to the protocol.
    #[error("`{url}` does not answer as a git server does")]
    Garbled {
        /// The address, without password.
        url: String,
    },
    /// The mirror directory cannot be used.
    #[error("cannot use the mirror `{directory}`")]
    Mirror {
        /// The directory.
        directory: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] HttpError),
}

fn lacking(shallow: bool) -> &'static str {
    if shallow {
        " (the clone is shallow and lacks history)"
    } else {
        ""
    }
}

fn hint(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!(", but `{}`", names.join("`, `")),
    }
}

fn login(with_login: bool) -> &'static str {
    if with_login {
        "the login was not accepted"
    } else {
        "it wants a login and none is given"
    }
}
