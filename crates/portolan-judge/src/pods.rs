//! What single pods do to a comparison: pods that have just started, and one bad pod among good ones.
//!
//! ```text
//! counts of each pod ──WarmUp::admit──▶ counts of the arm ──▶ Evidence
//!                                 └──▶ Pods::observe: the evidence without each pod in turn
//! ```
//!
//! A pod that has just started fills its caches and answers slowly; that says little about its revision. And when all that
//! speaks against a canary comes from one of its pods, the node is to blame as likely as the revision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counts::{Counts, Interval};
use crate::evidence::{corrected, ln_mean_exp};
use crate::odds::BadOfCanary;
use crate::settings::Settings;

/// Requests of one pod in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodCounts {
    /// The pod's name.
    pub name: String,
    /// How many seconds the pod had been ready when the interval began.
    pub age_seconds: u64,
    /// Its requests.
    pub counts: Counts,
}

/// Requests of one arm in an interval, with those of its pods where they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Arm {
    /// All requests of the arm.
    pub counts: Counts,
    /// Requests by pod, as the pods count them; empty if they cannot be told apart. The arm's may be counted elsewhere,
    /// where requests are also seen that never arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodCounts>,
}

/// Requests of an arm's pods while they were warming up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WarmUp {
    pods: BTreeMap<String, Counts>,
}

/// The evidence for a rollback with each pod of the canary left out in turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// Products over the whole run, as if no pod were left out.
    all: Vec<f64>,
    /// The same without the requests of one pod.
    without: BTreeMap<String, Vec<f64>>,
}

/// From so many pods on, one of them can be told from the others.
const LEAST_PODS: usize = 3;

/// So many pods are told apart; what they hold has to fit into a status.
const MOST_PODS: usize = 32;

/// A pod that warms up counts only after so many requests. Without this, a single failed request would be counted and a
/// single good one would not, which alone could get a sound canary rolled back.
const LEAST_WARM_UP_REQUESTS: u64 = 10;

impl WarmUp {
    /// Returns the requests of an arm that count: all but those of pods that are ready for less than `warm_up_seconds`
    /// and did not fail more than half of their requests so far.
    pub fn admit(&mut self, arm: &Arm, warm_up_seconds: u64) -> Counts {
        self.pods.retain(|name, _| arm.has(name));
        let mut counted = arm.counts;
        for pod in &arm.pods {
            if pod.age_seconds >= warm_up_seconds {
                self.pods.remove(&pod.name);
            } else if !self.fails_from_the_start(pod) {
                counted = counted.without(pod.counts);
            }
        }
        counted
    }

    fn fails_from_the_start(&mut self, pod: &PodCounts) -> bool {
        if self.pods.len() >= MOST_PODS && !self.pods.contains_key(&pod.name) {
            return false;
        }
        let so_far = self.pods.entry(pod.name.clone()).or_default();
        so_far.total = so_far.total.saturating_add(pod.counts.total);
        so_far.bad = so_far.bad.saturating_add(pod.counts.bad);
        so_far.total >= LEAST_WARM_UP_REQUESTS && so_far.bad > so_far.total / 2
    }
}

impl Pods {
    /// Takes an interval into account, with the canary's pods in it.
    pub fn observe(&mut self, settings: &Settings, interval: &Interval, pods: &[PodCounts]) {
        self.all.resize(settings.worse().count(), 0.0);
        for pod in pods {
            if self.without.len() < MOST_PODS {
                // Until now the pod had no requests that could be left out.
                let so_far = &self.all;
                self.without
                    .entry(pod.name.clone())
                    .or_insert_with(|| so_far.clone());
            }
        }
        for (name, products) in &mut self.without {
            let pod = pods.iter().find(|pod| &pod.name == name);
            let left_out = pod.map_or(Counts::default(), |pod| pod.counts);
            add(settings, &without(interval, left_out), products);
        }
        add(settings, interval, &mut self.all);
    }

    /// Returns the pod without which nothing would speak against the canary. `None` if there are fewer than three pods or
    /// no such pod. To be asked when the evidence says rollback.
    pub fn culprit(&self) -> Option<&str> {
        if self.without.len() < LEAST_PODS {
            return None;
        }
        let evidence = self.without.iter();
        let (name, ln) = evidence
            .map(|(name, products)| (name, ln_mean_exp(products)))
            .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        // One is what no bad request at all leaves: then nothing speaks against the canary either.
        (ln <= 0.0).then_some(name.as_str())
    }
}

impl Arm {
    fn has(&self, name: &str) -> bool {
        self.pods.iter().any(|pod| pod.name == name)
    }
}

/// Multiplies each product by how much more likely the interval is under its odds than under the tolerated ones.
fn add(settings: &Settings, interval: &Interval, products: &mut [f64]) {
    let Some(bad) = BadOfCanary::new(interval) else {
        return;
    };
    for (product, odds) in products.iter_mut().zip(settings.worse()) {
        let ln_ratio = bad.ln_ratio(odds, settings.tolerated_odds);
        *product += corrected(settings, interval, ln_ratio, settings.ln_rollback_cap());
    }
}

fn without(interval: &Interval, left_out: Counts) -> Interval {
    Interval {
        canary: interval.canary.without(left_out),
        ..*interval
    }
}
