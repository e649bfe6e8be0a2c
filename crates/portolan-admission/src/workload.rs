//! Workloads that run pods from a template: Deployments, `StatefulSet`s, `DaemonSet`s, Jobs and similar kinds.

use portolan_object::{Gvk, Selector};
use portolan_yaml::Node;

use crate::cron;
use crate::metadata;
use crate::placement;
use crate::pod;
use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};
use crate::storage;

/// What a Deployment waits for progress when it does not say.
const PROGRESS_DEADLINE: i64 = 600;

/// Whether a kind of Kubernetes' own has a pod template.
pub(crate) fn has_pods(gvk: &Gvk) -> bool {
    let kinds: &[&str] = match gvk.group.as_str() {
        "" => &["ReplicationController"],
        "apps" => &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
        "batch" => &["CronJob", "Job"],
        _ => &[],
    };
    kinds.contains(&gvk.kind.as_str())
}

pub(crate) fn check(root: &Spot<'_>, out: &mut Refusals) {
    let Some(spec) = root.field("spec") else {
        return;
    };
    match root.text("kind") {
        Some("CronJob") => cron_job(&spec, out),
        Some("Job") => job(&spec, out),
        Some(kind) => replicated(&spec, kind, out),
        None => {}
    }
}

fn replicated(spec: &Spot<'_>, kind: &str, out: &mut Refusals) {
    out.within(spec, "replicas", 0..=i64::from(i32::MAX));
    out.within(spec, "minReadySeconds", 0..=i64::from(i32::MAX));
    out.within(spec, "revisionHistoryLimit", 0..=i64::from(i32::MAX));
    match kind {
        "Deployment" => {
            strategy(spec, "strategy", &["Recreate", "RollingUpdate"], out);
            deadline(spec, out);
        }
        "DaemonSet" => strategy(spec, "updateStrategy", &["OnDelete", "RollingUpdate"], out),
        "StatefulSet" => stateful(spec, out),
        _ => {}
    }
    let Some(template) = spec.field("template") else {
        return;
    };
    if kind != "ReplicationController" {
        selected(spec, &template, out);
    }
    always_restarted(&template, kind, out);
    pod::template(&template, &claims(spec), out);
}

fn stateful(spec: &Spot<'_>, out: &mut Refusals) {
    strategy(spec, "updateStrategy", &["OnDelete", "RollingUpdate"], out);
    out.one_of(spec, "podManagementPolicy", &["OrderedReady", "Parallel"]);
    for claim in spec.items("volumeClaimTemplates") {
        storage::check_claim(&claim, out);
    }
}

/// The volumes that a `StatefulSet` makes for each of its pods.
fn claims<'a>(spec: &Spot<'a>) -> Vec<&'a str> {
    let list = spec
        .node
        .get("volumeClaimTemplates")
        .and_then(Node::as_list);
    let claims = list.into_iter().flat_map(portolan_yaml::List::iter);
    claims
        .filter_map(|claim| claim.at_path(&["metadata", "name"])?.as_str())
        .collect()
}

fn strategy(spec: &Spot<'_>, field: &str, types: &[&str], out: &mut Refusals) {
    let Some(strategy) = spec.field(field) else {
        return;
    };
    out.one_of(&strategy, "type", types);
    let Some(rolling) = strategy.field("rollingUpdate") else {
        return;
    };
    if !matches!(strategy.text("type"), None | Some("RollingUpdate")) {
        let message = "may only be there with `type: RollingUpdate`";
        out.add(Fault::Conflict, &rolling, message);
    }
    for field in ["maxSurge", "maxUnavailable"] {
        if let Some(amount) = rolling.field(field) {
            count_or_percentage(&amount, out);
        }
    }
    let zero = |field: &str| {
        rolling
            .field(field)
            .is_some_and(|amount| is_zero(amount.node))
    };
    if zero("maxSurge") && zero("maxUnavailable") {
        let message = "`maxSurge` and `maxUnavailable` may not both be 0";
        out.add(Fault::Conflict, &rolling, message);
    }
}

/// A count of pods, or a percentage of them.
pub(crate) fn count_or_percentage(amount: &Spot<'_>, out: &mut Refusals) {
    let is_percentage = |text: &str| {
        let digits = text.strip_suffix('%').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let wrong = match (amount.node.as_i64(), amount.node.as_str()) {
        (Some(count), _) => count < 0,
        (None, Some(text)) => !is_percentage(text),
        (None, None) => false,
    };
    if wrong {
        let message = "must be a count from 0 on or a percentage like `25%`";
        out.add(Fault::Value, amount, message);
    }
}

fn is_zero(node: &Node) -> bool {
    node.as_i64() == Some(0) || node.as_str() == Some("0%")
}

fn deadline(spec: &Spot<'_>, out: &mut Refusals) {
    let ready = spec.number("minReadySeconds").unwrap_or(0);
    let progress = spec.number("progressDeadlineSeconds");
    if progress.unwrap_or(PROGRESS_DEADLINE) > ready {
        return;
    }
    let field = if progress.is_some() {
        "progressDeadlineSeconds"
    } else {
        "minReadySeconds"
    };
    if let Some(at) = spec.field(field) {
        let message = "`progressDeadlineSeconds` must be more than `minReadySeconds`";
        out.add(Fault::Value, &at, message);
    }
}

/// The selector selects the pods of the template.
fn selected(spec: &Spot<'_>, template: &Spot<'_>, out: &mut Refusals) {
    let Some(at) = spec.field("selector") else {
        return;
    };
    if let Some(labels) = at.field("matchLabels") {
        metadata::labels(&labels, out);
    }
    placement::selector(spec, "selector", out);
    let Ok(selector) = Selector::from_node(at.node) else {
        return;
    };
    let labels = template.node.at_path(&["metadata", "labels"]);
    let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
    if selector.is_everything() {
        out.add(Fault::Selector, &at, "must not be empty");
    } else if !selector.matches(label) {
        let message = "does not match the labels of the template";
        out.add(Fault::Selector, &at, message);
    }
}

fn always_restarted(template: &Spot<'_>, kind: &str, out: &mut Refusals) {
    let Some(spec) = template.field("spec") else {
        return;
    };
    if let Some(policy) = spec.field("restartPolicy")
        && matches!(policy.node.as_str(), Some("OnFailure" | "Never"))
    {
        out.add(
            Fault::Value,
            &policy,
            format!("must be `Always` in a {kind}"),
        );
    }
}

fn cron_job(spec: &Spot<'_>, out: &mut Refusals) {
    out.one_of(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"]);
    for field in [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ] {
        out.within(spec, field, 0..=i64::MAX);
    }
    if let Some(schedule) = spec.field("schedule")
        && let Some(text) = schedule.node.as_str()
        && let Err(wrong) = cron::check(text)
    {
        out.add(Fault::Value, &schedule, wrong);
    }
    if let Some(template) = spec.field("jobTemplate")
        && let Some(spec) = template.field("spec")
    {
        job(&spec, out);
    }
}

fn job(spec: &Spot<'_>, out: &mut Refusals) {
    for field in [
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ] {
        out.within(spec, field, 0..=i64::from(i32::MAX));
    }
    out.one_of(spec, "completionMode", &["NonIndexed", "Indexed"]);
    let Some(template) = spec.field("template") else {
        return;
    };
    if let Some(pod) = template.field("spec") {
        let policy = pod.text("restartPolicy").unwrap_or("Always");
        if policy == "Always" {
            let at = pod.field("restartPolicy").unwrap_or(pod);
            let message = "a Job's pods need `restartPolicy: OnFailure` or `Never`";
            out.add(Fault::Value, &at, message);
        }
    }
    pod::template(&template, &[], out);
}
