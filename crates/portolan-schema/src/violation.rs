//! What is wrong with a value, and where.
//!
//! No message repeats the value itself, because it may come from a Secret.

use std::fmt;

use portolan_object::FieldPath;
use portolan_yaml::Position;

/// One thing an API server would refuse, or that nobody can tell of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The value, or for a missing field what lacks it.
    pub path: FieldPath,
    /// Where that value was read, if it was read.
    pub at: Position,
    /// What is wrong.
    pub problem: Problem,
}

/// The ways to be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The type has no field of this name.
    UnknownField {
        /// The name as written.
        field: String,
        /// A field that looks much like it.
        similar: Option<String>,
    },
    /// A field that must be there is not.
    MissingField {
        /// Its name.
        field: String,
    },
    /// The value is of another type.
    WrongType {
        /// What belongs there.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// The value has the right type but is not allowed.
    Invalid {
        /// What it must be, as in `must be one of "A", "B"`.
        must: String,
    },
    /// A validation rule of the definition is broken.
    Rule {
        /// The rule's own words, or its expression when it has none.
        message: String,
    },
    /// Something that the definition asks for could not be judged here; the object may be right or wrong.
    NotJudged {
        /// What it is: a rule of the definition, or its schema.
        what: String,
        /// Why not.
        reason: String,
    },
}

impl Problem {
    /// Whether an API server would refuse the object for it.
    pub fn is_refused(&self) -> bool {
        !matches!(self, Self::NotJudged { .. })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { field, similar } => {
                write!(f, "unknown field `{field}`")?;
                match similar {
                    Some(similar) => write!(f, ", did you mean `{similar}`?"),
                    None => Ok(()),
                }
            }
            Self::MissingField { field } => write!(f, "required field `{field}` is missing"),
            Self::WrongType { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::Invalid { must } => write!(f, "{must}"),
            Self::Rule { message } => write!(f, "breaks a rule of its definition: {message}"),
            Self::NotJudged { what, reason } => write!(f, "{what} was not checked: {reason}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_root() {
            write!(f, "{}", self.problem)
        } else {
            write!(f, "{}: {}", self.path, self.problem)
        }
    }
}
