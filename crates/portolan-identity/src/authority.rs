//! An authority of a fleet: a key that signs certificates of nodes, users and servers.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
    SanType,
};
use rustls::pki_types::CertificateDer;
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::error::{IdentityError, failed, malformed};
use crate::pem::certificates_to_pem;
use crate::pin::CaPin;
use crate::subject::CertificateSubject;

/// Clocks of other machines may be behind by so much.
const CLOCK_SKEW: Duration = Duration::from_hours(1);

/// The most bytes of a signing request.
const MAX_REQUEST: usize = 16 << 10;

/// Signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

/// A public key that a certificate is asked for; its sender has proved to have the private one.
#[derive(Debug, Clone)]
pub struct RequestedKey {
    key: rcgen::PublicKey,
}

/// The names that clients call a server by, the first one being shown to people.
pub type ServerNames = [String];

/// A server's certificate and key, in PEM format.
pub struct IssuedServer {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: Zeroizing<String>,
}

impl Authority {
    /// Makes an authority. `number` tells the authorities of a fleet apart; times are since 1970.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn create(
        fleet: &str,
        number: u32,
        now: Duration,
        life: Duration,
    ) -> Result<Self, IdentityError> {
        let wrong = |_| failed("certificate authority");
        let key = KeyPair::generate().map_err(wrong)?;
        let params = authority_params(fleet, number, now, life);
        let certificate = params.self_signed(&key).map_err(wrong)?;
        Ok(Self {
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        })
    }

    /// A certificate for the key of the next authority. With it, who trusts only this one also trusts what the next
    /// one signs.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn cross_sign(
        &self,
        next: &Self,
        (fleet, number): (&str, u32),
        now: Duration,
        life: Duration,
    ) -> Result<CertificateDer<'static>, IdentityError> {
        let params = authority_params(fleet, number, now, life);
        let signed = params.signed_by(next.issuer.key(), &self.issuer);
        let certificate = signed.map_err(|_| failed("certificate authority"))?;
        Ok(certificate.der().clone())
    }

    /// Opens an authority from its certificate and key (PKCS #8, DER).
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn open(certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let wrong = |_| malformed("certificate authority");
        let certificate = CertificateDer::from(certificate.to_vec());
        let key = KeyPair::try_from(key).map_err(wrong)?;
        Ok(Self {
            issuer: Issuer::from_ca_cert_der(&certificate, key).map_err(wrong)?,
            certificate,
        })
    }

    /// Its own certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Its key (PKCS #8, DER), to be encrypted before it is stored.
    pub fn key(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.issuer.key().serialize_der())
    }

    /// A certificate for a node or a user, whose name is for people only.
    ///
    /// # Errors
    /// When a name cannot stand in a certificate.
    pub fn issue_client(
        &self,
        key: &RequestedKey,
        subject: &CertificateSubject,
        name: &str,
        now: Duration,
        life: Duration,
    ) -> Result<CertificateDer<'static>, IdentityError> {
        let wrong = |_| failed("client certificate");
        let mut params = CertificateParams::default();
        for uri in subject.names() {
            let uri = uri.try_into().map_err(wrong)?;
            params.subject_alt_names.push(SanType::URI(uri));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        set_time(&mut params, now, life);
        let certificate = params.signed_by(&key.key, &self.issuer).map_err(wrong)?;
        Ok(certificate.der().clone())
    }

    /// A new key and certificate for a server of these names.
    ///
    /// # Errors
    /// When a name cannot stand in a certificate.
    pub fn issue_server(
        &self,
        names: &ServerNames,
        now: Duration,
        life: Duration,
    ) -> Result<IssuedServer, IdentityError> {
        let wrong = |_| failed("server certificate");
        let key = KeyPair::generate().map_err(wrong)?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(wrong)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name = DistinguishedName::new();
        let name = names.first().map_or("portolan", String::as_str);
        params.distinguished_name.push(DnType::CommonName, name);
        set_time(&mut params, now, life);
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        Ok(IssuedServer {
            certificate: certificates_to_pem(&[certificate.der().clone()]),
            key: Zeroizing::new(key.serialize_pem()),
        })
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Authority([redacted])")
    }
}

impl RequestedKey {
    /// Reads a signing request in PEM format and checks that its sender has the key. Only ECDSA on P-256 and Ed25519
    /// are taken.
    ///
    /// # Errors
    /// When it cannot be read, or its signature is wrong.
    pub fn read(request: &str) -> Result<Self, IdentityError> {
        let wrong = || malformed("signing request in PEM format");
        if request.len() > MAX_REQUEST {
            return Err(wrong());
        }
        let request = CertificateSigningRequestParams::from_pem(request).map_err(|_| wrong())?;
        let algorithm = request.public_key.algorithm();
        let known = [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519];
        if !known.into_iter().any(|one| one == algorithm) {
            return Err(malformed(
                "signing request: the key must be ECDSA P-256 or Ed25519",
            ));
        }
        Ok(Self {
            key: request.public_key,
        })
    }

    /// The digest of the key.
    pub fn fingerprint(&self) -> CaPin {
        CaPin::of_public_key(&self.key.subject_public_key_info())
    }
}

fn authority_params(fleet: &str, number: u32, now: Duration, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    // One more authority may stand below it: the next one, while both are trusted.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name = DistinguishedName::new();
    let name = format!("Portolan fleet {fleet} authority {number}");
    params.distinguished_name.push(DnType::CommonName, name);
    set_time(&mut params, now, life);
    params
}

fn set_time(params: &mut CertificateParams, now: Duration, life: Duration) {
    let start = OffsetDateTime::UNIX_EPOCH;
    params.not_before = start + now.saturating_sub(CLOCK_SKEW);
    params.not_after = start + now + life;
}
