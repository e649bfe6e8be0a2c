//! How a new revision is judged.

use portolan_judge::{Corrections, Settings, Threshold};
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::time::Span;

/// How a new revision is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Analysis {
    /// A `RolloutAnalysis` that stands for all other fields.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<AnalysisRef>,
    /// How long an interval is whose requests are counted together.
    pub interval: Span,
    /// The largest probability of rolling back a revision that is not worse.
    pub false_rollback_rate: f64,
    /// The largest probability of promoting a revision that is harmful.
    pub false_promote_rate: f64,
    /// What is tolerated and what is harm.
    #[serde(skip_serializing_if = "is_default")]
    pub tolerate: Tolerance,
    /// What is measured; failed requests as Istio counts them if left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// How long the requests of a pod that has just started do not count.
    pub warmup: Span,
    /// What follows when `maxDuration` is over and nothing is proven.
    #[serde(skip_serializing_if = "is_default")]
    pub on_inconclusive: Policy,
    /// The same, when there were hardly any requests.
    #[serde(skip_serializing_if = "is_default")]
    pub on_no_traffic: Policy,
    /// The same, when the metrics could not be read.
    #[serde(skip_serializing_if = "is_default")]
    pub on_metrics_down: Policy,
    /// What follows when the stable pods are not ready and those of the new revision are.
    #[serde(skip_serializing_if = "is_default")]
    pub on_stable_unhealthy: Policy,
}

/// A `RolloutAnalysis` or `ClusterRolloutAnalysis`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysisRef {
    /// `RolloutAnalysis`, of the same namespace, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
}

/// What is tolerated and what is harm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tolerance {
    /// The odds ratio of bad requests that is still tolerated.
    pub odds: f64,
    /// The odds ratio from which on a revision is harmful.
    pub harmful_odds: f64,
}

/// What follows when nothing is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Policy {
    /// Wait for a person.
    #[default]
    Hold,
    /// Go back to the old revision.
    Rollback,
    /// Go on to the new one, unproven.
    Promote,
    /// Go on to the new one if nothing speaks against it, unproven.
    PromoteUnlessWorse,
}

/// Something that is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Its name in the status.
    pub name: String,
    /// Where it comes from.
    #[serde(flatten)]
    pub source: MetricSource,
    /// The share of bad requests below which nothing is harm: 0.001 for errors, 0.01 for slow answers if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub material: Option<f64>,
    /// The share of bad requests that is promised not to be passed, whatever the other arm does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<f64>,
}

/// Where a metric comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MetricSource {
    /// Istio's own metrics.
    Builtin(Builtin),
    /// Two counters in Prometheus.
    Counters(CounterQueries),
    /// A number in Prometheus that must stay in a range.
    Query(Query),
    /// An address that answers `{bad, total}`.
    Http(HttpMetric),
}

/// Istio's own metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Builtin {
    /// `istio-requests` (failed requests) or `istio-latency` (requests that took longer than `over`).
    pub builtin: String,
    /// The longest that an answer may take. It should be an edge of the histogram's buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Span>,
}

/// Two counters in Prometheus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterQueries {
    /// A query for the counter of bad requests.
    pub bad: String,
    /// A query for the counter of all requests.
    pub total: String,
}

/// A number in Prometheus that must stay in a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// The query.
    pub query: String,
    /// The least allowed value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest allowed value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// So many values outside of the range in a row are a rollback; 3 if left out.
    #[serde(default = "three")]
    pub consecutive: u32,
}

/// An address that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpMetric {
    /// The address.
    pub http: HttpSource,
}

/// The address of an HTTP metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpSource {
    /// The address, with `http` or `https`.
    pub url: String,
}

/// Istio's counter of requests.
pub(crate) const ISTIO_REQUESTS: &str = "istio-requests";
/// Istio's histogram of durations.
const ISTIO_LATENCY: &str = "istio-latency";

/// The share of failed requests below which nothing is harm.
const MATERIAL_ERRORS: f64 = 0.001;
/// The share of slow answers below which nothing is harm.
const MATERIAL_SLOW: f64 = 0.01;

impl Analysis {
    /// Returns what is measured; failed requests if nothing is said.
    pub fn metrics_or_default(&self) -> Vec<Metric> {
        if self.metrics.is_empty() {
            return vec![Metric::errors()];
        }
        self.metrics.clone()
    }

    /// Returns the settings that a metric is judged by, for an attempt at a revision counted from 1.
    pub fn settings(&self, metric: &Metric, attempt: u32, noise: f64) -> Settings {
        Settings {
            false_rollback_rate: self.false_rollback_rate,
            false_promote_rate: self.false_promote_rate,
            tolerated_odds: self.tolerate.odds,
            harmful_odds: self.tolerate.harmful_odds,
            metrics: u32::try_from(self.metrics.len()).unwrap_or(u32::MAX).max(1),
            attempt: Some(attempt.max(1)),
            corrections: Some(Corrections {
                noise: noise.clamp(0.0, LARGEST_NOISE),
                material: metric.material_share(),
            }),
        }
    }
}

/// A noise that still is a setting of a test.
const LARGEST_NOISE: f64 = 0.99;

impl Builtin {
    /// Returns whether slow requests are counted, not failed ones.
    pub fn is_latency(&self) -> bool {
        self.builtin == ISTIO_LATENCY
    }
}

impl Metric {
    /// Failed requests, as Istio counts them.
    pub fn errors() -> Self {
        Self {
            name: "errors".to_owned(),
            source: MetricSource::Builtin(Builtin {
                builtin: ISTIO_REQUESTS.to_owned(),
                over: None,
            }),
            material: None,
            slo: None,
        }
    }

    /// Returns the share of bad requests below which nothing is harm.
    pub fn material_share(&self) -> f64 {
        let by_kind = match &self.source {
            MetricSource::Builtin(builtin) if builtin.is_latency() => MATERIAL_SLOW,
            _ => MATERIAL_ERRORS,
        };
        self.material.unwrap_or(by_kind)
    }

    /// Returns the range that a number must stay in; `None` if the metric counts requests.
    pub fn threshold(&self) -> Option<Threshold> {
        let MetricSource::Query(query) = &self.source else {
            return None;
        };
        Some(Threshold {
            min: query.min,
            max: query.max,
            consecutive: query.consecutive,
        })
    }
}

impl Default for Analysis {
    fn default() -> Self {
        Self {
            reference: None,
            interval: Span::from_seconds(10),
            false_rollback_rate: 0.01,
            false_promote_rate: 0.05,
            tolerate: Tolerance::default(),
            metrics: Vec::new(),
            warmup: Span::from_seconds(60),
            on_inconclusive: Policy::default(),
            on_no_traffic: Policy::default(),
            on_metrics_down: Policy::default(),
            on_stable_unhealthy: Policy::default(),
        }
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self {
            odds: 1.25,
            harmful_odds: 2.0,
        }
    }
}

fn three() -> u32 {
    3
}
