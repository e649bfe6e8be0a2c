//! How long to wait before a further attempt, and when to give up.
//!
//! ```text
//! RetryPolicy ──wait_after(failures)──▶ Some(wait), or None: give up
//!      │      ──wait(failures)────────▶ wait, for what never gives up
//!      │
//!      └──backoff()──▶ Backoff: the same with a counter of failures in a row
//! ```
//!
//! Whoever repeats something sleeps and draws random numbers itself, so that a policy can be tested, and used by code
//! that has no runtime.

use std::time::Duration;

/// The factor of a wait that stays the same, in thousandths.
const ONE: u32 = 1_000;

/// Waits that grow from the first to the longest, for a number of attempts or without an end.
///
/// The waits double and are exact unless another factor or jitter is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    longest: Duration,
    /// In thousandths.
    factor: u32,
    attempts: Option<u32>,
    /// The part of a wait that chance may take away, in per cent.
    jitter: u32,
}

/// A [`RetryPolicy`] together with the number of failures in a row.
#[derive(Debug, Clone)]
pub struct Backoff {
    policy: RetryPolicy,
    failures: u32,
}

// === impl RetryPolicy ===

impl RetryPolicy {
    /// Waits `first` after the first failure, then twice as long each time, up to `longest`; never gives up.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            factor: 2 * ONE,
            attempts: None,
            jitter: 0,
        }
    }

    /// Makes at most this many attempts, the first one included.
    #[must_use]
    pub const fn attempts(mut self, most: u32) -> Self {
        self.attempts = Some(most);
        self
    }

    /// Multiplies each wait by this many thousandths to get the next: 1,000 for equal waits.
    #[must_use]
    pub const fn factor(mut self, thousandths: u32) -> Self {
        self.factor = thousandths;
        self
    }

    /// Lets chance take up to this part of a wait away (at most 100 per cent), so that those who failed together do
    /// not come back together. See [`RetryPolicy::random_wait_after`].
    #[must_use]
    pub const fn jitter(mut self, per_cent: u32) -> Self {
        self.jitter = per_cent;
        self
    }

    /// How long to wait after this many failed attempts in a row, or `None` when there is no further attempt.
    pub fn wait_after(&self, failures: u32) -> Option<Duration> {
        let is_last = self.attempts.is_some_and(|most| failures >= most);
        (!is_last).then(|| self.wait(failures))
    }

    /// How long to wait after this many failed attempts in a row, however many are allowed.
    pub fn wait(&self, failures: u32) -> Duration {
        let mut wait = self.first.min(self.longest);
        for _ in 1..failures {
            let next = grown(wait, self.factor).min(self.longest);
            if next == wait {
                break;
            }
            wait = next;
        }
        wait
    }

    /// [`RetryPolicy::wait_after`] less the part that chance takes away; `draw` is a random number from 0 (nothing is
    /// taken) to 1.
    pub fn random_wait_after(&self, failures: u32, draw: f64) -> Option<Duration> {
        let wait = self.wait_after(failures)?;
        Some(wait.mul_f64(self.kept(draw)))
    }

    fn kept(&self, draw: f64) -> f64 {
        1.0 - f64::from(self.jitter.min(100)) / 100.0 * draw.clamp(0.0, 1.0)
    }

    /// The wait that the other side asked for, but never more than the longest; the policy's own if it asked for none.
    pub fn wait_asked_for(&self, failures: u32, asked: Option<Duration>) -> Option<Duration> {
        let wait = self.wait_after(failures)?;
        Some(asked.map_or(wait, |asked| asked.min(self.longest)))
    }

    /// Counts the failures of one thing that is repeated.
    pub const fn backoff(self) -> Backoff {
        Backoff {
            policy: self,
            failures: 0,
        }
    }
}

/// A wait times a factor in thousandths. Too long a product becomes the longest time that can be said.
fn grown(wait: Duration, thousandths: u32) -> Duration {
    let exact = wait.checked_mul(thousandths).map(|wait| wait / ONE);
    exact.unwrap_or_else(|| (wait / ONE).saturating_mul(thousandths))
}

// === impl Backoff ===

impl Backoff {
    /// Counts a failure. Returns how long to wait now, or `None` when there is no further attempt.
    pub fn try_again(&mut self) -> Option<Duration> {
        let failures = self.count();
        self.policy.wait_after(failures)
    }

    /// Counts a failure. Returns how long to wait now, however many attempts are allowed.
    pub fn next_wait(&mut self) -> Duration {
        let failures = self.count();
        self.policy.wait(failures)
    }

    /// The same with jitter, see [`RetryPolicy::random_wait_after`].
    pub fn next_random_wait(&mut self, draw: f64) -> Duration {
        self.next_wait().mul_f64(self.policy.kept(draw))
    }

    fn count(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.failures
    }

    /// Called after a success: waits begin with the first one again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(policy: RetryPolicy) -> Vec<Option<u64>> {
        let waits = (1..7).map(|failures| policy.wait_after(failures));
        waits.map(|wait| Some(wait?.as_secs())).collect()
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits = seconds(RetryPolicy::new(SECOND, 5 * SECOND));
        assert_eq!(waits, [1, 2, 4, 5, 5, 5].map(Some));
    }

    #[test]
    fn the_last_attempt_is_followed_by_no_wait() {
        let policy = RetryPolicy::new(SECOND, 60 * SECOND).attempts(3);
        let waits = seconds(policy.factor(4_000));
        assert_eq!(waits, [Some(1), Some(4), None, None, None, None]);
        assert_eq!(seconds(policy.attempts(0))[0], None);
    }

    #[test]
    fn a_factor_of_one_gives_equal_waits_and_parts_are_possible() {
        let policy = RetryPolicy::new(2 * SECOND, 60 * SECOND);
        assert_eq!(seconds(policy.factor(1_000)), [Some(2); 6]);
        assert_eq!(
            policy.factor(1_500).wait_after(3),
            Some(Duration::from_millis(4_500))
        );
    }

    #[test]
    fn a_first_wait_above_the_longest_is_cut() {
        assert_eq!(seconds(RetryPolicy::new(9 * SECOND, SECOND)), [Some(1); 6]);
    }

    #[test]
    fn huge_numbers_neither_overflow_nor_take_long() {
        for first in [Duration::from_nanos(1), SECOND, Duration::MAX] {
            for factor in [0, 1, 999, 1_000, 1_001, u32::MAX] {
                let policy = RetryPolicy::new(first, Duration::MAX).factor(factor);
                assert!(policy.wait_after(u32::MAX).is_some());
            }
        }
    }

    #[test]
    fn chance_takes_no_more_than_its_part() {
        let policy = RetryPolicy::new(SECOND, SECOND).jitter(50);
        let wait = |policy: RetryPolicy, draw| policy.random_wait_after(1, draw).unwrap();
        assert_eq!(wait(policy, 0.0), SECOND);
        assert_eq!(wait(policy, 1.0), SECOND / 2);
        assert_eq!(wait(policy.jitter(100), 0.75), SECOND / 4);
        assert_eq!(wait(policy.jitter(900), 7.0), Duration::ZERO);
        assert_eq!(wait(policy.jitter(0), 1.0), SECOND);
    }

    #[test]
    fn the_other_side_can_ask_for_another_wait_but_not_for_a_longer_one() {
        let policy = RetryPolicy::new(SECOND, 10 * SECOND).attempts(2);
        let asked = |seconds| policy.wait_asked_for(1, Some(seconds * SECOND));
        assert_eq!(asked(0), Some(Duration::ZERO));
        assert_eq!(asked(7), Some(7 * SECOND));
        assert_eq!(asked(3_600), Some(10 * SECOND));
        assert_eq!(policy.wait_asked_for(1, None), Some(SECOND));
        assert_eq!(policy.wait_asked_for(2, Some(SECOND)), None);
    }

    #[test]
    fn a_success_begins_anew() {
        let mut backoff = RetryPolicy::new(SECOND, 60 * SECOND).attempts(3).backoff();
        assert_eq!(backoff.try_again(), Some(SECOND));
        assert_eq!(backoff.next_random_wait(0.5), 2 * SECOND);
        assert_eq!(backoff.try_again(), None);
        assert_eq!(backoff.next_wait(), 8 * SECOND);
        backoff.reset();
        assert_eq!(backoff.try_again(), Some(SECOND));
    }
}
