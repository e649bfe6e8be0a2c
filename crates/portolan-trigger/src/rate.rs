//! How often something may happen: at most so often in any hour, or so often at once and then as tokens come back.
//!
//! Both survive a clock that goes back: what lies in the future is taken as now.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// At most so often in any span of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingLimit {
    /// How often.
    pub most: u32,
    /// In which span.
    pub per: Duration,
}

/// When something happened lately; as many moments as the limit allows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecentTimes {
    millis: VecDeque<i64>,
}

/// A bucket of tokens: so many at once, all of them back after a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketRule {
    /// Tokens of a full bucket.
    pub burst: u32,
    /// How long an empty bucket takes to be full.
    pub per: Duration,
}

/// What is left in a bucket, as the moment at which it is full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenBucket {
    full_at: i64,
}

/// How many runs all triggers together may start in any minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunBudget {
    limit: SlidingLimit,
    recent: RecentTimes,
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4)
}

// === impl RecentTimes ===

impl RecentTimes {
    /// The moment from which one more is allowed; `None` if it is allowed now.
    pub fn blocked_until(&self, limit: SlidingLimit, now: Timestamp) -> Option<Timestamp> {
        let now = now.as_millisecond();
        let per = millis(limit.per);
        let recent = |time: &&i64| now.saturating_sub((**time).min(now)) < per;
        let most = usize::try_from(limit.most).unwrap_or(usize::MAX);
        let inside = self.millis.iter().rev().take_while(recent).count();
        if inside < most {
            return None;
        }
        let oldest = self.millis.len().checked_sub(most)?;
        let oldest = self.millis.get(oldest).map_or(now, |time| (*time).min(now));
        Timestamp::from_millisecond(oldest.saturating_add(per)).ok()
    }

    /// Notes that it happened.
    pub fn note(&mut self, limit: SlidingLimit, now: Timestamp) {
        let now = now.as_millisecond();
        for time in &mut self.millis {
            *time = (*time).min(now);
        }
        self.millis.push_back(now);
        let most = usize::try_from(limit.most).unwrap_or(usize::MAX).max(1);
        while self.millis.len() > most {
            self.millis.pop_front();
        }
    }
}

// === impl RunBudget ===

impl RunBudget {
    /// A budget of so many runs a minute.
    pub fn per_minute(most: u32) -> Self {
        let limit = SlidingLimit {
            most,
            per: Duration::from_mins(1),
        };
        Self {
            limit,
            recent: RecentTimes::default(),
        }
    }

    /// How many runs may start in a minute.
    pub fn most(&self) -> u32 {
        self.limit.most
    }

    /// The moment from which one more may start; `None` if it may now.
    pub fn blocked_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.recent.blocked_until(self.limit, now)
    }

    /// Notes that a run starts.
    pub fn note(&mut self, now: Timestamp) {
        self.recent.note(self.limit, now);
    }
}

// === impl TokenBucket ===

impl TokenBucket {
    /// Whether there is a token.
    pub fn has_token(self, rule: BucketRule, now: Timestamp) -> bool {
        self.after_one(rule, now).is_some()
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, rule: BucketRule, now: Timestamp) -> bool {
        match self.after_one(rule, now) {
            Some(after) => {
                *self = after;
                true
            }
            None => false,
        }
    }

    fn after_one(self, rule: BucketRule, now: Timestamp) -> Option<Self> {
        let now = now.as_millisecond();
        let per = millis(rule.per).max(i64::from(rule.burst));
        let one = per / i64::from(rule.burst.max(1));
        // A bucket is never emptier than empty, also when the clock went back.
        let full_at = self.full_at.clamp(now, now.saturating_add(per));
        let full_at = full_at.saturating_add(one);
        (rule.burst > 0 && full_at.saturating_sub(now) <= per).then_some(Self { full_at })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + millis).unwrap_or_default()
    }

    proptest! {
        /// Whatever the clock does, no more than the limit happens in any span in which it only goes forward.
        #[test]
        fn a_sliding_limit_holds_in_every_span(
            most in 1_u32..6,
            waits in proptest::collection::vec(0_i64..4_000, 1..200),
        ) {
            let limit = SlidingLimit { most, per: Duration::from_secs(10) };
            let mut recent = RecentTimes::default();
            let (mut now, mut happened) = (0, Vec::new());
            for wait in waits {
                now += wait;
                match recent.blocked_until(limit, at(now)) {
                    None => {
                        recent.note(limit, at(now));
                        happened.push(now);
                    }
                    Some(until) => prop_assert!(until > at(now)),
                }
            }
            for (index, start) in happened.iter().enumerate() {
                let inside = happened.iter().skip(index).take_while(|time| **time - start < 10_000);
                prop_assert!(inside.count() <= most as usize);
            }
        }

        /// A bucket gives at most its burst at once, and at most the burst more in each span.
        #[test]
        fn a_bucket_gives_its_burst_and_what_comes_back(
            burst in 1_u32..8,
            steps in proptest::collection::vec(-3_000_i64..3_000, 1..300),
        ) {
            let rule = BucketRule { burst, per: Duration::from_secs(8) };
            let mut bucket = TokenBucket::default();
            let (mut now, mut forward, mut taken) = (0_i64, 0_i64, 0_i64);
            for step in steps {
                now += step;
                // A clock that goes back and comes forward again makes time twice, and tokens with it.
                forward += step.max(0);
                taken += i64::from(bucket.take(rule, at(now)));
            }
            let back = forward * i64::from(burst) / 8_000;
            prop_assert!(taken <= i64::from(burst) + back + 1, "{taken} of {burst} + {back}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_a_year_does_not_block_for_a_year() {
        let limit = SlidingLimit {
            most: 1,
            per: Duration::from_secs(10),
        };
        let mut recent = RecentTimes::default();
        recent.note(limit, at(31_536_000_000));
        assert_eq!(recent.blocked_until(limit, at(0)), Some(at(10_000)));
        recent.note(limit, at(0));
        assert_eq!(recent.blocked_until(limit, at(10_000)), None);
        let rule = BucketRule {
            burst: 1,
            per: Duration::from_secs(10),
        };
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(rule, at(31_536_000_000)));
        assert!(!bucket.has_token(rule, at(0)));
    }
}
