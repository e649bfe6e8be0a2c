//! Leases: keys that are deleted when their owner stops renewing them.
//!
//! A lease gives liveness, never safety. It may end early (bugs of a server) or late (a new leader of etcd starts all
//! of them again), so a holder must still compare its key in every write.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

/// The name of a lease; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub(crate) i64);

impl LeaseId {
    /// The lease with this number; `None` for 0, which means no lease.
    pub fn new(number: i64) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }

    /// Its number.
    pub fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// A lease as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState {
    /// What it was granted for. At least what was asked for.
    pub granted: Duration,
    /// What is left of it.
    pub remaining: Duration,
    /// The keys that go with it, sorted.
    pub keys: Vec<Bytes>,
}
