//! Errors of encrypted documents. No message contains a decrypted value.

use portolan_yaml::Position;
use thiserror::Error;

/// Why a document could not be decrypted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SopsError {
    /// It has no `sops` map.
    #[error("the document is not encrypted by sops")]
    NotEncrypted,
    /// The `sops` map lacks something, or holds it in a wrong form.
    #[error("the sops metadata is wrong: `{field}` {problem}")]
    Metadata {
        /// The field in the `sops` map.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More than one rule says which values are encrypted.
    #[error("the sops metadata has both `{0}` and `{1}`, which exclude each other")]
    Rules(&'static str, &'static str),
    /// It is encrypted for keys of other kinds only.
    #[error("the document is encrypted for {0} only; age keys cannot open it")]
    OtherKeys(String),
    /// Its data key is split among key groups.
    #[error("the document's data key is split among several key groups, which is not supported")]
    KeyGroups,
    /// No key was given.
    #[error("no age key was given; the document is encrypted for {0}")]
    NoKey(String),
    /// None of the keys fits.
    #[error("none of the given age keys opens the document; it is encrypted for {0}")]
    WrongKey(String),
    /// A key fits but what it opens is damaged.
    #[error("the document's sealed data key is damaged")]
    DataKey,
    /// A value that should be sealed is not.
    #[error("`{path}` should be encrypted and is not")]
    NotSealed {
        /// The value's path.
        path: String,
        /// Where it begins.
        at: Position,
    },
    /// A value does not open with the data key.
    #[error("`{path}` cannot be decrypted: it was changed or moved after it was encrypted")]
    Damaged {
        /// The value's path.
        path: String,
        /// Where it begins.
        at: Position,
    },
    /// A value opens but is not of the type it says.
    #[error("`{path}` is not of the type it was encrypted as, `{kind}`")]
    Type {
        /// The value's path.
        path: String,
        /// The type that its seal names.
        kind: String,
        /// Where it begins.
        at: Position,
    },
    /// The code over all values does not fit them.
    #[error(
        "the document was changed after it was encrypted: its message authentication code does not match"
    )]
    Mac,
    /// Maps and lists lie too deep in one another.
    #[error("the document is nested deeper than {0} levels")]
    TooDeep(usize),
    /// The file is not in the format it should be.
    #[error("cannot read the file as {format}: line {line}: {problem}")]
    Format {
        /// The format.
        format: &'static str,
        /// The line, from 1; 0 where it is not known.
        line: u32,
        /// What is wrong.
        problem: String,
    },
}
