//! How much work is allowed.

use std::time::Duration;

/// How much work one unit may do: a release, a Kustomization, an object to validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Steps: instructions of a template, nodes visited or printed, terms of a rule evaluated.
    pub steps: u64,
    /// Bytes that results and intermediate values take up together. One value may take a sixteenth of them.
    pub bytes: u64,
    /// Calls inside calls.
    pub depth: u32,
    /// Time by the clock.
    pub time: Duration,
}

impl Default for Limits {
    /// A hundred times what the largest public charts and overlays need.
    fn default() -> Self {
        Self {
            steps: 500_000_000,
            bytes: 1 << 30,
            depth: 10_000,
            time: Duration::from_mins(2),
        }
    }
}
