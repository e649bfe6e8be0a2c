//! Age keys, and how they decrypt a document's data key.

use std::fmt;
use std::io::Read;

use age::Decryptor;
use age::armor::ArmoredReader;
use age::x25519::Identity;
use thiserror::Error;

use crate::error::SopsError;
use crate::metadata::Sealed;
use crate::secret::Secret;

/// The length of a data key: AES-256.
const DATA_KEY_LENGTH: usize = 32;

/// The age keys at hand.
#[derive(Clone, Default)]
pub struct Keys(Vec<Identity>);

/// Why a text is not a file of age keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} is not an age key: `AGE-SECRET-KEY-1…` is expected")]
pub struct KeysError {
    /// The line, from 1. Its text is not shown: it may be most of a key.
    pub line: usize,
}

impl Keys {
    /// No key at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads keys as `age-keygen` writes them: one a line, between comments and empty lines.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()));
        let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        keys.map(|(line, text)| text.parse().map_err(|_| KeysError { line }))
            .collect::<Result<Vec<Identity>, KeysError>>()
            .map(Self)
    }

    /// Adds the keys of another set.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The public halves: whom documents must be encrypted for so that these keys open them.
    pub fn recipients(&self) -> Vec<String> {
        let public = self.0.iter().map(|key| key.to_public().to_string());
        public.collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The data key, opened by the first key that fits one of its seals.
    pub(crate) fn open(&self, seals: &[Sealed]) -> Result<Secret, SopsError> {
        let recipients = || {
            seals
                .iter()
                .map(|seal| format!("`{}`", seal.recipient))
                .collect::<Vec<_>>()
                .join(", ")
        };
        if self.is_empty() {
            return Err(SopsError::NoKey(recipients()));
        }
        for seal in seals {
            if let Some(opened) = self.open_one(&seal.armored) {
                return opened;
            }
        }
        Err(SopsError::WrongKey(recipients()))
    }

    /// `None` when no key fits.
    fn open_one(&self, armored: &str) -> Option<Result<Secret, SopsError>> {
        let decryptor = Decryptor::new(ArmoredReader::new(armored.as_bytes())).ok()?;
        let keys = self.0.iter().map(|key| key as &dyn age::Identity);
        let mut reader = decryptor.decrypt(keys).ok()?;
        let mut key = [0; DATA_KEY_LENGTH + 1];
        let mut length = 0;
        loop {
            match reader.read(&mut key[length..]) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(_) => return Some(Err(SopsError::DataKey)),
            }
        }
        let secret = Secret::new(&key[..length]);
        zeroize::Zeroize::zeroize(&mut key);
        Some(if length == DATA_KEY_LENGTH {
            Ok(secret)
        } else {
            Err(SopsError::DataKey)
        })
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} [redacted])", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = include_str!("../tests/fixtures/key.txt");

    #[test]
    fn keys_are_read_between_comments_and_never_printed() {
        let keys = Keys::parse(KEY).expect("keys");
        assert_eq!(format!("{keys:?}"), "Keys(1 [redacted])");
    }

    #[test]
    fn a_broken_key_is_named_by_its_line_only() {
        let error = Keys::parse("# a\nAGE-SECRET-KEY-1OOPS\n").expect_err("broken");
        assert_eq!(
            error.to_string(),
            "line 2 is not an age key: `AGE-SECRET-KEY-1…` is expected"
        );
    }
}
