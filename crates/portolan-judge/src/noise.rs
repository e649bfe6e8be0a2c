//! How much an arm's error rate moves by itself, measured on stable pods that run the same revision.

use serde::{Deserialize, Serialize};

use crate::counts::Interval;
use crate::evidence::spread;
use crate::settings::ASSUMED_NOISE;

/// Sums over intervals in which both arms ran the same revision.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoiseEstimate {
    intervals: u32,
    beyond_chance: f64,
    scale: f64,
}

/// So many intervals are needed before a measured noise counts.
pub const LEAST_INTERVALS: u32 = 30;

impl NoiseEstimate {
    /// Takes an interval into account whose two arms are groups of pods of one revision.
    pub fn observe(&mut self, interval: &Interval) {
        if !interval.is_evidence() {
            return;
        }
        let total = (interval.canary.total + interval.stable.total) as f64;
        let bad = (interval.canary.bad + interval.stable.bad) as f64;
        let share = interval.canary.total as f64 / total;
        let by_chance = spread(interval) * (total - bad) / (total - 1.0);
        self.intervals += 1;
        self.beyond_chance += (interval.canary.bad as f64 - bad * share).powi(2) - by_chance;
        self.scale += spread(interval).powi(2);
    }

    /// Returns the relative variance of an arm's own error rate; what is assumed until enough is measured, and never
    /// less than that.
    pub fn variance(&self) -> f64 {
        if self.intervals < LEAST_INTERVALS || self.scale <= 0.0 {
            return ASSUMED_NOISE;
        }
        (self.beyond_chance / self.scale).max(ASSUMED_NOISE)
    }
}
