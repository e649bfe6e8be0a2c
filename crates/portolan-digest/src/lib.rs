//! The name of a content by its SHA-256: `sha256:` and 64 hexadecimal digits, as registries and image layouts write it.

#![warn(missing_docs)]

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    hex: String,
}

/// A text that is not `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sha256 digest")]
pub struct DigestError(pub String);

/// Takes the digest of a content that comes in pieces.
#[derive(Debug, Clone, Default)]
pub struct Hasher {
    state: Sha256,
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
        use fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in bytes {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        }
        Self { hex }
    }

    /// The 64 hexadecimal digits alone.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || DigestError(text.to_owned());
        let hex = text.strip_prefix("sha256:").ok_or_else(bad)?;
        let is_lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if hex.len() != 64 || !hex.bytes().all(is_lower_hex) {
            return Err(bad());
        }
        Ok(Self {
            hex: hex.to_owned(),
        })
    }
}

// === impl Hasher ===

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
        self.state.finalize().into()
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
