//! The key of a node for shares, as other nodes check it: signed with the key of the node's certificate.
//!
//! ```text
//! authority of the fleet ──signs──▶ certificate of the node ──its key signs──▶ fleet, node, key for shares
//! ```

use std::time::Duration;

use rcgen::SigningKey as _;
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::certificate::{ClientCertificate, TrustedAuthority};
use crate::error::{IdentityError, failed};
use crate::key::NodeKey;
use crate::subject::SubjectKind;

/// Stands before what is signed, so that the signature says nothing else.
const PURPOSE: &str = "portolan share key 1";

/// The key of a node for shares, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareKeyClaim<'a> {
    /// The fleet.
    pub fleet: &'a str,
    /// The uuid of the Node.
    pub node: &'a str,
    /// The public key.
    pub key: &'a str,
}

impl ShareKeyClaim<'_> {
    /// Signs it with the key of the node's certificate.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn sign(&self, key: &NodeKey) -> Result<Vec<u8>, IdentityError> {
        let signature = key.pair.sign(&self.signed_bytes());
        signature.map_err(|_| failed("signature"))
    }

    /// Checks that an authority has signed the certificate of the node, and that the node has signed the key.
    ///
    /// # Errors
    /// When the certificate is of somebody else or not valid now, or the signature is wrong.
    pub fn check(
        &self,
        signature: &[u8],
        certificate: &[u8],
        authorities: &[TrustedAuthority],
        now: Duration,
    ) -> Result<(), IdentityError> {
        let read = ClientCertificate::read(certificate, self.fleet, authorities, now)?;
        if read.subject.kind != SubjectKind::Node || read.subject.id != self.node {
            return Err(IdentityError::OtherNode);
        }
        let der = CertificateDer::from(certificate);
        let certificate = EndEntityCert::try_from(&der).map_err(|_| IdentityError::Untrusted)?;
        let message = self.signed_bytes();
        let provider = rustls::crypto::ring::default_provider();
        let mut algorithms = provider.signature_verification_algorithms.all.iter();
        let is_signed = algorithms.any(|algorithm| {
            let checked = certificate.verify_signature(*algorithm, &message, signature);
            checked.is_ok()
        });
        if is_signed {
            Ok(())
        } else {
            Err(IdentityError::WrongSignature)
        }
    }

    /// The parts have no zero bytes, so no two claims give the same bytes.
    fn signed_bytes(&self) -> Vec<u8> {
        [PURPOSE, self.fleet, self.node, self.key]
            .join("\0")
            .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Authority, CertificateSubject, RequestedKey};

    const NOW: Duration = Duration::from_hours(500_000);
    const LIFE: Duration = Duration::from_hours(24);

    /// A node with its key and certificate.
    fn node(authority: &Authority, kind: SubjectKind, id: &str) -> (NodeKey, Vec<u8>) {
        let key = NodeKey::generate().expect("a key");
        let request = key.signing_request().expect("a request");
        let requested = RequestedKey::read(&request).expect("a request");
        let subject = CertificateSubject {
            fleet: "fleet".to_owned(),
            kind,
            id: id.to_owned(),
            epoch: 1,
        };
        let issued = authority.issue_client(&requested, &subject, id, NOW, LIFE);
        (key, issued.expect("a certificate").to_vec())
    }

    fn authority() -> Authority {
        Authority::create("fleet", 1, NOW, LIFE).expect("an authority")
    }

    fn trusted(authority: &Authority) -> TrustedAuthority {
        TrustedAuthority::read(authority.certificate()).expect("an authority")
    }

    #[test]
    fn only_the_node_itself_can_sign_its_key() {
        let (ours, foreign) = (authority(), authority());
        let trusted = [trusted(&ours)];
        let claim = ShareKeyClaim {
            fleet: "fleet",
            node: "a",
            key: "age1",
        };
        let (key, certificate) = node(&ours, SubjectKind::Node, "a");
        let signature = claim.sign(&key).expect("signed");
        let check = |claim: &ShareKeyClaim<'_>, signature: &[u8], certificate: &[u8], now| {
            claim.check(signature, certificate, &trusted, now)
        };
        check(&claim, &signature, &certificate, NOW).expect("its own key");
        // Another key, another node, and a changed signature.
        for false_claim in [
            ShareKeyClaim {
                key: "age2",
                ..claim
            },
            ShareKeyClaim { node: "b", ..claim },
            ShareKeyClaim {
                fleet: "x",
                ..claim
            },
        ] {
            let checked = check(&false_claim, &signature, &certificate, NOW);
            assert!(checked.is_err(), "{false_claim:?}");
        }
        assert!(check(&claim, b"", &certificate, NOW).is_err());
        assert!(check(&claim, &signature, b"", NOW).is_err());
        // A key of somebody else, of a user with that id, and of another fleet.
        let others = [
            node(&ours, SubjectKind::Node, "b"),
            node(&ours, SubjectKind::User, "a"),
            node(&foreign, SubjectKind::Node, "a"),
        ];
        for (key, own) in others {
            let signature = claim.sign(&key).expect("signed");
            assert!(check(&claim, &signature, &own, NOW).is_err());
            assert!(check(&claim, &signature, &certificate, NOW).is_err());
        }
        // After its end a certificate vouches for nothing new.
        let late = NOW + LIFE + LIFE;
        assert!(check(&claim, &signature, &certificate, late).is_err());
    }
}
