//! On which nodes a pod may run: tolerations, spreading and affinities.

use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

const NODE_OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const LABEL_OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist"];
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

pub(crate) fn check(spec: &Spot<'_>, out: &mut Refusals) {
    for toleration in spec.items("tolerations") {
        tolerated(&toleration, out);
    }
    for constraint in spec.items("topologySpreadConstraints") {
        out.one_of(
            &constraint,
            "whenUnsatisfiable",
            &["DoNotSchedule", "ScheduleAnyway"],
        );
        out.within(&constraint, "maxSkew", 1..=i64::MAX);
        not_empty(&constraint, "topologyKey", out);
        selector(&constraint, "labelSelector", out);
    }
    let Some(affinity) = spec.field("affinity") else {
        return;
    };
    if let Some(nodes) = affinity.field("nodeAffinity") {
        node_affinity(&nodes, out);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        if let Some(pods) = affinity.field(kind) {
            pod_affinity(&pods, out);
        }
    }
}

fn tolerated(toleration: &Spot<'_>, out: &mut Refusals) {
    out.one_of(toleration, "effect", EFFECTS);
    let has = |field: &str| toleration.text(field).is_some_and(|text| !text.is_empty());
    let exists = toleration.text("operator") == Some("Exists");
    if !has("key") && !exists {
        let message = "`operator` must be `Exists` when `key` is empty";
        out.add(Fault::Conflict, toleration, message);
    }
    if exists && has("value") {
        let message = "`operator: Exists` and `value` exclude each other";
        out.add(Fault::Conflict, toleration, message);
    }
    if let Some(seconds) = toleration.field("tolerationSeconds")
        && toleration.text("effect") != Some("NoExecute")
    {
        let message = "needs `effect: NoExecute`";
        out.add(Fault::Conflict, &seconds, message);
    }
}

fn node_affinity(nodes: &Spot<'_>, out: &mut Refusals) {
    if let Some(required) = nodes.field(REQUIRED) {
        for term in required.items("nodeSelectorTerms") {
            requirements(&term, NODE_OPERATORS, out);
        }
    }
    for preferred in nodes.items(PREFERRED) {
        out.within(&preferred, "weight", 1..=100);
        if let Some(term) = preferred.field("preference") {
            requirements(&term, NODE_OPERATORS, out);
        }
    }
}

fn pod_affinity(pods: &Spot<'_>, out: &mut Refusals) {
    for term in pods.items(REQUIRED) {
        pod_term(&term, out);
    }
    for preferred in pods.items(PREFERRED) {
        out.within(&preferred, "weight", 1..=100);
        if let Some(term) = preferred.field("podAffinityTerm") {
            pod_term(&term, out);
        }
    }
}

fn pod_term(term: &Spot<'_>, out: &mut Refusals) {
    not_empty(term, "topologyKey", out);
    selector(term, "labelSelector", out);
    selector(term, "namespaceSelector", out);
}

/// A label selector's operators and their values.
pub(crate) fn selector(at: &Spot<'_>, field: &str, out: &mut Refusals) {
    if let Some(selector) = at.field(field) {
        requirements(&selector, LABEL_OPERATORS, out);
    }
}

fn requirements(at: &Spot<'_>, operators: &[&str], out: &mut Refusals) {
    for requirement in at.items("matchExpressions") {
        out.one_of(&requirement, "operator", operators);
        match requirement.text("operator") {
            Some("In" | "NotIn") if !requirement.has_items("values") => {
                out.missing(&requirement, "values");
            }
            Some("Exists" | "DoesNotExist") if requirement.has_items("values") => {
                let message = "`values` must be empty for this `operator`";
                out.add(Fault::Conflict, &requirement, message);
            }
            _ => {}
        }
    }
}

fn not_empty(at: &Spot<'_>, field: &str, out: &mut Refusals) {
    if at.text(field) == Some("") {
        out.missing(at, field);
    }
}
