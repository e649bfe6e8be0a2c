//! Why an expression has no value.

use std::fmt;

use portolan_budget::Exceeded;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It needs more than it may use.
    Exceeded(Exceeded),
    /// It is too large to be read.
    TooLarge(String),
    /// It uses what is not known here; an API server may know it.
    Unsupported(String),
    /// It cannot be evaluated for this object: a key is missing, or types do not fit.
    Undefined(String),
}

impl Failure {
    /// A value is not of the type that is needed.
    pub fn types() -> Self {
        Self::Undefined("a value is not of the type that is needed".to_owned())
    }
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceeded(exceeded) => exceeded.fmt(f),
            Self::TooLarge(why) | Self::Unsupported(why) | Self::Undefined(why) => f.write_str(why),
        }
    }
}
