//! What happened, with the numbers that decided it.

use portolan_judge::{Counts, Explanation};
use serde::{Deserialize, Serialize};

use crate::phase::{Outcome, Phase};
use crate::revision::Revision;
use crate::time::Time;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Counts the records of an object from 1.
    pub number: u64,
    /// When it happened.
    pub at: Time,
    /// The phase before.
    pub from: Phase,
    /// The phase after.
    pub to: Phase,
    /// The revision that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// The share of the traffic of the new revision from then on, in percent.
    pub weight: u8,
    /// How the canary ended, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// One word for the cause.
    pub reason: String,
    /// The cause in a sentence.
    pub message: String,
    /// Who caused it.
    pub actor: Actor,
    /// What was measured until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<MetricSummary>,
}

/// Who caused something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// The operator, by what it measured.
    Operator,
    /// A policy in the spec.
    Policy,
    /// A change of the spec.
    Spec,
    /// A token.
    Token,
}

/// What was measured of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricSummary {
    /// The metric's name.
    pub name: String,
    /// Requests of the new revision.
    pub canary: Counts,
    /// Requests of the old revision.
    pub stable: Counts,
    /// Evidence for a rollback, as a natural logarithm.
    pub ln_rollback: f64,
    /// Evidence for a promotion, as a natural logarithm.
    pub ln_promote: f64,
    /// Bad requests of the new revision beyond what the old one's share explains.
    pub excess: f64,
    /// The smallest odds that are excluded so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_odds: Option<f64>,
    /// Who counted the requests, as the label `reporter` says; nobody is named for counters of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<String>,
}

/// So many records are kept.
pub(crate) const KEPT: usize = 20;

impl MetricSummary {
    /// Returns the summary of a metric, with numbers rounded to what a person reads.
    pub(crate) fn new(
        name: &str,
        canary: Counts,
        stable: Counts,
        explanation: &Explanation,
        excluded_odds: Option<f64>,
    ) -> Self {
        let rounded = |number: f64| (number * 1_000.0).round() / 1_000.0;
        Self {
            name: name.to_owned(),
            canary,
            stable,
            ln_rollback: rounded(explanation.ln_rollback),
            ln_promote: rounded(explanation.ln_promote),
            excess: rounded(explanation.excess),
            excluded_odds,
            counted_by: None,
        }
    }
}
