//! What other programs read: kstatus, Flux, Argo CD and `kubectl wait`.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// A condition as every Kubernetes object has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation that it is about.
    pub observed_generation: i64,
    /// When its status last changed.
    pub last_transition_time: Time,
    /// One word for the cause.
    pub reason: String,
    /// The cause in a sentence.
    pub message: String,
}

/// A condition before it is known since when it holds.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) kind: &'static str,
    pub(crate) status: Option<bool>,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Replaces conditions by what was found. Those whose status is the same keep their time.
pub(crate) fn replace(
    conditions: &mut Vec<Condition>,
    found: Vec<Finding>,
    generation: i64,
    now: Time,
) {
    let found = found.into_iter().map(|finding| {
        let status = match finding.status {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let known = conditions
            .iter()
            .find(|known| known.kind == finding.kind && known.status == status);
        Condition {
            kind: finding.kind.to_owned(),
            status: status.to_owned(),
            observed_generation: generation,
            last_transition_time: known.map_or(now, |known| known.last_transition_time),
            reason: finding.reason,
            message: finding.message,
        }
    });
    *conditions = found.collect();
}
