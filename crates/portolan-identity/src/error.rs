//! What can be wrong with a certificate, a token or an enrolment.

use std::time::Duration;

/// Why a certificate, a key or a token cannot be used. No message quotes a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// It is not what it should be.
    #[error("not a valid {what}")]
    Malformed {
        /// What it should be.
        what: &'static str,
    },
    /// No trusted authority has signed it.
    #[error("the certificate is not signed by an authority of this fleet")]
    Untrusted,
    /// It is of another fleet.
    #[error("the certificate is for fleet `{0}`")]
    OtherFleet(String),
    /// Its time is over, or has not come.
    #[error("the certificate is not valid now")]
    NotValidNow,
    /// It is of another node, or of none.
    #[error("the certificate is not that of the node")]
    OtherNode,
    /// Somebody else has signed, or something else was signed.
    #[error("the signature is not that of the node")]
    WrongSignature,
    /// It could not be made.
    #[error("cannot make a {what}")]
    Failed {
        /// What was to be made.
        what: &'static str,
    },
}

/// Why an agent has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The address is none.
    #[error("`{0}` is not an address such as https://server:7443")]
    Address(String),
    /// The server cannot be reached.
    #[error("cannot reach `{server}`")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The server did not answer in time.
    #[error("`{server}` did not answer within {} s", .after.as_secs())]
    TooSlow {
        /// The server.
        server: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The connection broke, or the answer is too large.
    #[error("`{server}` did not answer as a Portolan server does")]
    Foreign {
        /// The server.
        server: String,
    },
    /// The server refused it.
    #[error("{message}")]
    Refused {
        /// The status in HTTP.
        status: u16,
        /// The reason, for programs.
        reason: String,
        /// The reason, for people.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A key, certificate or token cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// TLS cannot be set up with them.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

pub(crate) fn malformed(what: &'static str) -> IdentityError {
    IdentityError::Malformed { what }
}

pub(crate) fn failed(what: &'static str) -> IdentityError {
    IdentityError::Failed { what }
}
