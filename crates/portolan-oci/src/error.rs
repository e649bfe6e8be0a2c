//! Why a reference cannot be read or a pull fails.

use portolan_http::HttpError;

use crate::Digest;

/// A reference that names nothing in a registry.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// There is no host before the first slash.
    #[error("`{0}` names no registry: expected `host/name`")]
    Registry(String),
    /// The name has characters that registries do not allow.
    #[error("`{0}` is not a repository name: lower-case letters, digits, `.`, `_`, `-` and `/`")]
    Name(String),
    /// The tag has characters that registries do not allow.
    #[error("`{0}` is not a tag: up to 128 letters, digits, `.`, `_` and `-`")]
    Tag(String),
    /// The digest is not `sha256:` and 64 lower-case hexadecimal digits.
    #[error(transparent)]
    Digest(#[from] portolan_digest::DigestError),
}

/// Stored logins that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DockerConfigError {
    /// The file cannot be read.
    #[error("cannot read the Docker configuration `{path}`")]
    Read {
        /// The file.
        path: String,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// What is in the file cannot be used.
    #[error("cannot use the logins in `{path}`")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        source: Box<Self>,
    },
    /// The file is not what `docker login` writes.
    #[error("the Docker configuration is not valid")]
    Parse(#[source] serde_json::Error),
    /// The `auth` text of a registry is not base64 of `user:password`.
    #[error("the stored login of `{registry}` is not base64 of `user:password`")]
    Auth {
        /// The registry as written in the file.
        registry: String,
    },
    /// A credential helper's name could be a path or an option.
    #[error("`{name}` is not a credential helper's name")]
    HelperName {
        /// The name as written in the file.
        name: String,
    },
    /// A credential helper could not be run.
    #[error("cannot run the credential helper `{program}`")]
    HelperStart {
        /// The program.
        program: String,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A credential helper ended with an error, or said something else than credentials.
    #[error("the credential helper `{program}` failed for `{registry}`: {reason}")]
    HelperFailed {
        /// The program.
        program: String,
        /// The registry asked for.
        registry: String,
        /// What it said.
        reason: String,
    },
}

/// A failed pull.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// The registry does not have it.
    #[error("`{subject}` is not in the registry")]
    NotFound {
        /// The reference or blob.
        subject: String,
    },
    /// The registry wants another login, or any.
    #[error("the registry refuses access to `{subject}`: {}", login(*with_login))]
    Unauthorized {
        /// The reference or blob.
        subject: String,
        /// Whether a login was sent.
        with_login: bool,
    },
    /// The registry asks for a login in a way nobody knows.
    #[error("the registry asks for a login that is not understood: `{challenge}`")]
    Challenge {
        /// The header it sent.
        challenge: String,
    },
    /// The content is not what its name says.
    #[error("`{subject}` has the digest `{actual}`, not `{expected}`")]
    DigestMismatch {
        /// The reference or blob.
        subject: String,
        /// The digest that was asked for or announced.
        expected: Digest,
        /// The digest of what came.
        actual: Digest,
    },
    /// The content has another length than announced.
    #[error("`{subject}` has {actual} bytes, not {expected}")]
    SizeMismatch {
        /// The reference or blob.
        subject: String,
        /// The announced length.
        expected: u64,
        /// The length of what came.
        actual: u64,
    },
    /// The manifest or tag list is not valid.
    #[error("`{subject}` is not valid")]
    Parse {
        /// The reference.
        subject: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// An index offers no image for the platform.
    #[error("`{subject}` has no image for `{platform}`")]
    NoPlatform {
        /// The reference.
        subject: String,
        /// The platform asked for.
        platform: String,
    },
    /// The registry took all of it and did not say that it has it.
    #[error("the registry answered {status} after `{subject}` was sent: it is not stored")]
    NotStored {
        /// The blob.
        subject: String,
        /// What it answered.
        status: u16,
    },
    /// The registry redirected us, and the other host asks for a login; it gets none.
    #[error(
        "`{subject}` is redirected to `{host}`, which asks for a login: logins go to the registry alone"
    )]
    ForeignChallenge {
        /// The reference or blob.
        subject: String,
        /// The host that asks.
        host: String,
    },
    /// The registry goes on and on.
    #[error("the tag list of `{subject}` does not end: {reason}")]
    EndlessTags {
        /// The repository.
        subject: String,
        /// What gave it away.
        reason: String,
    },
    /// The registry sends us to another host in the middle of a list.
    #[error("the tag list of `{subject}` goes on at another host")]
    ForeignLink {
        /// The repository.
        subject: String,
    },
    /// The registry wants a blob at another host, which gets none.
    #[error("the registry wants `{subject}` to be sent to another host")]
    ForeignUpload {
        /// The blob.
        subject: String,
    },
    /// The content could not be written where the caller wants it.
    #[error("cannot store `{subject}`")]
    Store {
        /// The blob.
        subject: String,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// Stored logins cannot be used.
    #[error(transparent)]
    DockerConfig(#[from] DockerConfigError),
    /// The exchange itself failed.
    #[error(transparent)]
    Http(#[from] HttpError),
}

fn login(with_login: bool) -> &'static str {
    if with_login {
        "the login was not accepted"
    } else {
        "no login is stored for it"
    }
}
