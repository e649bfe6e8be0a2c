//! Secret bytes that are never printed by accident.

use std::fmt;

use zeroize::Zeroizing;

/// Secret bytes: printed as `[redacted]`, wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes bytes in.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Shows the bytes; the name is there to be seen in reviews.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }

    /// Shows the bytes as text, when they are text.
    pub fn reveal_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(
            format!("{:?}", Some(Secret::new("fake"))),
            "Some([redacted])"
        );
    }
}
