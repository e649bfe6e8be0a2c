//! Certificates as PEM text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::error::{IdentityError, malformed};

/// The most bytes of PEM text that are read: a chain and some authorities.
const MAX_BYTES: usize = 256 << 10;

/// Writes certificates, one after the other.
pub fn certificates_to_pem(certificates: &[CertificateDer<'_>]) -> String {
    certificates
        .iter()
        .map(|one| encode("CERTIFICATE", one))
        .collect()
}

/// Reads all certificates of a text.
///
/// # Errors
/// When the text is too long, damaged, or has no certificate.
pub fn certificates_from_pem(text: &str) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let wrong = || malformed("list of certificates in PEM format");
    if text.len() > MAX_BYTES {
        return Err(wrong());
    }
    let read: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    read.ok().filter(|all| !all.is_empty()).ok_or_else(wrong)
}

pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let (mut lines, mut rest) = (String::new(), body.as_str());
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}
