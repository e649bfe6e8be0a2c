//! The TLS settings of one source: trusted certificates and the client certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

use crate::{HttpError, Secret};

/// TLS settings; the default trusts what the machine trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// Certificate authorities (PEM) trusted besides the machine's.
    pub authorities: Vec<String>,
    /// A client certificate.
    pub identity: Option<Identity>,
    /// Trusts any certificate: for `--insecure-skip-tls-verify` only.
    pub skip_verification: bool,
}

/// A client certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The certificate chain (PEM).
    pub certificate: String,
    /// The private key (PEM).
    pub key: Secret,
}

// === impl Tls ===

impl Tls {
    /// The settings as rustls wants them, with ring as crypto provider.
    pub fn client_config(&self) -> Result<ClientConfig, HttpError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| tls_error("the TLS versions", source))?;
        let authorities = self.authorities()?;
        let builder = if self.skip_verification {
            let verifier = Arc::new(TrustAnyone { provider });
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        } else {
            match Verifier::new_with_extra_roots(authorities.clone(), provider) {
                Ok(verifier) => builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier)),
                // A machine without certificates still speaks plain HTTP; every TLS handshake then fails by itself.
                Err(_) if authorities.is_empty() => {
                    builder.with_root_certificates(RootCertStore::empty())
                }
                Err(source) => return Err(tls_error("the certificate authorities", source)),
            }
        };
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain()?, identity.key()?)
                .map_err(|source| tls_error("the client certificate", source)),
        }
    }

    fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, HttpError> {
        let mut all = Vec::new();
        for pem in &self.authorities {
            let before = all.len();
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                all.push(
                    certificate.map_err(|source| tls_error("a certificate authority", source))?,
                );
            }
            if all.len() == before {
                return Err(tls_error(
                    "a certificate authority",
                    "no PEM certificate in it",
                ));
            }
        }
        Ok(all)
    }
}

// === impl Identity ===

impl Identity {
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, HttpError> {
        CertificateDer::pem_slice_iter(self.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|source| tls_error("the client certificate", source))
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, HttpError> {
        PrivateKeyDer::from_pem_slice(self.key.expose().as_bytes())
            .map_err(|source| tls_error("the client key", source))
    }
}

fn tls_error(
    what: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> HttpError {
    HttpError::Tls {
        what,
        source: source.into(),
    }
}

/// Accepts every certificate, as the user asked by flag; signatures of the handshake are still checked.
#[derive(Debug)]
struct TrustAnyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_certificate_is_refused_as_authority() {
        let tls = Tls {
            authorities: vec!["not a certificate".to_owned()],
            ..Tls::default()
        };
        let error = tls.client_config().unwrap_err();
        assert_eq!(error.to_string(), "cannot use a certificate authority");
    }
}
