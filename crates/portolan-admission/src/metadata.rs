//! Names, labels and annotations, which every object has.

use portolan_object::{Gvk, NameRule, label_key_problems, label_value_problems};

use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

/// How much all annotations of an object may hold together.
const ANNOTATIONS_MAX: usize = 256 * 1024;
/// The controller appends eleven characters to make the name of a Job.
const CRON_JOB_NAME_MAX: usize = 52;

pub(crate) fn check(root: &Spot<'_>, gvk: &Gvk, out: &mut Refusals) {
    let Some(metadata) = root.field("metadata") else {
        return;
    };
    if let Some(rule) = rule_of(gvk) {
        out.named(&metadata, "name", rule);
    }
    let too_long = |name: Spot<'_>| {
        name.node
            .as_str()
            .is_some_and(|name| name.len() > CRON_JOB_NAME_MAX)
    };
    if let Some(name) = metadata.field("name")
        && gvk.is("batch", "CronJob")
        && too_long(name)
    {
        let message = format!("must be at most {CRON_JOB_NAME_MAX} characters");
        out.add(Fault::Name, &name, message);
    }
    described(&metadata, out);
}

/// Labels and annotations of an object or of a pod template.
pub(crate) fn described(metadata: &Spot<'_>, out: &mut Refusals) {
    if let Some(map) = metadata.field("labels") {
        labels(&map, out);
    }
    if let Some(map) = metadata.field("annotations") {
        annotations(&map, out);
    }
}

/// Keys and values of labels, also where they select.
pub(crate) fn labels(map: &Spot<'_>, out: &mut Refusals) {
    for (key, value) in map.entries() {
        if let Some(problem) = label_key_problems(key).into_iter().next() {
            out.add(Fault::Name, &value, problem);
        }
        let text = value.node.as_str().unwrap_or_default();
        if let Some(problem) = label_value_problems(text).into_iter().next() {
            out.add(Fault::Name, &value, problem);
        }
    }
}

fn annotations(map: &Spot<'_>, out: &mut Refusals) {
    let mut size = 0;
    for (key, value) in map.entries() {
        size += key.len() + value.node.as_str().map_or(0, str::len);
        // Only the values are free; keys may be written in capitals.
        if let Some(problem) = label_key_problems(&key.to_lowercase()).into_iter().next() {
            out.add(Fault::Name, &value, problem);
        }
    }
    if size > ANNOTATIONS_MAX {
        let message = "must have at most 262144 bytes together";
        out.add(Fault::Value, map, message);
    }
}

/// How objects of a kind are named; `None` for kinds with rules of their own.
fn rule_of(gvk: &Gvk) -> Option<NameRule> {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Namespace" | "Service") => Some(NameRule::Label),
        ("rbac.authorization.k8s.io", _) => Some(NameRule::Segment),
        ("certificates.k8s.io", _) | ("networking.k8s.io", "IPAddress") => None,
        _ => Some(NameRule::Subdomain),
    }
}
