//! What the spec of a variable says about values that are too old.

use serde::{Deserialize, Serialize};

/// What to do with a value that is too old, or that could not be computed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StaleRule {
    /// A run that needs it fails.
    #[default]
    Fail,
    /// The last value is used.
    UseLast,
}
