//! One request over TLS, to a server whose authority is known by its digest or by its certificate.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::{EnrolError, IdentityError, malformed};
use crate::key::NodeKey;
use crate::pem::certificates_from_pem;
use crate::pin::CaPin;

/// The label of the value that both ends of a TLS connection derive for an enrolment.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-portolan-enrolment";
/// The length of that value.
pub const EXPORTER_BYTES: usize = 32;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 256 << 10;

/// A server that requests are sent to.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) address: String,
    pub(crate) timeout: Duration,
    pub(crate) time: Arc<dyn TimeProvider>,
}

/// The status and JSON of an answer.
pub(crate) type Answer = (u16, Value);

impl Transport {
    /// Sends a request whose body may depend on the connection.
    pub(crate) async fn post(
        &self,
        config: ClientConfig,
        path: &str,
        body: impl FnOnce(&[u8; EXPORTER_BYTES]) -> Result<Value, IdentityError>,
    ) -> Result<Answer, EnrolError> {
        let exchange = self.exchange(config, path, body);
        let result = tokio::time::timeout(self.timeout, exchange).await;
        result.unwrap_or_else(|_| {
            Err(EnrolError::TooSlow {
                server: self.address.clone(),
                after: self.timeout,
            })
        })
    }

    async fn exchange(
        &self,
        config: ClientConfig,
        path: &str,
        body: impl FnOnce(&[u8; EXPORTER_BYTES]) -> Result<Value, IdentityError>,
    ) -> Result<Answer, EnrolError> {
        let unreachable = |source| EnrolError::Unreachable {
            server: self.address.clone(),
            source,
        };
        let foreign = || EnrolError::Foreign {
            server: self.address.clone(),
        };
        let (host, authority, port) = self.host()?;
        let name = ServerName::try_from(host.clone())
            .map_err(|_| EnrolError::Address(self.address.clone()))?;
        let stream = TcpStream::connect((host.as_str(), port)).await;
        let stream = stream.map_err(unreachable)?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.map_err(unreachable)?;
        let exporter =
            stream
                .get_ref()
                .1
                .export_keying_material([0; EXPORTER_BYTES], EXPORTER_LABEL, None)?;
        let body = body(&exporter)?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, authority)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|_| EnrolError::Address(self.address.clone()))?;
        let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = opened.map_err(|_| foreign())?;
        let answered = async {
            let response = sender.send_request(request).await.map_err(|_| foreign())?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await;
            let bytes = body.map_err(|_| foreign())?.to_bytes();
            let value = serde_json::from_slice(&bytes).map_err(|_| foreign())?;
            Ok::<Answer, EnrolError>((status, value))
        };
        let mut connection = std::pin::pin!(connection);
        let mut answered = std::pin::pin!(answered);
        tokio::select! {
            answer = &mut answered => answer,
            // A connection that the server has closed may still have brought the answer.
            _ = &mut connection => answered.await,
        }
    }

    /// The host, the authority for the `Host` header, and the port.
    fn host(&self) -> Result<(String, String, u16), EnrolError> {
        let wrong = || EnrolError::Address(self.address.clone());
        let uri: Uri = self.address.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        if uri.scheme_str() != Some("https") || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let port = authority.port_u16().unwrap_or(443);
        Ok((host.to_owned(), authority.to_string(), port))
    }

    /// TLS with a server whose chain has a certificate with this key.
    pub(crate) fn pinned(&self, pin: CaPin) -> Result<ClientConfig, EnrolError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = PinnedVerifier {
            pin,
            provider: Arc::clone(&provider),
        };
        let builder = ClientConfig::builder_with_details(provider, Arc::clone(&self.time));
        let config = builder
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(config)
    }

    /// TLS with a server of a fleet, as the owner of a certificate.
    pub(crate) fn mutual(
        &self,
        authorities: &str,
        certificate: &str,
        key: &NodeKey,
    ) -> Result<ClientConfig, EnrolError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for authority in certificates_from_pem(authorities)? {
            roots
                .add(authority)
                .map_err(|_| malformed("certificate of an authority"))?;
        }
        let builder = ClientConfig::builder_with_details(provider, Arc::clone(&self.time));
        let config = builder
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_client_auth_cert(certificates_from_pem(certificate)?, key.for_tls()?)?;
        Ok(config)
    }
}

/// The clock of the machine.
#[derive(Debug)]
pub(crate) struct MachineTime;

impl TimeProvider for MachineTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::now())
    }
}

/// Accepts a server whose chain leads to the certificate with a known key.
#[derive(Debug)]
struct PinnedVerifier {
    pin: CaPin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let has_key =
            |der: &&CertificateDer<'_>| CaPin::of_certificate(der).is_ok_and(|pin| pin == self.pin);
        // The key of the server itself says more than any name.
        if has_key(&end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let anchor = intermediates.iter().find(has_key).ok_or_else(unknown)?;
        let mut roots = RootCertStore::empty();
        roots.add(anchor.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&self.provider),
        )
        .build()
        .map_err(|_| unknown())?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // Only TLS 1.3 is offered: its exporter is bound to the whole handshake.
        Err(rustls::Error::InvalidCertificate(
            CertificateError::BadSignature,
        ))
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
