//! What changes in an object when its `apiVersion` is replaced.

use std::fmt;

/// The changes from old API versions of a kind to its live one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Migration {
    /// The kind.
    pub kind: &'static str,
    /// The API versions left.
    pub from: &'static [&'static str],
    /// The API version gone to.
    pub to: &'static str,
    /// What changes, in the order to do it.
    pub changes: &'static [Change],
}

/// What kind of change it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// The field has another name.
    Renamed,
    /// The field is gone.
    Removed,
    /// The field must now be given.
    Required,
    /// The value is refused.
    Forbidden,
    /// Fewer values are allowed.
    Limited,
    /// Values must differ from each other.
    Unique,
    /// Leaving the field out means something else.
    Default,
    /// The same text means something else.
    Semantics,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// What kind of change it is.
    pub kind: ChangeKind,
    /// Where.
    pub path: &'static str,
    /// The new name, or how to do it; may be empty.
    pub to: &'static str,
}

impl ChangeKind {
    fn word(self) -> &'static str {
        match self {
            Self::Renamed => "renamed",
            Self::Removed => "removed",
            Self::Required => "required",
            Self::Forbidden => "forbidden",
            Self::Limited => "limited",
            Self::Unique => "unique",
            Self::Default => "default",
            Self::Semantics => "semantics",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.path)?;
        match self.kind {
            _ if self.to.is_empty() => Ok(()),
            ChangeKind::Renamed | ChangeKind::Removed => write!(f, " => {}", self.to),
            _ => write!(f, ": {}", self.to),
        }
    }
}
