//! The private key of a node or a user.

use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use zeroize::Zeroizing;

use crate::error::{IdentityError, failed, malformed};
use crate::pin::CaPin;

/// A private key (ECDSA, P-256) that never leaves the machine it was made on.
pub struct NodeKey {
    pub(crate) pair: KeyPair,
}

impl NodeKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        let pair = KeyPair::generate().map_err(|_| failed("key"))?;
        Ok(Self { pair })
    }

    /// Reads a key in PEM format.
    ///
    /// # Errors
    /// When the text is none.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        let pair = KeyPair::from_pem(text).map_err(|_| malformed("private key in PEM format"))?;
        Ok(Self { pair })
    }

    /// The key in PEM format, for a file that only its owner can read.
    pub fn to_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.pair.serialize_pem())
    }

    /// The digest of the public part, which people compare before they approve a node.
    pub fn fingerprint(&self) -> CaPin {
        CaPin::of_public_key(&self.pair.subject_public_key_info())
    }

    /// A signing request in PEM format. It proves that its sender has the key; the names in it count for nothing.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn signing_request(&self) -> Result<String, IdentityError> {
        let request = CertificateParams::default().serialize_request(&self.pair);
        let request = request.map_err(|_| failed("signing request"))?;
        request.pem().map_err(|_| failed("signing request"))
    }

    pub(crate) fn for_tls(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        PrivateKeyDer::from_pem_slice(self.to_pem().as_bytes())
            .map_err(|_| malformed("private key"))
    }
}

impl std::fmt::Debug for NodeKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "NodeKey({}, [redacted])", self.fingerprint())
    }
}
