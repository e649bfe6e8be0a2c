//! The lease under which an agent may start steps.
//!
//! A server that hears nothing of a node for longer than a lease knows that the node starts nothing any more. So the
//! time counts from the moment the agent *asked*, before the server granted anything, and on a clock that goes on
//! while the machine sleeps.

use std::sync::Arc;
use std::time::Duration;

use portolan_clock::Clock;

/// Whether the agent may start a step now.
pub struct DispatchLease {
    clock: Arc<dyn Clock>,
    valid_until: Option<Duration>,
}

/// When a lease was asked for. The answer to it extends the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    asked: Duration,
}

impl DispatchLease {
    /// No lease yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            valid_until: None,
        }
    }

    /// To be called before the request is sent.
    pub fn ask(&self) -> LeaseRequest {
        LeaseRequest {
            asked: self.clock.now(),
        }
    }

    /// Takes what the server granted. An answer that comes late never shortens the lease.
    pub fn grant(&mut self, request: LeaseRequest, length: Duration) {
        let until = request.asked + length;
        self.valid_until = Some(self.valid_until.map_or(until, |known| known.max(until)));
    }

    /// Gives the lease up.
    pub fn end(&mut self) {
        self.valid_until = None;
    }

    /// How long it still holds; `None` when it is over.
    pub fn remaining(&self) -> Option<Duration> {
        let left = self.valid_until?.checked_sub(self.clock.now())?;
        (!left.is_zero()).then_some(left)
    }

    /// Whether a step may be started now.
    pub fn may_start(&self) -> bool {
        self.remaining().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_clock::ManualClock;

    const LENGTH: Duration = Duration::from_secs(30);

    #[test]
    fn a_lease_counts_from_the_moment_it_was_asked_for() {
        let clock = Arc::new(ManualClock::default());
        let mut lease = DispatchLease::new(Arc::clone(&clock) as Arc<dyn Clock>);
        assert!(!lease.may_start());
        let request = lease.ask();
        clock.advance(Duration::from_secs(20));
        lease.grant(request, LENGTH);
        assert_eq!(lease.remaining(), Some(Duration::from_secs(10)));
        clock.advance(Duration::from_secs(10));
        assert!(!lease.may_start());
    }

    #[test]
    fn a_late_answer_does_not_shorten_it_and_a_very_late_one_does_not_revive_it() {
        let clock = Arc::new(ManualClock::default());
        let mut lease = DispatchLease::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let first = lease.ask();
        clock.advance(Duration::from_secs(10));
        let second = lease.ask();
        lease.grant(second, LENGTH);
        lease.grant(first, LENGTH);
        assert_eq!(lease.remaining(), Some(LENGTH));
        clock.advance(Duration::from_secs(31));
        lease.grant(first, LENGTH);
        assert!(!lease.may_start());
        lease.end();
        assert!(!lease.may_start());
    }
}
