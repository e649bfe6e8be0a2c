//! A public key by its digest: `sha256:…` over the key as certificates hold it.

use portolan_digest::hex;
use sha2::{Digest as _, Sha256};

use crate::error::{IdentityError, malformed};

const PREFIX: &str = "sha256:";

/// The SHA-256 digest of a public key. An agent is told that of the authority, and people compare that of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaPin([u8; 32]);

impl CaPin {
    /// The digest of a public key (`SubjectPublicKeyInfo`, DER).
    pub fn of_public_key(info: &[u8]) -> Self {
        Self(Sha256::digest(info).into())
    }

    /// The digest of the public key in a certificate.
    ///
    /// # Errors
    /// When the certificate cannot be read.
    pub fn of_certificate(der: &[u8]) -> Result<Self, IdentityError> {
        let (_, certificate) =
            x509_parser::parse_x509_certificate(der).map_err(|_| malformed("certificate"))?;
        Ok(Self::of_public_key(certificate.public_key().raw))
    }

    /// The digest in hexadecimal digits, for keys of the store and paths.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// The digest itself.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

impl std::str::FromStr for CaPin {
    type Err = IdentityError;

    /// Reads `sha256:` and 64 digits; the prefix may be left out.
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let digits = text.strip_prefix(PREFIX).unwrap_or(text);
        read_hex(digits)
            .map(Self)
            .ok_or_else(|| malformed("key digest (sha256:…)"))
    }
}

impl std::fmt::Display for CaPin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{PREFIX}{}", self.to_hex())
    }
}

impl std::fmt::Debug for CaPin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, out)
    }
}

/// 32 bytes from 64 hexadecimal digits.
pub(crate) fn read_hex(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_reads_as_it_is_written() {
        let pin = CaPin::of_public_key(b"a key");
        assert_eq!(pin.to_string().parse(), Ok(pin));
        assert_eq!(pin.to_hex().parse(), Ok(pin));
        for text in ["", "sha256:", "sha256:12", "md5:00", &"+1".repeat(32)] {
            assert!(text.parse::<CaPin>().is_err(), "{text}");
        }
    }
}
