//! What a client's certificate says, and whether an authority of the fleet has signed it.

use std::time::Duration;

use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::X509Certificate;

use crate::error::{IdentityError, malformed};
use crate::pin::CaPin;
use crate::subject::CertificateSubject;

/// The most bytes of a client's certificate; ours have about 600.
const MAX_BYTES: usize = 8 << 10;

/// An authority whose certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedAuthority {
    certificate: CertificateDer<'static>,
    /// Until when it is valid, since 1970.
    expires: Duration,
}

/// A certificate that an authority of the fleet has signed.
///
/// That holds for ever; whether it is valid at a time, and what its subject may do, is another question, because a
/// connection that is resumed shows a certificate that was read long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Whom it is for.
    pub subject: CertificateSubject,
    /// The name for people.
    pub name: String,
    /// The digest of its public key.
    pub key: CaPin,
    /// From when it is valid, since 1970.
    pub starts: Duration,
    /// Until when it is valid, since 1970; the end of its authority's time, if that is earlier.
    pub expires: Duration,
}

impl TrustedAuthority {
    /// Reads the certificate of an authority.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(der: &[u8]) -> Result<Self, IdentityError> {
        let certificate = parse(der)?;
        Ok(Self {
            expires: seconds(certificate.validity().not_after.timestamp()),
            certificate: CertificateDer::from(der.to_vec()),
        })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Until when it is valid, since 1970.
    pub fn expires(&self) -> Duration {
        self.expires
    }

    fn anchor(&self) -> Option<TrustAnchor<'_>> {
        anchor_from_trusted_cert(&self.certificate).ok()
    }
}

impl ClientCertificate {
    /// Reads a client's certificate and checks that one of the authorities has signed it for this fleet.
    ///
    /// # Errors
    /// When it cannot be read, is of somebody else, or is not valid now.
    pub fn read(
        der: &[u8],
        fleet: &str,
        authorities: &[TrustedAuthority],
        now: Duration,
    ) -> Result<Self, IdentityError> {
        let mut certificate = Self::read_unchecked(der)?;
        let signer = authorities
            .iter()
            .find(|authority| is_signed_by(der, authority, certificate.starts));
        let signer = signer.ok_or(IdentityError::Untrusted)?;
        if certificate.subject.fleet != fleet {
            return Err(IdentityError::OtherFleet(certificate.subject.fleet));
        }
        certificate.expires = certificate.expires.min(signer.expires);
        if certificate.is_valid_at(now) {
            Ok(certificate)
        } else {
            Err(IdentityError::NotValidNow)
        }
    }

    /// Whether its time has come and is not over.
    pub fn is_valid_at(&self, now: Duration) -> bool {
        self.starts <= now && now < self.expires
    }

    /// What a certificate says, whoever signed it.
    ///
    /// # Errors
    /// When it cannot be read, or is not for a node or user.
    pub fn read_unchecked(der: &[u8]) -> Result<Self, IdentityError> {
        let certificate = parse(der)?;
        let mut uris = Vec::new();
        for extension in certificate.extensions() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
                for name in &names.general_names {
                    match name {
                        GeneralName::URI(uri) => uris.push(*uri),
                        _ => return Err(malformed("certificate of a node or user")),
                    }
                }
            }
        }
        let name = certificate.subject().iter_common_name().next();
        let name = name.and_then(|name| name.as_str().ok()).unwrap_or_default();
        let validity = certificate.validity();
        Ok(Self {
            subject: CertificateSubject::read(uris)?,
            name: name.to_owned(),
            key: CaPin::of_public_key(certificate.public_key().raw),
            starts: seconds(validity.not_before.timestamp()),
            expires: seconds(validity.not_after.timestamp()),
        })
    }
}

/// Whether the signature and the purpose are right. The time is left out of it: the certificate's own beginning is
/// always valid.
fn is_signed_by(der: &[u8], authority: &TrustedAuthority, at: Duration) -> bool {
    let der = CertificateDer::from(der);
    let Ok(certificate) = EndEntityCert::try_from(&der) else {
        return false;
    };
    let Some(anchor) = authority.anchor() else {
        return false;
    };
    let (anchors, provider) = ([anchor], rustls::crypto::ring::default_provider());
    let verified = certificate.verify_for_usage(
        provider.signature_verification_algorithms.all,
        &anchors,
        &[],
        UnixTime::since_unix_epoch(at),
        KeyUsage::client_auth(),
        None,
        None,
    );
    verified.is_ok()
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, IdentityError> {
    let wrong = || malformed("certificate");
    if der.len() > MAX_BYTES {
        return Err(wrong());
    }
    let (rest, certificate) = x509_parser::parse_x509_certificate(der).map_err(|_| wrong())?;
    if rest.is_empty() {
        Ok(certificate)
    } else {
        Err(wrong())
    }
}

fn seconds(timestamp: i64) -> Duration {
    Duration::from_secs(u64::try_from(timestamp).unwrap_or(0))
}
