//! Why a text could not be substituted, and where.

/// A failed substitution: its cause, in Flux's words, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Byte offset in the input: where the parser stopped, or where the failing expression begins.
    pub offset: usize,
}

/// The causes of a failed substitution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// An operator without what must follow it.
    #[error("bad substitution")]
    BadSubstitution,
    /// Something other than an operator or `}` after the name.
    #[error("missing closing brace")]
    MissingClosingBrace,
    /// No name after `${`.
    #[error("unable to parse variable name")]
    VariableName,
    /// An operator's argument is empty or the text ends in it.
    #[error("unable to parse substitution within function")]
    Argument,
    /// A variable that nothing sets, in strict mode.
    #[error("variable not set (strict mode): \"{0}\"")]
    NotSet(String),
    /// An expression cut a character into pieces; the original would print broken text.
    #[error("substitution result is not UTF-8")]
    NotUtf8,
    /// Expressions stand in each other more than [`crate::MAX_DEPTH`] deep.
    #[error("substitutions nest more than {} deep", crate::MAX_DEPTH)]
    TooDeep,
    /// The result is longer than [`crate::MAX_OUTPUT`].
    #[error("substitution result is longer than {} bytes", crate::MAX_OUTPUT)]
    TooLong,
    /// Trim patterns took more than [`crate::MAX_WORK`] steps.
    #[error("trim patterns took more than {} steps", crate::MAX_WORK)]
    TooMuchWork,
}

impl ErrorKind {
    pub(crate) fn at(self, offset: usize) -> Error {
        Error { kind: self, offset }
    }
}
