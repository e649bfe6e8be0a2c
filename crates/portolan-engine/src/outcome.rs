//! How a unit ended.

use crate::{Failure, Key, Output};

/// How a unit ended; every unit that was queued has exactly one.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It ended well and made this.
    Done(Output),
    /// It ended badly, by itself.
    Failed(Failure),
    /// It could not be done because another unit failed.
    Skipped {
        /// The unit whose failure is the root of it.
        because: Key,
    },
    /// It was called off.
    Cancelled,
}

impl Outcome {
    /// Whether the unit ended well.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}
