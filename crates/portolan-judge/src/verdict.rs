//! What the numbers say.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the evidence so far says about a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is worse than what is tolerated.
    Rollback,
    /// It is proven not to be harmful.
    Promote,
    /// Neither is shown yet.
    Hold,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rollback => "rollback",
            Self::Promote => "promote",
            Self::Hold => "hold",
        })
    }
}
