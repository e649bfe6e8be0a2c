//! Which run a record belongs to.

use std::fmt;

/// The name of a run in its journal: the number of its first event.
///
/// Numbers of events are never given twice, so neither are names of runs, whatever the journal has forgotten. Zero
/// stands for no run: for events that come from outside of units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u64);

impl RunId {
    /// No run.
    pub const NONE: Self = Self(0);

    /// The number of the run's first event; zero if it is no run.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for RunId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
