//! The two places that a revision can run in.
//!
//! Each slot is a Deployment and a Service with fixed names and selectors. Revisions take turns in them: the one that
//! serves is stable, the other slot takes the next revision. A promotion moves traffic, never pods.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the two slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slot {
    /// `NAME-a`.
    A,
    /// `NAME-b`.
    B,
}

/// Something for each slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Slots<T> {
    /// Of slot a.
    pub a: T,
    /// Of slot b.
    pub b: T,
}

impl Slot {
    /// Both slots.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Returns the other slot.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::A => "a",
            Self::B => "b",
        })
    }
}

impl<T> Slots<T> {
    /// Returns what belongs to a slot.
    pub fn get(&self, slot: Slot) -> &T {
        match slot {
            Slot::A => &self.a,
            Slot::B => &self.b,
        }
    }

    /// Returns what belongs to a slot, to be changed.
    pub fn get_mut(&mut self, slot: Slot) -> &mut T {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }
}
