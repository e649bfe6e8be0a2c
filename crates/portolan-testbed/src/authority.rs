//! A certificate authority for one test, with one certificate for this machine.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What a server needs to speak TLS, and what a client needs to trust it; all PEM.
pub struct Authority {
    /// The authority's certificate, for the client.
    pub certificate: String,
    /// The server's certificate for `127.0.0.1` and `localhost`.
    pub server_certificate: String,
    /// The server's key.
    pub server_key: String,
}

impl Authority {
    /// Makes an authority and a server certificate signed by it.
    ///
    /// # Panics
    /// When there is no randomness to be had.
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let issuer = Issuer::new(params, key);
        let server_key = KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let server = CertificateParams::new(names).expect("valid names");
        let server = server.signed_by(&server_key, &issuer).expect("a signature");
        Self {
            certificate: certificate.pem(),
            server_certificate: server.pem(),
            server_key: server_key.serialize_pem(),
        }
    }

    /// What a TLS server of the test's own speaks with.
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        let certificate = CertificateDer::from_pem_slice(self.server_certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.server_key.as_bytes());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.expect("written by rcgen")],
                key.expect("written by rcgen"),
            );
        Arc::new(config.expect("the key fits the certificate"))
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
