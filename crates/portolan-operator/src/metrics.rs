//! What the operator tells of itself and of every rollout.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use portolan_listen::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::caches::Caches;
use crate::context::LookError;

/// From a quick look to a slow one, in seconds.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0];

/// Numbers of the operator; clones share them.
#[derive(Clone)]
pub(crate) struct OperatorMetrics {
    looks: Counter,
    seconds: Histogram,
    failures: Family<FailureLabel, Counter>,
    pub(crate) is_leading: Gauge<i64, AtomicI64>,
    pub(crate) queue: Gauge<i64, AtomicI64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabel {
    kind: &'static str,
}

impl OperatorMetrics {
    pub(crate) fn new() -> Self {
        Self {
            looks: Counter::default(),
            seconds: Histogram::new(BUCKETS),
            failures: Family::default(),
            is_leading: Gauge::default(),
            queue: Gauge::default(),
        }
    }

    pub(crate) fn looked(&self, seconds: f64) {
        self.looks.inc();
        self.seconds.observe(seconds);
    }

    pub(crate) fn failed(&self, error: &LookError) {
        let kind = match error {
            LookError::Cluster(error) => error.kind().name(),
            LookError::RevisionGone(_) => "revision",
            LookError::TooDeep => "tooDeep",
        };
        self.failures.get_or_create(&FailureLabel { kind }).inc();
    }

    /// Adds everything to what a server tells.
    pub(crate) fn register(&self, metrics: &Metrics, caches: &Arc<Caches>) {
        metrics.register(|registry| {
            let own = registry.sub_registry_with_prefix("portolan_rollout");
            own.register("reconciles", "Looks at a rollout", self.looks.clone());
            own.register(
                "reconcile_duration_seconds",
                "Time that a look takes",
                self.seconds.clone(),
            );
            own.register(
                "reconcile_failures",
                "Looks that failed, by kind of error",
                self.failures.clone(),
            );
            own.register(
                "leading",
                "Whether this operator acts",
                self.is_leading.clone(),
            );
            own.register(
                "queue_depth",
                "Rollouts that wait to be looked at",
                self.queue.clone(),
            );
        });
        let caches = Arc::clone(caches);
        metrics.add_text(Box::new(move || rollouts(&caches)));
    }
}

/// Phase, weight and evidence of every rollout, as its status says.
fn rollouts(caches: &Caches) -> String {
    let mut phases = String::from(
        "# HELP portolan_rollout_phase The phase of a rollout.\n# TYPE portolan_rollout_phase gauge\n",
    );
    let mut weights = String::from(
        "# HELP portolan_rollout_weight_percent The share of the traffic of the new revision.\n# TYPE portolan_rollout_weight_percent gauge\n",
    );
    let mut evidence = String::from(
        "# HELP portolan_rollout_evidence_log The evidence about a canary as a natural logarithm.\n# TYPE portolan_rollout_evidence_log gauge\n",
    );
    for object in caches.rollouts.all() {
        let status = &object.data["status"];
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (namespace, name) = (
            text(&object.metadata.namespace),
            text(&object.metadata.name),
        );
        let labels = format!("namespace=\"{namespace}\",name=\"{name}\"");
        if let Some(phase) = status["phase"].as_str() {
            let _ = writeln!(
                phases,
                "portolan_rollout_phase{{{labels},phase=\"{phase}\"}} 1"
            );
            let weight = status["weight"].as_u64().unwrap_or(0);
            let _ = writeln!(
                weights,
                "portolan_rollout_weight_percent{{{labels}}} {weight}"
            );
        }
        let last = status["history"]
            .as_array()
            .and_then(|history| history.last());
        let summaries = last.and_then(|last| last["evidence"].as_array());
        for summary in summaries.into_iter().flatten() {
            let metric = summary["name"].as_str().unwrap_or_default();
            let metric = metric.replace(['\\', '"', '\n'], "_");
            for (side, field) in [("rollback", "lnRollback"), ("promote", "lnPromote")] {
                if let Some(value) = summary[field].as_f64() {
                    let _ = writeln!(
                        evidence,
                        "portolan_rollout_evidence_log{{{labels},metric=\"{metric}\",for=\"{side}\"}} {value}"
                    );
                }
            }
        }
    }
    phases + &weights + &evidence
}
