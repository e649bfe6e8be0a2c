//! The canonical text of a tree, which is the same for equal trees, and its hash.

use std::fmt;

use portolan_yaml::{Node, WriteError, to_json};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a canonical text; printed in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// The canonical JSON of a tree: keys sorted, no white space, numbers and texts as Go's encoder prints them.
///
/// Trees that mean the same to Kubernetes have the same text, however they were written. A null is not the same as an
/// absent key. Refused are numbers that JSON does not have and nesting beyond the limit of YAML texts.
pub fn canonical_json(node: &Node) -> Result<String, WriteError> {
    to_json(node)
}

impl Digest {
    /// The hash of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of a tree's [canonical JSON](canonical_json).
    ///
    /// ```
    /// use portolan_object::Digest;
    /// use portolan_yaml::{Dialect, parse_one};
    ///
    /// let one = parse_one("{b: 0x10, a: 'x'}", Dialect::Helm)?;
    /// let other = parse_one("a: x\nb: 16\n", Dialect::Helm)?;
    /// assert_eq!(Digest::of_node(&one)?, Digest::of_node(&other)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_node(node: &Node) -> Result<Self, WriteError> {
        Ok(Self::of(canonical_json(node)?.as_bytes()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_printed_in_hexadecimal() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
    }
}
