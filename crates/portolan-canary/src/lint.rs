//! Advice: what the CRD allows but is not wise.

use portolan_object::{Object, Rule, Severity};
use portolan_rollout::{GROUP, KIND, MetricSource, Policy, Spec};
use portolan_yaml::Node;

use crate::rollout::spec_of;

/// Every rule, by id.
pub const RULES: &[&Rule] = &[
    &BUCKET_EDGE,
    &ONE_POD,
    &PROMOTES_UNPROVEN,
    &SAME_COUNTS,
    &SHORT_INTERVAL,
    &SHORT_STEP,
    &TWO_SCALERS,
];

static BUCKET_EDGE: Rule = Rule {
    id: "rollout/bucket-edge",
    severity: Severity::Warning,
    summary: "the limit of a latency metric lies between two buckets",
    help: "Slow requests are counted by the buckets of a histogram. If the limit is not the edge of one, the next edge \
           above counts, and requests between the two are taken for fast ones. Istio's edges are 1, 5, 10, 25, 50, 100, \
           250 and 500 ms, 1, 2.5, 5, 10, 30 and 60 s, and more.",
};

static ONE_POD: Rule = Rule {
    id: "rollout/one-pod",
    severity: Severity::Warning,
    summary: "a single pod stands for a whole revision",
    help: "With one pod for each revision, a bad node looks like a bad revision. From two replicas on a canary has two \
           pods, and from three on a single bad pod is told from a bad revision.",
};

static PROMOTES_UNPROVEN: Rule = Rule {
    id: "rollout/unproven",
    severity: Severity::Note,
    summary: "a policy promotes what was not proven",
    help: "When the time is over and nothing is proven, the policy makes the new revision the stable one. The outcome is \
           then `PromotedUnproven`. `hold` waits for a person instead.",
};

static SAME_COUNTS: Rule = Rule {
    id: "rollout/same-counts",
    severity: Severity::Error,
    summary: "a metric counts the same requests for both revisions",
    help: "The queries of a metric are asked once for each revision, with `$(slot)`, `$(revision)` or `$(arm)` replaced. \
           Without one of them both answers are the same, and nothing could ever be found; the operator refuses it.",
};

static SHORT_INTERVAL: Rule = Rule {
    id: "rollout/short-interval",
    severity: Severity::Warning,
    summary: "the interval is shorter than two scrapes usually are",
    help: "Prometheus usually scrapes every 15 to 60 seconds, and an interval needs two scrapes. A shorter interval only \
           asks the server more often; decisions are not made earlier.",
};

static SHORT_STEP: Rule = Rule {
    id: "rollout/short-step",
    severity: Severity::Warning,
    summary: "a step is shorter than two intervals",
    help: "A step that ends before two intervals are counted raises the weight on hardly any evidence.",
};

static TWO_SCALERS: Rule = Rule {
    id: "rollout/two-scalers",
    severity: Severity::Error,
    summary: "two autoscalers decide about the same pods",
    help: "Autoscaling is either `spec.autoscaling`, which makes one autoscaler for each slot, or an autoscaler of yours on \
           the scale subresource of the IstioCanaryDeployment. Two of them undo each other's numbers.",
};

/// What could be better about one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Which rule says so.
    pub rule: &'static Rule,
    /// The field that it is about, as in `spec.analysis.interval`.
    pub field: String,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
}

/// The shortest interval that is not warned of, in seconds.
const SHORT_SECONDS: u64 = 10;

/// The edges of Istio's histogram of durations, in milliseconds.
const EDGES: [u64; 19] = [
    1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000,
    1_800_000, 3_600_000, 7_200_000,
];

/// Returns what could be better about an object; nothing for other kinds, and for a spec that the definition refuses.
/// `others` are the objects that are applied beside it.
pub fn lint<'a>(object: &Object, others: impl IntoIterator<Item = &'a Object>) -> Vec<Advice> {
    let gvk = object.gvk();
    if (gvk.group.as_str(), gvk.kind.as_str()) != (GROUP, KIND) {
        return Vec::new();
    }
    let Ok(spec) = spec_of(object.node()) else {
        return Vec::new();
    };
    let mut advice = Vec::new();
    check_times(&spec, &mut advice);
    check_metrics(&spec, &mut advice);
    check_policies(&spec, &mut advice);
    if spec.wanted_replicas() == 1 && spec.workload_ref.is_none() {
        let field = match spec.autoscaling {
            Some(_) => "spec.autoscaling.minReplicas",
            None => "spec.replicas",
        };
        advice.push(Advice::new(
            &ONE_POD,
            field,
            "one pod stands for each revision",
        ));
    }
    for other in others {
        check_scaler(object, &spec, other, &mut advice);
    }
    advice
}

impl Advice {
    fn new(rule: &'static Rule, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule,
            field: field.into(),
            message: message.into(),
        }
    }
}

fn check_times(spec: &Spec, advice: &mut Vec<Advice>) {
    let interval = spec.analysis.interval.seconds();
    if interval < SHORT_SECONDS {
        let message = format!("an interval of {interval} s; it needs two scrapes");
        advice.push(Advice::new(
            &SHORT_INTERVAL,
            "spec.analysis.interval",
            message,
        ));
    }
    let least = interval.saturating_mul(2);
    let strategy = &spec.strategy;
    let mut check = |field: String, seconds: u64| {
        if seconds < least {
            let message = format!("a step of {seconds} s; two intervals take {least} s");
            advice.push(Advice::new(&SHORT_STEP, field, message));
        }
    };
    if strategy.steps.is_empty() {
        check(
            "spec.strategy.stepInterval".to_owned(),
            strategy.step_interval.seconds(),
        );
    }
    for (index, step) in strategy.steps.iter().enumerate() {
        if let Some(lasts) = step.end.lasts {
            check(format!("spec.strategy.steps[{index}].for"), lasts.seconds());
        }
    }
}

fn check_metrics(spec: &Spec, advice: &mut Vec<Advice>) {
    for (index, metric) in spec.analysis.metrics.iter().enumerate() {
        let field = |name: &str| format!("spec.analysis.metrics[{index}].{name}");
        match &metric.source {
            MetricSource::Counters(queries) => {
                for (name, query) in [("bad", &queries.bad), ("total", &queries.total)] {
                    if !["$(slot)", "$(revision)", "$(arm)"]
                        .iter()
                        .any(|one| query.contains(one))
                    {
                        let message =
                            format!("`{name}` holds none of `$(slot)`, `$(revision)` and `$(arm)`");
                        advice.push(Advice::new(&SAME_COUNTS, field(name), message));
                    }
                }
            }
            MetricSource::Builtin(builtin) => {
                let over = builtin.over.map(portolan_rollout::Span::milliseconds);
                if let Some(over) = over.filter(|over| !EDGES.contains(over)) {
                    let next = EDGES.into_iter().find(|edge| *edge > over);
                    let message = match next {
                        Some(next) => format!(
                            "Istio has no bucket that ends at {over} ms; the one at {next} ms counts"
                        ),
                        None => format!("Istio has no bucket that ends at or above {over} ms"),
                    };
                    advice.push(Advice::new(&BUCKET_EDGE, field("over"), message));
                }
            }
            MetricSource::Query(_) | MetricSource::Http(_) => {}
        }
    }
}

fn check_policies(spec: &Spec, advice: &mut Vec<Advice>) {
    let analysis = &spec.analysis;
    for (name, policy) in [
        ("onInconclusive", analysis.on_inconclusive),
        ("onNoTraffic", analysis.on_no_traffic),
        ("onMetricsDown", analysis.on_metrics_down),
    ] {
        if matches!(policy, Policy::Promote | Policy::PromoteUnlessWorse) {
            let message = format!("`{name}` promotes when nothing is proven");
            advice.push(Advice::new(
                &PROMOTES_UNPROVEN,
                format!("spec.analysis.{name}"),
                message,
            ));
        }
    }
}

/// Looks whether another object scales the same pods.
fn check_scaler(object: &Object, spec: &Spec, other: &Object, advice: &mut Vec<Advice>) {
    let is_scaler = matches!(other.kind(), "HorizontalPodAutoscaler" | "ScaledObject");
    if !is_scaler || other.namespace() != object.namespace() {
        return;
    }
    let target = |field: &str| {
        let target = other.node().at_path(&["spec", "scaleTargetRef", field]);
        target.and_then(Node::as_str).unwrap_or_default()
    };
    let name = object.name();
    let is_rollout = target("kind") == KIND && target("name") == name;
    let is_slot = ["a", "b"]
        .iter()
        .any(|slot| target("name") == format!("{name}-{slot}"));
    let message = if is_slot {
        format!(
            "{} `{}` scales a slot, whose size the rollout decides",
            other.kind(),
            other.name()
        )
    } else if is_rollout && spec.autoscaling.is_some() {
        format!("{} `{}` scales it too", other.kind(), other.name())
    } else {
        return;
    };
    let field = if spec.autoscaling.is_some() {
        "spec.autoscaling"
    } else {
        "spec.replicas"
    };
    advice.push(Advice::new(&TWO_SCALERS, field, message));
}
