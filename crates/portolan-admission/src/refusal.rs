//! What would be refused, and where.

use std::fmt;

use portolan_object::FieldPath;

/// One thing an API server would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// In which way it is wrong.
    pub fault: Fault,
    /// The value, or for a missing field what lacks it.
    pub path: FieldPath,
    /// What it must be, without the path.
    pub message: String,
}

/// The ways to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Fields that exclude each other, or of which exactly one is required.
    Conflict,
    /// Two items of a list have the same name.
    Duplicate,
    /// A field that must be there is not.
    Missing,
    /// A name, label or key has an invalid form.
    Name,
    /// An object refers to a part of itself that does not exist.
    Reference,
    /// A selector does not select the pods beside it.
    Selector,
    /// A value is outside of what is allowed.
    Value,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_root() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}
