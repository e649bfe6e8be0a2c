//! Which values of a document are encrypted.

use portolan_yaml::Node;
use regex::Regex;

use crate::cipher::looks_sealed;
use crate::error::SopsError;
use crate::metadata::text;

/// Values below keys with this ending stay plain when a document has no rule.
const DEFAULT_UNENCRYPTED_SUFFIX: &str = "_unencrypted";

/// The one rule of a document. Any key on the way to a value may decide.
#[derive(Debug)]
pub(crate) enum Rule {
    UnencryptedSuffix(String),
    EncryptedSuffix(String),
    UnencryptedRegex(Pattern),
    EncryptedRegex(Pattern),
    /// Comments decide. They are not kept when a document is read, so the look of each value does: a sealed one can
    /// only be opened with the key, and a plain one that looks sealed cannot be.
    ByLook,
}

/// A pattern; as in sops a broken one matches nothing.
#[derive(Debug)]
pub(crate) struct Pattern(Option<Regex>);

const FIELDS: &[&str] = &[
    "unencrypted_suffix",
    "encrypted_suffix",
    "unencrypted_regex",
    "encrypted_regex",
    "unencrypted_comment_regex",
    "encrypted_comment_regex",
];

impl Rule {
    /// Reads the rule from the `sops` map.
    pub(crate) fn read(sops: &Node) -> Result<Self, SopsError> {
        let mut given = FIELDS
            .iter()
            .filter_map(|field| Some((*field, text(sops, field)?)));
        let Some((field, value)) = given.next() else {
            return Ok(Self::UnencryptedSuffix(
                DEFAULT_UNENCRYPTED_SUFFIX.to_owned(),
            ));
        };
        if let Some((other, _)) = given.next() {
            return Err(SopsError::Rules(field, other));
        }
        Ok(match field {
            "unencrypted_suffix" => Self::UnencryptedSuffix(value),
            "encrypted_suffix" => Self::EncryptedSuffix(value),
            "unencrypted_regex" => Self::UnencryptedRegex(Pattern::new(&value)),
            "encrypted_regex" => Self::EncryptedRegex(Pattern::new(&value)),
            _ => Self::ByLook,
        })
    }

    /// Whether the value at the end of a path of keys is encrypted.
    pub(crate) fn encrypts(&self, path: &[String], value: &str) -> bool {
        let any = |test: &dyn Fn(&str) -> bool| path.iter().any(|key| test(key));
        match self {
            Self::UnencryptedSuffix(suffix) => !any(&|key| key.ends_with(suffix)),
            Self::EncryptedSuffix(suffix) => any(&|key| key.ends_with(suffix)),
            Self::UnencryptedRegex(pattern) => !any(&|key| pattern.matches(key)),
            Self::EncryptedRegex(pattern) => any(&|key| pattern.matches(key)),
            Self::ByLook => looks_sealed(value),
        }
    }
}

impl Pattern {
    fn new(pattern: &str) -> Self {
        Self(Regex::new(pattern).ok())
    }

    fn matches(&self, key: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(key))
    }
}
