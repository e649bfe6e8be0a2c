//! A server certificate of somebody else, read from files.

use std::path::{Path, PathBuf};

use portolan_identity::{CaPin, IdentityError, certificates_from_pem};
use portolan_listen::TlsSource;

use crate::server::StartedServer;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ForeignCertificateError {
    /// The file of the chain cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file has something else in it.
    #[error("`{}` is no certificate chain", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// Why.
        source: IdentityError,
    },
}

impl StartedServer {
    /// Shows the certificate of these files, and makes agents know the server by the last one of the chain.
    ///
    /// # Errors
    /// When the chain cannot be read. The key is read when the server listens.
    pub fn tls_from_files(
        &self,
        chain: &Path,
        key: &Path,
    ) -> Result<TlsSource, ForeignCertificateError> {
        let path = || chain.to_owned();
        let text =
            std::fs::read_to_string(chain).map_err(|source| ForeignCertificateError::Read {
                path: path(),
                source,
            })?;
        let wrong = |source| ForeignCertificateError::Identity {
            path: path(),
            source,
        };
        let certificates = certificates_from_pem(&text).map_err(wrong)?;
        if let Some(last) = certificates.last() {
            self.set_pin(CaPin::of_certificate(last).map_err(wrong)?);
        }
        Ok(TlsSource::Files {
            certificate: chain.to_owned(),
            key: key.to_owned(),
        })
    }
}
