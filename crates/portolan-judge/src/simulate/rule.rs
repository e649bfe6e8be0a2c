//! The rules that are compared.
//!
//! Flagger's and Argo's are re-made from what their documentation says of them: a fixed line for the canary's success
//! rate, a count of failed checks, and a window without requests that counts as failed.

use crate::counts::Interval;
use crate::evidence::Evidence;
use crate::settings::Settings;
use crate::verdict::Verdict;

/// A rule that decides about releases.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// The sequential test of this crate.
    Portolan {
        /// What it asks for.
        settings: Settings,
        /// How many seconds lie between two looks; a minute is divided evenly.
        interval_seconds: u32,
    },
    /// Rolls back at so many failed checks in all; a failed check also keeps the weight where it is.
    Flagger {
        /// How many failed checks are a rollback.
        threshold: u32,
    },
    /// Rolls back beyond so many failed measurements; the weight follows the clock.
    Argo {
        /// How many failed measurements are accepted.
        failure_limit: u32,
    },
}

/// What a rule knows of one release.
pub(super) enum Judge<'a> {
    Portolan(&'a Settings, Evidence),
    Flagger { threshold: u32, failed: u32 },
    Argo { failure_limit: u32, failed: u32 },
}

/// What a rule says at the end of a minute.
pub(super) struct Look {
    pub(super) verdict: Verdict,
    /// Whether the weight may go up.
    pub(super) advances: bool,
}

/// The success rate that both fixed rules ask for.
const LEAST_SUCCESS: f64 = 0.99;

/// How often a new part of the evidence begins while the weight stays.
const SECONDS_A_PART: u32 = 600;

/// How often the fixed rules look.
const FIXED_INTERVAL: u32 = 60;

impl Rule {
    /// Returns the corrected test as the operator runs it, with a look every ten seconds.
    pub fn portolan() -> Self {
        Self::Portolan {
            settings: Settings::default(),
            interval_seconds: 10,
        }
    }

    /// How many seconds lie between two looks.
    pub(super) fn interval_seconds(&self) -> u32 {
        match self {
            Self::Portolan {
                interval_seconds, ..
            } => (*interval_seconds).clamp(1, FIXED_INTERVAL),
            Self::Flagger { .. } | Self::Argo { .. } => FIXED_INTERVAL,
        }
    }

    pub(super) fn judge(&self) -> Judge<'_> {
        match self {
            Self::Portolan { settings, .. } => Judge::Portolan(settings, Evidence::new(settings)),
            Self::Flagger { threshold } => Judge::Flagger {
                threshold: *threshold,
                failed: 0,
            },
            Self::Argo { failure_limit } => Judge::Argo {
                failure_limit: *failure_limit,
                failed: 0,
            },
        }
    }
}

impl Judge<'_> {
    /// Looks at an interval that begins after so many seconds; `is_new_weight` says whether the weight has just gone up.
    pub(super) fn look(&mut self, interval: &Interval, begins: u32, is_new_weight: bool) -> Look {
        match self {
            Self::Portolan(settings, evidence) => {
                if begins > 0 && (is_new_weight || begins.is_multiple_of(SECONDS_A_PART)) {
                    evidence.begin_part();
                }
                evidence.observe(settings, interval);
                Look {
                    verdict: evidence.verdict(settings),
                    advances: true,
                }
            }
            Self::Flagger { threshold, failed } => {
                let passes = passes(interval);
                *failed += u32::from(!passes);
                Look {
                    verdict: fixed(*failed >= *threshold),
                    advances: passes,
                }
            }
            Self::Argo {
                failure_limit,
                failed,
            } => {
                *failed += u32::from(!passes(interval));
                Look {
                    verdict: fixed(*failed > *failure_limit),
                    advances: true,
                }
            }
        }
    }
}

fn passes(interval: &Interval) -> bool {
    let bad = interval.canary.bad_share();
    bad.is_some_and(|bad| 1.0 - bad >= LEAST_SUCCESS)
}

/// A fixed rule promotes whatever has not failed when the steps are over.
fn fixed(is_over: bool) -> Verdict {
    if is_over {
        Verdict::Rollback
    } else {
        Verdict::Promote
    }
}
