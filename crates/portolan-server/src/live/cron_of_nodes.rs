//! The status of a CronJob that nodes keep, from what they tell of it.

use std::sync::Arc;

use jiff::Timestamp;
use portolan_kinds::KindObject;
use serde_json::{Value, json};

/// The status of a job: how many nodes keep it, and their last slot. `next` is the next slot by the clock of the server.
pub(super) fn status_of_nodes(
    job: &KindObject,
    next: Option<Timestamp>,
    nodes: &[Arc<KindObject>],
) -> Value {
    let kept = nodes.iter().flat_map(|node| {
        let jobs = node.status["cronJobs"].as_array();
        let jobs = jobs.into_iter().flatten();
        jobs.filter(|one| one["name"] == job.name() && one["namespace"].as_str() == job.namespace())
            .map(move |one| (node.name(), one))
    });
    let kept: Vec<(&str, &Value)> = kept.collect();
    let running = kept.iter().filter(|(_, one)| one["state"] == "running");
    let mut status = json!({
        "observedGeneration": job.metadata.generation(), "nodes": kept.len(), "active": running.count(),
    });
    let slots = kept
        .iter()
        .filter_map(|(_, one)| one["lastSlot"].as_str()?.parse::<Timestamp>().ok());
    if let Some(last) = slots.max() {
        status["lastSlot"] = last.to_string().into();
    }
    if let Some(next) = next.filter(|_| job.spec["suspend"] != true) {
        status["nextSlot"] = next.to_string().into();
    }
    let mut failed = kept.iter().filter_map(|(node, one)| {
        let error = one["error"].as_str()?;
        Some(format!("node {node}: {error}"))
    });
    if let Some(first) = failed.next() {
        let more = failed.count();
        status["error"] = match more {
            0 => first.into(),
            more => format!("{first} (and {more} more nodes)").into(),
        };
    }
    status
}

#[cfg(test)]
mod tests {
    use portolan_kinds::find_kind;

    use super::*;

    #[test]
    fn the_last_slot_of_any_node_counts_and_errors_name_the_node() {
        let object = |kind: &str, name: &str, namespace: Option<&str>, spec: Value| {
            KindObject::new(find_kind(kind).expect("a kind"), name, namespace, spec)
        };
        let job = object("CronJob", "night", Some("shop"), json!({"on": "agent"}));
        let node = |name: &str, told: Value| {
            let mut node = object("Node", name, None, json!({}));
            node.status =
                json!({"cronJobs": [told, {"namespace": "other", "name": "night", "error": "x"}]});
            Arc::new(node)
        };
        let told = |slot: &str, state: &str| json!({"namespace": "shop", "name": "night", "lastSlot": slot, "state": state});
        let mut failed = told("2026-11-18T01:00:00Z", "failed");
        failed["error"] = "step `a`: no".into();
        let nodes = [
            node("a", told("2026-11-18T02:00:00Z", "running")),
            node("b", failed),
            node("c", json!({"namespace": "shop", "name": "day"})),
        ];
        let next = "2026-11-18T03:00:00Z".parse().ok();
        let status = status_of_nodes(&job, next, &nodes);
        assert_eq!(
            status,
            json!({
                "observedGeneration": 0, "nodes": 2, "active": 1, "lastSlot": "2026-11-18T02:00:00Z",
                "nextSlot": "2026-11-18T03:00:00Z", "error": "node b: step `a`: no",
            })
        );
    }
}
