//! What counts as worse, and how sure a decision must be.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The settings of one comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The largest probability of rolling back a canary that is not worse than tolerated.
    pub false_rollback_rate: f64,
    /// The largest probability of promoting a canary that is harmful.
    pub false_promote_rate: f64,
    /// The odds ratio of bad requests that is still tolerated.
    pub tolerated_odds: f64,
    /// The odds ratio from which on a canary is harmful.
    pub harmful_odds: f64,
    /// How many metrics are judged together: each needs more evidence for a rollback.
    pub metrics: u32,
    /// Which attempt at the same revision this is, from 1: each needs more evidence for a promotion, and all together
    /// keep the stated rate. `None` for a decision that is made once.
    pub attempt: Option<u32>,
    /// What real traffic needs besides the plain test; `None` is the plain test.
    pub corrections: Option<Corrections>,
}

/// What is done about the ways in which real traffic differs from the model of the plain test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Corrections {
    /// The variance of an arm's own error rate around its mean, relative: 0.04 is ±20 %.
    pub noise: f64,
    /// The share of bad requests below which nothing is harm.
    pub material: f64,
}

/// Why settings are refused.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum SettingsError {
    /// Not a probability that can be promised.
    #[error("the {name} is {value}; it must lie between 0 and 1")]
    Rate {
        /// Which rate.
        name: &'static str,
        /// What it was set to.
        value: f64,
    },
    /// Not an odds ratio.
    #[error("the {name} odds are {value}; they must be a positive number")]
    Odds {
        /// Which odds.
        name: &'static str,
        /// What they were set to.
        value: f64,
    },
    /// Harmful must be more than tolerated.
    #[error("the harmful odds {harmful} are not above the tolerated odds {tolerated}")]
    Order {
        /// The tolerated odds.
        tolerated: f64,
        /// The harmful odds.
        harmful: f64,
    },
    /// Nothing worse than tolerated is looked for.
    #[error("the tolerated odds are {0}; at most 30 can be told from worse ones")]
    NothingWorse(f64),
    /// Nothing better than harmful is looked for.
    #[error("the harmful odds are {0}; they must be above 0.7 for a promotion to be possible")]
    NothingBetter(f64),
    /// Not a share or variance.
    #[error("the {name} is {value}; it must be a number from {least} to below 1")]
    Correction {
        /// Which correction.
        name: &'static str,
        /// What it was set to.
        value: f64,
        /// The least allowed.
        least: f64,
    },
    /// Nothing to judge by.
    #[error("metrics and attempts are counted from 1")]
    NotCounted,
}

/// Odds of a canary that is worse: a rollback averages over them, so that none has to be guessed.
const WORSE: [f64; 5] = [2.0, 3.0, 5.0, 10.0, 30.0];

/// Odds of a canary that is as good as it should be.
const SOUND: [f64; 3] = [1.25, 1.0, 0.7];

/// Variance of an arm's own error rate that is assumed where it was not measured.
pub(crate) const ASSUMED_NOISE: f64 = 0.04;

/// An interval may move a decision by a third of the way at most, so that one odd interval decides nothing.
const INTERVALS_TO_DECIDE: f64 = 3.0;

impl Default for Settings {
    fn default() -> Self {
        Self {
            false_rollback_rate: 0.01,
            false_promote_rate: 0.05,
            tolerated_odds: 1.25,
            harmful_odds: 2.0,
            metrics: 1,
            attempt: None,
            corrections: Some(Corrections::default()),
        }
    }
}

impl Default for Corrections {
    fn default() -> Self {
        Self {
            noise: ASSUMED_NOISE,
            material: 0.001,
        }
    }
}

impl Settings {
    /// Returns the default settings of the plain test.
    pub fn plain() -> Self {
        Self {
            corrections: None,
            ..Self::default()
        }
    }

    /// Returns an error when no test has these settings.
    pub fn check(&self) -> Result<(), SettingsError> {
        for (name, value) in [
            ("false rollback rate", self.false_rollback_rate),
            ("false promote rate", self.false_promote_rate),
        ] {
            if !(value > 0.0 && value < 1.0) {
                return Err(SettingsError::Rate { name, value });
            }
        }
        let (tolerated, harmful) = (self.tolerated_odds, self.harmful_odds);
        for (name, value) in [("tolerated", tolerated), ("harmful", harmful)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(SettingsError::Odds { name, value });
            }
        }
        if harmful <= tolerated {
            return Err(SettingsError::Order { tolerated, harmful });
        }
        if self.worse().next().is_none() {
            return Err(SettingsError::NothingWorse(tolerated));
        }
        if self.sound().next().is_none() {
            return Err(SettingsError::NothingBetter(harmful));
        }
        if self.metrics == 0 || self.attempt == Some(0) {
            return Err(SettingsError::NotCounted);
        }
        self.corrections
            .map_or(Ok(()), |corrections| corrections.check())
    }

    /// The odds that a rollback averages over. Odds that are tolerated are left out: their ratios are no evidence.
    pub(crate) fn worse(&self) -> impl Iterator<Item = f64> {
        let tolerated = self.tolerated_odds;
        WORSE.into_iter().filter(move |odds| *odds > tolerated)
    }

    /// The odds that a promotion averages over, without harmful ones.
    pub(crate) fn sound(&self) -> impl Iterator<Item = f64> {
        let harmful = self.harmful_odds;
        SOUND.into_iter().filter(move |odds| *odds < harmful)
    }

    /// The logarithm of the evidence that a rollback needs.
    pub(crate) fn ln_rollback_line(&self) -> f64 {
        (f64::from(self.metrics) / self.false_rollback_rate).ln()
    }

    /// The logarithm of the evidence that a promotion needs.
    pub(crate) fn ln_promote_line(&self) -> f64 {
        // The shares 1/2, 1/6, 1/12, … of all attempts add up to one.
        let share = self.attempt.map_or(1.0, |attempt| {
            let attempt = f64::from(attempt);
            1.0 / (attempt * (attempt + 1.0))
        });
        -(self.false_promote_rate * share).ln()
    }

    /// The most that one interval may add to the evidence for a rollback.
    pub(crate) fn ln_rollback_cap(&self) -> f64 {
        self.ln_rollback_line() / INTERVALS_TO_DECIDE
    }

    /// The most that one interval may add to the evidence for a promotion.
    pub(crate) fn ln_promote_cap(&self) -> f64 {
        self.ln_promote_line() / INTERVALS_TO_DECIDE
    }
}

impl Corrections {
    fn check(&self) -> Result<(), SettingsError> {
        let material = (self.material, f64::MIN_POSITIVE);
        for (name, (value, least)) in [("noise", (self.noise, 0.0)), ("material share", material)] {
            if !(value >= least && value < 1.0) {
                return Err(SettingsError::Correction { name, value, least });
            }
        }
        Ok(())
    }
}
