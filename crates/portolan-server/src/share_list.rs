//! Shares in rows, for people.

use serde_json::{Value, json};

/// One row for each Share, as JSON: share, namespace, version, publisher, published, holders, taken (nodes that have the
/// version) and pending.
pub fn share_rows(shares: &[Value]) -> Vec<Value> {
    let rows = shares.iter().map(|share| {
        let status = &share["status"];
        let version = status["version"].as_u64().unwrap_or(0);
        let holders: Vec<&Value> = status["holders"].as_array().into_iter().flatten().collect();
        let has_it = |holder: &&&Value| version > 0 && holder["taken"].as_u64() == Some(version);
        json!({
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
        assert_eq!(
            (&rows[1]["version"], &rows[1]["pending"]),
            (&json!(0), &json!([]))
        );
    }
}
