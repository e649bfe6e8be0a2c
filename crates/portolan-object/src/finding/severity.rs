//! How much a finding matters.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a finding matters, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know; nobody has to act.
    Note,
    /// It works or may be meant so, and somebody should look.
    Warning,
    /// Flux or the cluster would refuse it, data would be lost, or nothing is known about it.
    Error,
}

impl Severity {
    /// The word for it in every output: `note`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_the_gravest() {
        assert!(Severity::Note < Severity::Warning && Severity::Warning < Severity::Error);
        assert_eq!(Severity::Warning.to_string(), "warning");
    }
}
