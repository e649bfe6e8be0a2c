//! What remains of the limits during the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::exceeded::Exceeded;
use crate::limits::Limits;

/// Returns the time since a fixed moment.
pub type Clock = fn() -> Duration;

/// What one unit of work may still use. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    steps: AtomicU64,
    bytes: AtomicU64,
    depth: AtomicU32,
    stop: Stop,
    clock: Option<(Clock, Duration)>,
}

/// A switch that ends every budget it was given to.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

/// One level of depth; dropping it leaves the level.
#[derive(Debug)]
pub struct Level<'a>(&'a AtomicU32);

/// The clock is read once for so many steps: reading it costs as much as tens of them.
const STEPS_PER_LOOK: u64 = 1 << 12;

// === impl Budget ===

impl Budget {
    /// Returns a budget that never looks at a clock.
    pub fn new(limits: Limits, stop: Stop) -> Self {
        Self::with_clock(limits, stop, None)
    }

    /// Returns a budget whose time begins now.
    pub fn timed(limits: Limits, stop: Stop, clock: Clock) -> Self {
        Self::with_clock(limits, stop, Some((clock, clock())))
    }

    fn with_clock(limits: Limits, stop: Stop, clock: Option<(Clock, Duration)>) -> Self {
        Self {
            shared: Arc::new(Shared {
                limits,
                steps: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                depth: AtomicU32::new(0),
                stop,
                clock,
            }),
        }
    }

    /// Returns a budget of the same limits, switch and clock of which nothing is used yet.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let shared = &self.shared;
        let clock = shared.clock.map(|(clock, _)| (clock, clock()));
        Self::with_clock(shared.limits, shared.stop.clone(), clock)
    }

    /// Returns the limits that it started with.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Charges steps that are about to be done. Hot loops count by themselves and charge a few hundred at a time.
    pub fn step(&self, steps: u64) -> Result<(), Exceeded> {
        // A price beyond the limit must not turn the counter round.
        let steps = steps.min(self.shared.limits.steps.saturating_add(1));
        let before = self.shared.steps.fetch_add(steps, Ordering::Relaxed);
        let after = before.saturating_add(steps);
        if after > self.shared.limits.steps {
            return Err(Exceeded::Steps(self.shared.limits.steps));
        }
        if before / STEPS_PER_LOOK != after / STEPS_PER_LOOK {
            return self.check();
        }
        Ok(())
    }

    /// Charges memory that is about to be taken.
    pub fn allocate(&self, bytes: usize) -> Result<(), Exceeded> {
        let bytes = bytes as u64;
        let before = self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.shared.limits.bytes {
            // Who goes on with something smaller is not to be refused for what was never taken.
            self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Exceeded::Bytes(self.shared.limits.bytes));
        }
        Ok(())
    }

    /// Gives memory back that was charged by [`allocate`](Self::allocate).
    pub fn release(&self, bytes: usize) {
        let given_back = |now: u64| Some(now.saturating_sub(bytes as u64));
        // The closure always returns a value, so the update cannot be refused.
        let _ = self
            .shared
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, given_back);
    }

    /// Goes one level deeper until the returned value is dropped.
    pub fn enter(&self) -> Result<Level<'_>, Exceeded> {
        let level = Level(&self.shared.depth);
        let depth = self.shared.depth.fetch_add(1, Ordering::Relaxed) + 1;
        if depth > self.shared.limits.depth {
            return Err(Exceeded::Depth(self.shared.limits.depth));
        }
        Ok(level)
    }

    /// Looks at the switch and the clock, for work that takes long without steps.
    pub fn check(&self) -> Result<(), Exceeded> {
        if self.shared.stop.is_set() {
            return Err(Exceeded::Stopped);
        }
        match self.shared.clock {
            Some((clock, start)) if clock().saturating_sub(start) > self.shared.limits.time => {
                Err(Exceeded::Time(self.shared.limits.time))
            }
            _ => Ok(()),
        }
    }
}

impl Default for Budget {
    /// Returns a budget of the default limits without a clock.
    fn default() -> Self {
        Self::new(Limits::default(), Stop::default())
    }
}

// === impl Stop ===

impl Stop {
    /// Ends all work under it at its next look.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the end was asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Level ===

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Limits {
        Limits {
            steps: 10_000,
            bytes: 100,
            depth: 2,
            time: Duration::from_secs(1),
        }
    }

    #[test]
    fn clones_spend_from_one_budget() {
        let budget = Budget::new(small(), Stop::default());
        let other = budget.clone();
        assert_eq!(budget.step(6_000), Ok(()));
        assert_eq!(other.step(6_000), Err(Exceeded::Steps(10_000)));
    }

    #[test]
    fn a_budget_that_is_spent_stays_spent() {
        let budget = Budget::new(small(), Stop::default());
        for _ in 0..3 {
            assert_eq!(budget.step(u64::MAX), Err(Exceeded::Steps(10_000)));
        }
        assert_eq!(budget.step(1), Err(Exceeded::Steps(10_000)));
    }

    #[test]
    fn memory_that_was_refused_was_not_taken() {
        let budget = Budget::new(small(), Stop::default());
        assert_eq!(budget.allocate(101), Err(Exceeded::Bytes(100)));
        assert_eq!(budget.allocate(100), Ok(()));
        budget.release(60);
        assert_eq!(budget.allocate(60), Ok(()));
    }

    #[test]
    fn a_level_is_left_when_it_is_dropped() {
        let budget = Budget::new(small(), Stop::default());
        for _ in 0..5 {
            let _outer = budget.enter();
            let inner = budget.enter();
            assert!(inner.is_ok());
            assert_eq!(budget.enter().err(), Some(Exceeded::Depth(2)));
        }
    }

    #[test]
    fn a_stopped_budget_ends_within_one_look() {
        let stop = Stop::default();
        let budget = Budget::new(small(), stop.clone());
        stop.set();
        assert_eq!(budget.step(STEPS_PER_LOOK), Err(Exceeded::Stopped));
    }

    #[test]
    fn time_is_what_the_clock_says() {
        static NOW: AtomicU64 = AtomicU64::new(5);
        let clock: Clock = || Duration::from_secs(NOW.load(Ordering::Relaxed));
        let budget = Budget::timed(small(), Stop::default(), clock);
        assert_eq!(budget.check(), Ok(()));
        NOW.store(7, Ordering::Relaxed);
        assert_eq!(budget.check(), Err(Exceeded::Time(Duration::from_secs(1))));
    }
}
