//! When and how often a failed unit is tried again.

use std::time::Duration;

use portolan_budget::RetryPolicy;

use crate::Key;

/// How often a unit is tried, and how long it rests between attempts.
///
/// The rest doubles from `first` to at most `longest`. Jitter then takes away up to half of it, so that units which
/// failed together do not come back together. It is drawn from a generator seeded by the run's seed, the unit's key
/// and the attempt: the same run rests equally long every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
    policy: RetryPolicy,
}

impl Retry {
    /// Tries at most `attempts` times (at least once), resting a quarter of a second first and ten seconds at most.
    pub fn attempts(attempts: u32) -> Self {
        let retry = Self {
            attempts: attempts.max(1),
            policy: RetryPolicy::new(Duration::ZERO, Duration::ZERO),
        };
        retry.rest(Duration::from_millis(250), Duration::from_secs(10))
    }

    /// Sets the first and the longest rest.
    #[must_use]
    pub fn rest(self, first: Duration, longest: Duration) -> Self {
        let policy = RetryPolicy::new(first, longest);
        Self {
            policy: policy.attempts(self.attempts).jitter(50),
            ..self
        }
    }

    /// How long to rest after the given failed attempt, or `None` if it was the last.
    pub(crate) fn after(&self, attempt: u32, key: &Key, seed: u64) -> Option<Duration> {
        let draw = mix(seed ^ fold(key.as_str()) ^ u64::from(attempt));
        let draw = unit_interval(draw);
        self.policy.random_wait_after(attempt, draw)
    }
}

/// FNV-1a: the same on every machine and in every version, unlike the standard hasher.
fn fold(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// One step of `SplitMix64`, which spreads close seeds over all 64 bits.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The upper 53 bits as a number from zero to below one.
fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_doubles_to_the_longest_and_jitter_takes_at_most_half() {
        let retry = Retry::attempts(6).rest(Duration::from_secs(1), Duration::from_secs(6));
        let full = [1, 2, 4, 6, 6].map(Duration::from_secs);
        for (attempt, full) in (1..).zip(full) {
            let rest = retry.after(attempt, &"unit".into(), 7).unwrap();
            assert!(rest <= full && rest >= full / 2, "{rest:?} for {full:?}");
        }
        assert_eq!(retry.after(6, &"unit".into(), 7), None);
    }

    #[test]
    fn equal_seeds_rest_equally_long_and_other_keys_do_not() {
        let retry = Retry::attempts(2);
        let rest = |key: &str, seed| retry.after(1, &key.into(), seed);
        assert_eq!(rest("a", 1), rest("a", 1));
        assert_ne!(rest("a", 1), rest("b", 1));
        assert_ne!(rest("a", 1), rest("a", 2));
    }

    #[test]
    fn a_huge_number_of_attempts_does_not_overflow() {
        let retry = Retry::attempts(u32::MAX).rest(Duration::MAX, Duration::from_secs(1));
        assert!(retry.after(u32::MAX - 1, &"a".into(), 0).unwrap() <= Duration::from_secs(1));
    }
}
