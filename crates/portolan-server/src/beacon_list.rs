//! What the beacons of a namespace see on each node, and what became of schedules that nodes keep, from the status of the Nodes.

use serde_json::{Value, json};

/// One row for each Beacon and node, by their names, as JSON: beacon, node, condition, normal, lastSeen and nodeState. A Beacon
/// that no node watches for has one row without a node.
pub fn beacon_rows(beacons: &[Value], nodes: &[Value]) -> Vec<Value> {
    let mut rows = Vec::new();
    for beacon in beacons {
        let (name, namespace) = (
            &beacon["metadata"]["name"],
            &beacon["metadata"]["namespace"],
        );
        let seen = nodes.iter().flat_map(|node| {
            let states = node["status"]["beacons"].as_array();
            states.into_iter().flatten().map(move |state| (node, state))
        });
        let seen =
            seen.filter(|(_, state)| &state["name"] == name && &state["namespace"] == namespace);
        let before = rows.len();
        rows.extend(seen.map(|(node, state)| {
            json!({
                "beacon": name, "namespace": namespace, "node": node["metadata"]["name"],
                "condition": state["condition"], "normal": state["normal"] == json!(true),
                "lastSeen": state["lastSeen"], "nodeState": node["status"]["state"],
            })
        }));
        if rows.len() == before {
            rows.push(json!({"beacon": name, "namespace": namespace}));
        }
    }
    rows
}

/// One row for each CronJob that nodes keep and each of these nodes, by their names, as JSON: job, node, lastSlot, state, nextSlot,
/// error and nodeState.
pub fn cron_rows(jobs: &[Value], nodes: &[Value]) -> Vec<Value> {
    let rows = jobs.iter().flat_map(|job| {
        let (name, namespace) = (&job["metadata"]["name"], &job["metadata"]["namespace"]);
        let kept = nodes.iter().flat_map(|node| {
            let jobs = node["status"]["cronJobs"].as_array();
            jobs.into_iter().flatten().map(move |kept| (node, kept))
        });
        let kept =
            kept.filter(move |(_, kept)| &kept["name"] == name && &kept["namespace"] == namespace);
        kept.map(move |(node, kept)| {
            json!({
                "job": name, "namespace": namespace, "node": node["metadata"]["name"], "lastSlot": kept["lastSlot"],
                "state": kept["state"], "nextSlot": kept["nextSlot"], "error": kept["error"],
                "nodeState": node["status"]["state"],
            })
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beacon_has_a_row_for_each_node_and_one_if_nobody_watches() {
        let beacon = |name: &str| json!({"metadata": {"name": name, "namespace": "shop"}});
        let node = |name: &str, states: Value| json!({"metadata": {"name": name}, "status": {"state": "ready", "beacons": states}});
        let state = |namespace: &str| json!([{"namespace": namespace, "name": "room", "condition": "low", "lastSeen": "t"}]);
        let nodes = [
            node("a", state("shop")),
            node("b", state("other")),
            node("c", Value::Null),
        ];
        let rows = beacon_rows(&[beacon("idle"), beacon("room")], &nodes);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get("node"), None);
        assert_eq!(
            (&rows[1]["node"], &rows[1]["normal"]),
            (&json!("a"), &json!(false))
        );
    }

    #[test]
    fn a_schedule_has_a_row_for_each_node_that_keeps_it() {
        let job = json!({"metadata": {"name": "tick", "namespace": "shop"}});
        let kept =
            |namespace: &str| json!([{"namespace": namespace, "name": "tick", "state": "changed"}]);
        let node = |name: &str, kept: Value| json!({"metadata": {"name": name}, "status": {"cronJobs": kept}});
        let nodes = [node("a", kept("shop")), node("b", kept("other"))];
        let rows = cron_rows(&[job], &nodes);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (&rows[0]["node"], &rows[0]["state"]),
            (&json!("a"), &json!("changed"))
        );
    }
}
