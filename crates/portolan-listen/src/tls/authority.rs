//! Our own certificate authority: `ca.pem` and `ca.key` in a directory, made once.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::OffsetDateTime;

use super::{TlsError, file_error};

/// How long the authority is valid: clients keep its certificate.
const AUTHORITY_LIFE: Duration = Duration::from_hours(10 * 365 * 24);

/// How long a server's certificate is valid.
const CERTIFICATE_LIFE: Duration = Duration::from_hours(90 * 24);

/// How often a server gets a new one: two more tries before the old one ends.
pub(super) const RENEW_EVERY: Duration = Duration::from_hours(30 * 24);

/// Clocks of other machines may be behind by so much.
const CLOCK_SKEW: Duration = Duration::from_hours(1);

/// Signs certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    certificate: String,
}

/// A server's chain and key, in PEM.
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    /// Opens the authority of a directory, or makes it.
    pub(super) fn open(directory: &Path) -> Result<Self, TlsError> {
        let (certificate_path, key_path) = (directory.join("ca.pem"), directory.join("ca.key"));
        let params = params()?;
        let (certificate, key) = match std::fs::read_to_string(&key_path) {
            Ok(key) => {
                let certificate = std::fs::read_to_string(&certificate_path);
                let certificate =
                    certificate.map_err(|source| file_error(&certificate_path, source))?;
                let key = KeyPair::from_pem(&key).map_err(|_| TlsError::Pem {
                    path: key_path,
                    what: "private key",
                })?;
                (certificate, key)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let key = KeyPair::generate()?;
                let certificate = params.self_signed(&key)?.pem();
                // The key last: an authority with a key is complete.
                write(directory, &certificate_path, &certificate)?;
                write(directory, &key_path, &key.serialize_pem())?;
                (certificate, key)
            }
            Err(error) => return Err(file_error(&key_path, error)),
        };
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// A new key and a certificate for a server of these names.
    pub(super) fn issue(&self, names: &[String]) -> Result<Issued, TlsError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.to_vec())?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let name = names.first().map_or("portolan", String::as_str);
        params.distinguished_name.push(DnType::CommonName, name);
        valid(&mut params, CERTIFICATE_LIFE);
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued {
            certificate: format!("{certificate}{}", self.certificate),
            key: key.serialize_pem(),
        })
    }
}

/// What the authority's own certificate says; its name must be the same at every start.
fn params() -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "Portolan own authority");
    valid(&mut params, AUTHORITY_LIFE);
    Ok(params)
}

fn valid(params: &mut CertificateParams, life: Duration) {
    let now = SystemTime::now();
    params.not_before = OffsetDateTime::from(now - CLOCK_SKEW);
    params.not_after = OffsetDateTime::from(now + life);
}

/// Writes a file that only its owner may read, whole or not at all.
fn write(directory: &Path, path: &Path, text: &str) -> Result<(), TlsError> {
    let written = || {
        std::fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        // The name is as important as the content: certificates of a lost authority are worth nothing.
        std::fs::File::open(directory)?.sync_all()
    };
    written().map_err(|source: std::io::Error| file_error(path, source))
}
