//! What the intervals so far have shown about one metric.
//!
//! ```text
//! interval ──▶ ratio of each "worse" odds to the tolerated ones ──▶ products ──mean──▶ evidence for a rollback
//!          ──▶ ratio of each "sound" odds to the harmful ones   ──▶ products ──mean──▶ evidence for a promotion
//!          ──▶ canary's own bad share against the material one  ──▶ products ──mean──┘
//! ```
//!
//! All numbers are natural logarithms, so that hours of evidence neither overflow nor vanish. They are few, they serialise,
//! and a controller that restarts goes on from them.

use serde::{Deserialize, Serialize};

use crate::counts::{Counts, Interval};
use crate::odds::BadOfCanary;
use crate::settings::{Corrections, Settings};
use crate::verdict::Verdict;

/// The evidence about one metric of one canary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Products over the whole run, for each odds that would be worse.
    worse: Vec<f64>,
    /// The same since the newest part began.
    worse_in_part: Vec<f64>,
    /// The number of parts begun, the newest included.
    parts: u32,
    /// The weighted sum of the parts that are over.
    over_parts: f64,
    /// Products for each odds that would be sound.
    sound: Vec<f64>,
    /// Products of the tolerated odds against each worse one.
    milder: Vec<f64>,
    /// Products for each bad share below the material one.
    immaterial: [f64; IMMATERIAL.len()],
    /// Evidence for a rollback of the newest interval alone, neither capped nor averaged with what was before.
    #[serde(default, skip_serializing_if = "is_zero")]
    newest: f64,
    /// Bad requests of the canary beyond what the stable arm's share explains.
    excess: f64,
    /// Requests of the canary.
    canary_total: u64,
    /// Bad requests of the canary.
    canary_bad: u64,
    /// Requests of the stable arm.
    stable_total: u64,
    /// Bad requests of the stable arm.
    stable_bad: u64,
}

/// The numbers behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What follows.
    pub verdict: Verdict,
    /// Evidence for a rollback, as a natural logarithm.
    pub ln_rollback: f64,
    /// What it must reach.
    pub ln_rollback_line: f64,
    /// Evidence for a promotion, as a natural logarithm.
    pub ln_promote: f64,
    /// What it must reach.
    pub ln_promote_line: f64,
    /// Bad requests of the canary beyond what the stable arm's share explains.
    pub excess: f64,
    /// How many of those a rollback needs.
    pub least_excess: f64,
}

/// Bad shares of a canary that does no harm, as parts of the material share.
const IMMATERIAL: [f64; 3] = [0.0, 0.1, 0.25];

/// The stable arm must be this far below the material share for the canary's own share to prove anything.
const HEALTHY_STABLE: f64 = 0.5;

/// Fewer bad requests too many than this are chance, whatever the odds.
const LEAST_EXCESS: f64 = 3.0;

/// Stands for the logarithm of zero, which JSON cannot say: no later interval can outweigh it.
const LN_ZERO: f64 = -1e12;

impl Evidence {
    /// Returns evidence of nothing yet.
    pub fn new(settings: &Settings) -> Self {
        Self {
            worse: settings.worse().map(|_| 0.0).collect(),
            worse_in_part: settings.worse().map(|_| 0.0).collect(),
            parts: 1,
            over_parts: 0.0,
            sound: settings.sound().map(|_| 0.0).collect(),
            milder: settings.worse().map(|_| 0.0).collect(),
            immaterial: [0.0; IMMATERIAL.len()],
            newest: 0.0,
            excess: 0.0,
            canary_total: 0,
            canary_bad: 0,
            stable_total: 0,
            stable_bad: 0,
        }
    }

    /// Begins a new part: at each change of weight, and every ten minutes. A regression is found by the part that it
    /// falls into, whatever credit the canary earned before.
    pub fn begin_part(&mut self) {
        self.over_parts += self.newest_part();
        self.parts += 1;
        self.worse_in_part.fill(0.0);
    }

    /// Takes an interval into account.
    pub fn observe(&mut self, settings: &Settings, interval: &Interval) {
        self.canary_total += interval.canary.total;
        self.canary_bad += interval.canary.bad;
        self.stable_total += interval.stable.total;
        self.stable_bad += interval.stable.bad;
        if let Some(share) = interval.stable.bad_share() {
            self.excess += interval.canary.bad as f64 - interval.canary.total as f64 * share;
        }
        self.newest = 0.0;
        if let Some(bad_of_canary) = BadOfCanary::new(interval) {
            self.compare_arms(settings, interval, &bad_of_canary);
        }
        if let Some(corrections) = settings.corrections {
            self.hold_against_material(corrections, interval);
        }
    }

    fn compare_arms(&mut self, settings: &Settings, interval: &Interval, bad: &BadOfCanary) {
        let cap = settings.ln_promote_cap();
        for (product, odds) in self.sound.iter_mut().zip(settings.sound()) {
            let ln_ratio = bad.ln_ratio(odds, settings.harmful_odds);
            *product += corrected(settings, interval, ln_ratio, cap);
        }
        let products = self.worse.iter_mut().zip(&mut self.worse_in_part);
        let products = products.zip(&mut self.milder);
        let mut alone = Vec::new();
        for (((whole, part), milder), odds) in products.zip(settings.worse()) {
            let ln_ratio = bad.ln_ratio(odds, settings.tolerated_odds);
            alone.push(corrected(settings, interval, ln_ratio, f64::INFINITY));
            let worse = corrected(settings, interval, ln_ratio, settings.ln_rollback_cap());
            *whole += worse;
            *part += worse;
            *milder += corrected(settings, interval, -ln_ratio, cap);
        }
        self.newest = ln_mean_exp(&alone);
    }

    /// A canary whose own bad share stays below the material one does no harm, even if nothing ever fails.
    fn hold_against_material(&mut self, corrections: Corrections, interval: &Interval) {
        let (canary, stable) = (interval.canary, interval.stable);
        let material = corrections.material;
        if stable.bad as f64 > stable.total as f64 * material * HEALTHY_STABLE {
            return;
        }
        for (product, part) in self.immaterial.iter_mut().zip(IMMATERIAL) {
            let good = ((1.0 - part * material) / (1.0 - material)).ln();
            let bad = if part > 0.0 { part.ln() } else { LN_ZERO };
            // Zero bad requests times the logarithm of zero is nothing, not "not a number".
            let bad = if canary.bad == 0 {
                0.0
            } else {
                canary.bad as f64 * bad
            };
            *product = (*product + (canary.total - canary.bad) as f64 * good + bad).max(LN_ZERO);
        }
    }

    /// Returns the evidence for a rollback as a natural logarithm.
    pub fn ln_rollback(&self, settings: &Settings) -> f64 {
        let whole = ln_mean_exp(&self.worse);
        if settings.corrections.is_none() {
            return whole;
        }
        // Parts that have not begun are worth one each; their weights add up to one over the number of those that have.
        let not_begun = 1.0 / (f64::from(self.parts) + 1.0);
        let parts = self.over_parts + self.newest_part() + not_begun;
        ln_sum_exp([whole, parts.ln()]) - 2.0_f64.ln()
    }

    /// The newest part with its weight. The weights 1/2, 1/6, 1/12, … of all parts add up to one.
    fn newest_part(&self) -> f64 {
        let parts = f64::from(self.parts);
        // Far beyond any line a decision needs, and finite.
        ln_mean_exp(&self.worse_in_part).min(LARGEST_PART).exp() / (parts * (parts + 1.0))
    }

    /// Returns the evidence for a rollback of the newest interval alone, as a natural logarithm. It decides nothing: one
    /// interval may be odd by chance or by the moments of its scrapes. Nor is it a time to give the canary more requests.
    pub fn ln_newest(&self) -> f64 {
        self.newest
    }

    /// Returns the evidence for a promotion as a natural logarithm.
    pub fn ln_promote(&self, settings: &Settings) -> f64 {
        let compared = ln_mean_exp(&self.sound);
        match settings.corrections {
            None => compared,
            Some(_) => ln_sum_exp([compared, ln_mean_exp(&self.immaterial)]) - 2.0_f64.ln(),
        }
    }

    /// Returns what the evidence says, with the numbers that decide it.
    pub fn explain(&self, settings: &Settings) -> Explanation {
        let ln_rollback = self.ln_rollback(settings);
        let ln_promote = self.ln_promote(settings);
        let least_excess = settings
            .corrections
            .map_or(f64::NEG_INFINITY, |corrections| {
                LEAST_EXCESS.max(corrections.material * self.canary_total as f64)
            });
        let verdict = if ln_rollback >= settings.ln_rollback_line() && self.excess >= least_excess {
            Verdict::Rollback
        } else if ln_promote >= settings.ln_promote_line() {
            Verdict::Promote
        } else {
            Verdict::Hold
        };
        Explanation {
            verdict,
            ln_rollback,
            ln_rollback_line: settings.ln_rollback_line(),
            ln_promote,
            ln_promote_line: settings.ln_promote_line(),
            excess: self.excess,
            least_excess,
        }
    }

    /// Returns the smallest of the odds 2, 3, 5, 10 and 30 that the canary is shown not to have, with the probability of
    /// error that a promotion has; `None` while it could still have any of them.
    pub fn excluded_odds(&self, settings: &Settings) -> Option<f64> {
        let proven = |product: &f64| *product >= settings.ln_promote_line();
        let excluded = settings.worse().zip(&self.milder);
        excluded
            .filter(|(_, product)| proven(product))
            .map(|(odds, _)| odds)
            .reduce(f64::min)
    }

    /// Returns all requests of the canary so far.
    pub fn canary(&self) -> Counts {
        Counts {
            total: self.canary_total,
            bad: self.canary_bad,
        }
    }

    /// Returns all requests of the stable arm so far.
    pub fn stable(&self) -> Counts {
        Counts {
            total: self.stable_total,
            bad: self.stable_bad,
        }
    }

    /// Returns what the evidence says.
    pub fn verdict(&self, settings: &Settings) -> Verdict {
        self.explain(settings).verdict
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &f64) -> bool {
    number.to_bits() == 0
}

/// Damps a ratio by the noise of an arm and caps it, if there are corrections.
pub(crate) fn corrected(settings: &Settings, interval: &Interval, ln_ratio: f64, cap: f64) -> f64 {
    settings.corrections.map_or(ln_ratio, |corrections| {
        (ln_ratio / (1.0 + corrections.noise * spread(interval))).min(cap)
    })
}

/// A logarithm whose exponential is still finite after a few additions.
const LARGEST_PART: f64 = 600.0;

/// The variance of the canary's number of bad requests when they fall by chance, for noise to be measured against.
pub(crate) fn spread(interval: &Interval) -> f64 {
    let canary = interval.canary.total as f64;
    let share = canary / (canary + interval.stable.total as f64);
    (interval.canary.bad + interval.stable.bad) as f64 * share * (1.0 - share)
}

pub(crate) fn ln_mean_exp(values: &[f64]) -> f64 {
    ln_sum_exp(values.iter().copied()) - (values.len() as f64).ln()
}

fn ln_sum_exp(values: impl IntoIterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().into_iter().fold(f64::MIN, f64::max);
    let sum: f64 = values.into_iter().map(|value| (value - most).exp()).sum();
    most + sum.ln()
}
