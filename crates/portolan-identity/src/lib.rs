//! Who is who in a fleet: authorities, client certificates, join tokens, and the enrolment of nodes.
//!
//! ```text
//! server:  Authority ──signs──▶ certificate of a node, a user or a server
//!          ClientCertificate::read ◀── what a client shows with each connection
//! agent:   JoinToken + CaPin ──EnrolClient::enrol──▶ Enrolled (certificate and authorities) ──renew──▶ Enrolled
//! ```
//!
//! [`Authority`] makes certificates and [`ClientCertificate`] reads them back: who a certificate is for stands in
//! its URI names, and nothing that a client asks for in a signing request is taken over. [`EnrolClient`] is what an
//! agent runs: it proves that it knows a join token without sending it, and only to the server whose authority it was
//! told. This crate decides nothing about rights and keeps nothing.

mod error;
mod pem;

mod key;
mod pin;
mod subject;

mod authority;
mod certificate;
mod join_token;
mod share_key;

mod enrol;
mod transport;

pub use authority::{Authority, IssuedServer, RequestedKey, ServerNames};
pub use certificate::{ClientCertificate, TrustedAuthority};
pub use enrol::{EnrolClient, Enrolled, Enrolment};
pub use error::{EnrolError, IdentityError};
pub use join_token::{EnrolProof, JoinToken, JoinTokenKey};
pub use key::NodeKey;
pub use pem::{certificates_from_pem, certificates_to_pem};
pub use pin::CaPin;
pub use share_key::ShareKeyClaim;
pub use subject::{CertificateSubject, SubjectKind};
pub use transport::{EXPORTER_BYTES, EXPORTER_LABEL};
