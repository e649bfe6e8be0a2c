//! Shares in rows, for people.

use serde_json::{Value, json};

/// One row for each Share, as JSON: share, namespace, version, state (`current`, or `expired` or `taken` when the content is
/// gone), expires, oneShot, publisher, published, consumers as the Share chooses them, holders, taken (nodes that have the
/// version), pending, and lacking: the nodes that do not have it with the reason.
pub fn share_rows(shares: &[Value]) -> Vec<Value> {
    let rows = shares.iter().map(|share| {
        let status = &share["status"];
        let version = status["version"].as_u64().unwrap_or(0);
        let holders: Vec<&Value> = status["holders"].as_array().into_iter().flatten().collect();
        let has_it = |holder: &&&Value| version > 0 && holder["taken"].as_u64() == Some(version);
        let pending: Vec<&Value> = status["pending"].as_array().into_iter().flatten().collect();
        let publisher = status["publisher"].as_str();
        let mut lacking: Vec<Value> = pending
            .iter()
            .map(|node| json!({"node": node, "reason": "no node that has it is connected"}))
            .collect();
        let late = holders.iter().filter(|one| {
            !has_it(one) && one["node"].as_str() != publisher && !pending.contains(&&one["node"])
        });
        lacking.extend(late.map(|one| {
            let reason = match one["taken"].as_u64() {
                None | Some(0) => "has not fetched it".to_owned(),
                Some(old) => format!("has version {old}"),
            };
            json!({"node": one["node"], "reason": reason})
        }));
        json!({
            "state": status["gone"].as_str().unwrap_or("current"), "expires": status["expires"],
            "oneShot": status["oneShot"].as_bool().unwrap_or(false),
            "consumers": share["spec"]["consumers"], "lacking": lacking,
            "share": share["metadata"]["name"], "namespace": share["metadata"]["namespace"],
            "version": version, "publisher": status["publisher"], "published": status["published"],
            "holders": holders.iter().map(|one| &one["node"]).collect::<Vec<&Value>>(),
            "taken": holders.iter().filter(has_it).map(|one| &one["node"]).collect::<Vec<&Value>>(),
            "pending": status["pending"].as_array().cloned().unwrap_or_default(),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nodes_with_the_newest_version_have_it() {
        let share = json!({
            "metadata": {"name": "token", "namespace": "shop"},
            "status": {"version": 2, "publisher": "a", "pending": ["c"], "holders": [
                {"node": "a", "taken": 0}, {"node": "b", "taken": 2}, {"node": "d", "taken": 1},
            ]},
        });
        let rows = share_rows(&[share, json!({"metadata": {"name": "new"}})]);
        assert_eq!(rows[0]["taken"], json!(["b"]));
        assert_eq!(rows[0]["holders"], json!(["a", "b", "d"]));
        let lacking = json!([
            {"node": "c", "reason": "no node that has it is connected"}, {"node": "d", "reason": "has version 1"},
        ]);
        assert_eq!(rows[0]["lacking"], lacking);
        assert_eq!(rows[0]["state"], "current");
        assert_eq!(
            (&rows[1]["version"], &rows[1]["pending"]),
            (&json!(0), &json!([]))
        );
    }
}
