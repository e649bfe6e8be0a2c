//! The certificate of a server: from files that another program renews, or from our own certificate authority.
//!
//! The certificate is checked again while the server runs; a new one is used for the next connection. One that cannot
//! be used is logged, and the old one stays.

mod authority;
mod peer;
mod shared;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use authority::Authority;
pub(crate) use peer::AnyCertificate;
pub use peer::TlsPeer;
pub use shared::SharedCertificate;

/// Where a server's certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSource {
    /// PEM files: the chain with the server's certificate first, and its key.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// An authority of our own, made at the first start. Clients trust the directory's `ca.pem`.
    OwnAuthority {
        /// Where the authority's certificate and key are kept.
        directory: PathBuf,
        /// The host names and addresses that clients call the server by.
        names: Vec<String>,
    },
    /// A certificate that the server itself renews.
    Shared(SharedCertificate),
}

/// Why there is no certificate to show.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A file is not what it should be. The parser's own words are left out: they could quote a key.
    #[error("`{path}` holds no {what} in PEM format")]
    Pem {
        /// The file.
        path: PathBuf,
        /// `certificate` or `private key`.
        what: &'static str,
    },
    /// Certificate and key cannot be used together.
    #[error("the certificate and its key cannot be used")]
    Unusable(#[from] rustls::Error),
    /// Our own authority could not make a certificate.
    #[error("cannot make a certificate")]
    Issue(#[from] rcgen::Error),
}

/// The certificate in use, and what it is renewed from.
#[derive(Debug)]
pub(crate) struct Certificates {
    source: TlsSource,
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    /// What it was made from: equal material needs no new certificate.
    material: Material,
}

/// A chain and its key in PEM, and when to make the next one of our own.
#[derive(Clone, PartialEq, Eq)]
struct Material {
    certificate: Vec<u8>,
    key: Vec<u8>,
    certificate_path: PathBuf,
    key_path: PathBuf,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Certificates {
    pub(crate) fn load(source: TlsSource) -> Result<Arc<Self>, TlsError> {
        let material = Material::get(&source)?;
        let current = Current {
            key: Arc::new(material.certified_key()?),
            material,
        };
        Ok(Arc::new(Self {
            source,
            current: RwLock::new(current),
        }))
    }

    /// What speaks TLS for this server: HTTP/2 and HTTP/1, TLS 1.2 and 1.3.
    pub(crate) fn server_config(
        self: &Arc<Self>,
        asks_clients: bool,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = if asks_clients {
            builder.with_client_cert_verifier(Arc::new(AnyCertificate::new(provider)))
        } else {
            builder.with_no_client_auth()
        };
        let mut config =
            builder.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Looks again and again whether there is a new certificate, until the future is dropped.
    pub(crate) async fn keep_current(self: Arc<Self>, every: Duration) {
        let mut replacements = match &self.source {
            TlsSource::Shared(shared) => Some(shared.replacements()),
            _ => None,
        };
        let own = matches!(self.source, TlsSource::OwnAuthority { .. });
        let every = if own { authority::RENEW_EVERY } else { every };
        loop {
            match &mut replacements {
                Some(replacements) => replacements.next().await,
                None => tokio::time::sleep(every).await,
            }
            let this = Arc::clone(&self);
            // Files are read, and keys made.
            let renewed = tokio::task::spawn_blocking(move || this.renew()).await;
            match renewed {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => tracing::info!("the certificate was renewed"),
                Ok(Err(error)) => tracing::warn!(
                    error = %error,
                    cause = std::error::Error::source(&error).map(tracing::field::display),
                    "the new certificate cannot be used"
                ),
                Err(error) => tracing::error!(%error, "the certificate could not be renewed"),
            }
        }
    }

    fn renew(&self) -> Result<bool, TlsError> {
        let material = Material::get(&self.source)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.material == material {
            return Ok(false);
        }
        let key = Arc::new(material.certified_key()?);
        *current = Current { key, material };
        Ok(true)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current.key))
    }
}

impl Material {
    fn get(source: &TlsSource) -> Result<Self, TlsError> {
        match source {
            TlsSource::Files { certificate, key } => Ok(Self {
                certificate: read(certificate)?,
                key: read(key)?,
                certificate_path: certificate.clone(),
                key_path: key.clone(),
            }),
            TlsSource::OwnAuthority { directory, names } => {
                let issued = Authority::open(directory)?.issue(names)?;
                Ok(Self {
                    certificate: issued.certificate.into_bytes(),
                    key: issued.key.into_bytes(),
                    certificate_path: directory.clone(),
                    key_path: directory.clone(),
                })
            }
            TlsSource::Shared(shared) => {
                let (certificate, key) = shared.current();
                let path = PathBuf::from("the server's own certificate");
                Ok(Self {
                    certificate,
                    key,
                    certificate_path: path.clone(),
                    key_path: path,
                })
            }
        }
    }

    fn certified_key(&self) -> Result<CertifiedKey, TlsError> {
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::Pem {
            path: self.certificate_path.clone(),
            what: "certificate",
        })?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| TlsError::Pem {
            path: self.key_path.clone(),
            what: "private key",
        })?;
        let provider = rustls::crypto::ring::default_provider();
        Ok(CertifiedKey::from_der(chain, key, &provider)?)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: std::io::Error) -> TlsError {
    TlsError::File {
        path: path.to_owned(),
        source,
    }
}
