//! The other end of a TLS connection: the certificate that it showed, and a secret that only both ends know.
//!
//! A resumed connection brings the certificate of the first one, and nobody is asked to verify it again. So the
//! handshake only proves that the client has the key of its certificate; what the certificate is worth is decided by
//! the server, for every request.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, ProtocolVersion, SignatureScheme};

/// In the extensions of every request over TLS to a server that asks for certificates, as an `Arc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsPeer {
    /// The certificate that the client has shown and has the key of. Nobody has checked who signed it, or when.
    pub certificate: Option<CertificateDer<'static>>,
    /// A value that only this connection has at both ends; `None` before TLS 1.3.
    pub exporter: Option<[u8; 32]>,
}

impl TlsPeer {
    pub(crate) fn of(connection: &rustls::ServerConnection, label: &[u8]) -> Self {
        let chain = connection.peer_certificates();
        let certificate = chain.and_then(|chain| chain.first());
        let is_current = connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        let exporter = connection.export_keying_material([0; 32], label, None);
        Self {
            certificate: certificate.map(|one| one.clone().into_owned()),
            exporter: exporter.ok().filter(|_| is_current),
        }
    }
}

/// Takes any certificate whose key the client has, and none.
#[derive(Debug)]
pub(crate) struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl AnyCertificate {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider }
    }
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
