//! Why variables cannot be computed, or a value cannot be used.

use super::graph::MAX_VARIABLES;
use crate::span::WrittenSpan;

/// Why variables cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphFault {
    /// A variable reads itself, through others.
    #[error("variables read each other in a circle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    /// A variable reads one that does not exist.
    #[error("variable `{name}` reads `{wanted}`, which does not exist{}", meant(.near.as_deref()))]
    Unknown {
        /// The variable.
        name: String,
        /// What it reads.
        wanted: String,
        /// What may be meant.
        near: Option<String>,
    },
    /// An expression cannot be read.
    #[error("variable `{name}`: {why}")]
    Expression {
        /// The variable.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// There are too many.
    #[error("there are {0} variables, more than {MAX_VARIABLES}")]
    TooMany(usize),
}

/// Why a run cannot have a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StaleVariable {
    /// There is no such variable.
    #[error("variable `{0}` does not exist")]
    Unknown(String),
    /// It was never made.
    #[error("variable `{name}` has no value yet{}", because(.why.as_deref()))]
    Missing {
        /// The variable.
        name: String,
        /// Why it could not be made.
        why: Option<String>,
    },
    /// It is too old.
    #[error("variable `{name}` is {age} old, and may be used for {ttl}")]
    TooOld {
        /// The variable.
        name: String,
        /// Its age.
        age: WrittenSpan,
        /// How long it can be used.
        ttl: WrittenSpan,
    },
    /// It could not be made again.
    #[error("variable `{name}` could not be computed again: {why}")]
    Failed {
        /// The variable.
        name: String,
        /// Why.
        why: String,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn because(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}
