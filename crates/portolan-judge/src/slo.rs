//! Whether one arm by itself fails more often than was promised.
//!
//! When both arms are broken, a comparison blames neither. This test says so.

use serde::{Deserialize, Serialize};

use crate::counts::Counts;

/// Evidence that an arm's bad share is above a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SloEvidence {
    /// The share of bad requests that was promised not to be passed.
    allowed: f64,
    /// Products for each multiple of that share.
    products: [f64; MULTIPLES.len()],
}

/// Bad shares that are looked for, as multiples of the allowed one.
const MULTIPLES: [f64; 4] = [1.5, 2.0, 4.0, 10.0];

/// No share is looked for above this one: its logarithms stay finite.
const HIGHEST_SHARE: f64 = 0.999;

impl SloEvidence {
    /// Returns evidence of nothing yet; `None` when the allowed share of bad requests is no share that can be passed.
    pub fn new(allowed: f64) -> Option<Self> {
        (allowed > 0.0 && allowed < HIGHEST_SHARE).then_some(Self {
            allowed,
            products: [0.0; MULTIPLES.len()],
        })
    }

    /// Takes the counts of an interval into account.
    pub fn observe(&mut self, counts: Counts) {
        let (bad, good) = (counts.bad as f64, (counts.total - counts.bad) as f64);
        for (product, multiple) in self.products.iter_mut().zip(MULTIPLES) {
            let share = (self.allowed * multiple).min(HIGHEST_SHARE);
            *product += bad * (share / self.allowed).ln()
                + good * ((1.0 - share) / (1.0 - self.allowed)).ln();
        }
    }

    /// Returns whether the arm is shown to be worse than promised, wrongly with at most this probability.
    pub fn is_broken(&self, false_alarm_rate: f64) -> bool {
        let most = self.products.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = self.products.iter().map(|ln| (ln - most).exp()).sum();
        most + (sum / MULTIPLES.len() as f64).ln() >= -false_alarm_rate.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(minutes: u64, total: u64, bad: u64) -> SloEvidence {
        let mut evidence = SloEvidence::new(0.001).expect("a share");
        for _ in 0..minutes {
            evidence.observe(Counts { total, bad });
        }
        evidence
    }

    #[test]
    fn a_kept_promise_is_never_called_broken() {
        assert!(!after(10_000, 1_000, 1).is_broken(0.01));
    }

    #[test]
    fn a_broken_promise_is_found_within_minutes() {
        assert!(after(3, 1_000, 10).is_broken(0.01));
    }

    #[test]
    fn shares_that_cannot_be_passed_are_refused() {
        for share in [0.0, -1.0, 1.0, f64::NAN] {
            assert_eq!(SloEvidence::new(share), None);
        }
    }
}
