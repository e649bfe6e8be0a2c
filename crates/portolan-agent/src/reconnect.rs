//! How long an agent waits before it connects again.
//!
//! When a server ends, all of its agents lose their streams at the same moment. If each waits for a random part of a
//! time that grows with every failure, they come back one by one.

use std::time::Duration;

/// The longest wait after the first failure.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait after many.
const LONGEST: Duration = Duration::from_mins(1);

/// Counts failures in a row.
#[derive(Debug, Clone, Default)]
pub struct Reconnect {
    failures: u32,
}

impl Reconnect {
    /// The next wait: a random part of the time that this number of failures allows. `random` is between 0 and 1.
    pub fn next_wait(&mut self, random: f64) -> Duration {
        let longest = FIRST.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        longest.min(LONGEST).mul_f64(random.clamp(0.0, 1.0))
    }

    /// Called when a connection works.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_start_anew() {
        let mut reconnect = Reconnect::default();
        let waits: Vec<u64> = (0..9).map(|_| reconnect.next_wait(1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        reconnect.succeeded();
        assert_eq!(reconnect.next_wait(0.25), Duration::from_millis(250));
        for _ in 0..u16::MAX {
            assert!(reconnect.next_wait(1.0) <= LONGEST);
        }
    }
}
