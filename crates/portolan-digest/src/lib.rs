//! SHA-256 digests that name content: `sha256:` and 64 hexadecimal digits, as registries and image layouts write it.
//!
//! [`Digest::of`] names bytes. [`Fingerprint`] names a value: [`FieldHasher`] takes its fields one after the other,
//! so equal values have equal digests, however they print.

#![warn(missing_docs)]

mod fingerprint;

pub use fingerprint::{FieldHasher, Fingerprint};

use std::fmt;
use std::str::FromStr;

use ring::digest::{Context, SHA256};

/// A SHA-256 digest, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    bytes: [u8; 32],
}

/// A text that is not `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sha256 digest")]
pub struct DigestError(pub String);

/// Takes the digest of a content that comes in pieces.
///
/// The work is done by the crate that TLS uses as well: on machines whose processor has no instructions for SHA-256 it is
/// twice as fast as portable code.
#[derive(Clone)]
pub struct Hasher {
    state: Context,
}

// === impl Digest ===

impl Digest {
    /// The digest of a whole content.
    pub fn of(content: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(content);
        hasher.finish()
    }

    /// The digest with the given 32 bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self { bytes: *bytes }
    }

    /// The 32 bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The 64 hexadecimal digits alone.
    pub fn hex(&self) -> String {
        hex(&self.bytes)
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble & 0xf)]);
    let digits = bytes.iter();
    digits
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || DigestError(text.to_owned());
        let hex = text.strip_prefix("sha256:").ok_or_else(bad)?;
        let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            let nibbles = nibble(*high).zip(nibble(*low));
            let (high, low) = nibbles.ok_or_else(bad)?;
            *byte = high << 4 | low;
        }
        Ok(Self { bytes })
    }
}

/// The value of a lower-case hexadecimal digit.
fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

// === impl Hasher ===

impl Default for Hasher {
    fn default() -> Self {
        Self {
            state: Context::new(&SHA256),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.state.update(piece);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest::from_bytes(&self.finish_bytes())
    }

    /// The 32 bytes of the digest, for where many are kept.
    pub fn finish_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.state.finish().as_ref());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        let digest = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse::<Digest>().unwrap(), digest);
    }

    #[test]
    fn other_algorithms_lengths_and_upper_case_are_refused() {
        for bad in ["sha512:00", "sha256:00", "sha256:../../etc", ""] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        assert!(
            format!("sha256:{}", "A".repeat(64))
                .parse::<Digest>()
                .is_err()
        );
    }
}
