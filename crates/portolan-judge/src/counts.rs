//! Requests counted in one interval.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Requests of one arm: how many, and how many of them were bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// All requests.
    pub total: u64,
    /// Those that failed, or took longer than they may.
    pub bad: u64,
}

/// Requests of both arms in the same interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interval {
    /// The new revision.
    pub canary: Counts,
    /// The old revision, at the same time.
    pub stable: Counts,
}

/// Why counts are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CountsError {
    /// More bad requests than requests.
    #[error("{bad} bad requests of {total}")]
    MoreBadThanTotal {
        /// Those counted as bad.
        bad: u64,
        /// All of them.
        total: u64,
    },
    /// More requests than an interval can have.
    #[error("{0} requests in one interval; at most {MOST} are counted")]
    TooMany(u64),
}

/// The most requests that an arm may have in an interval. The work on an interval grows with the square root of its
/// counts; this many take less than a tenth of a second.
pub(crate) const MOST: u64 = 1_000_000_000_000;

impl Counts {
    /// Returns the counts, or an error when they cannot be those of requests.
    pub fn new(total: u64, bad: u64) -> Result<Self, CountsError> {
        if bad > total {
            return Err(CountsError::MoreBadThanTotal { bad, total });
        }
        if total > MOST {
            return Err(CountsError::TooMany(total));
        }
        Ok(Self { total, bad })
    }

    /// Returns what is left of an arm without the requests of a part of it. The part may be counted elsewhere, so what is
    /// left may not add up exactly; it never has more bad requests than requests.
    pub(crate) fn without(self, part: Self) -> Self {
        let total = self.total.saturating_sub(part.total);
        let bad = self.bad.saturating_sub(part.bad).min(total);
        Self { total, bad }
    }

    /// Returns the share of bad requests; `None` without requests.
    pub fn bad_share(self) -> Option<f64> {
        (self.total > 0).then(|| self.bad as f64 / self.total as f64)
    }
}

impl Interval {
    /// Returns whether the interval can tell the arms apart: both had requests, some bad and some good.
    pub fn is_evidence(&self) -> bool {
        let bad = self.canary.bad + self.stable.bad;
        let total = self.canary.total + self.stable.total;
        self.canary.total > 0 && self.stable.total > 0 && bad > 0 && bad < total
    }
}
