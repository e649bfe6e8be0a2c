//! Triggers on two servers of one store: the second goes on where the first was.

use portolan_server::FleetMethod;
use serde_json::{Value, json};

use crate::bed::{Bed, wait_until};

impl Bed {
    async fn post(&self, plural: &str, kind: &str, name: &str, spec: &Value) -> bool {
        let object = json!({
            "apiVersion": "v1alpha", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec,
        });
        let path = format!("namespaces/default/{plural}");
        let made = self.admin(FleetMethod::Post, &path, Some(object)).await;
        made.is_some()
    }

    async fn runs(&self) -> Vec<Value> {
        let path = "namespaces/default/runs";
        let list = self.admin(FleetMethod::Get, path, None).await;
        let list = list.unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn fired(&self) -> Value {
        let path = "namespaces/default/triggers/count";
        let trigger = self.admin(FleetMethod::Get, path, None).await;
        trigger.unwrap_or_default()["status"]["fired"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_goes_on_with_what_triggers_have_counted() {
    let mut bed = Bed::new().await;
    let steps = json!([{"name": "note", "print": {"message": "hello"}}]);
    bed.book(json!({"target": {"all": true, "allowEmpty": true}, "steps": steps}))
        .await;
    let trigger = json!({
        "match": {"types": ["disk.full"]}, "count": 3, "within": "1h", "maxActive": 10, "run": {"book": "web"},
    });
    assert!(bed.post("triggers", "Trigger", "count", &trigger).await);
    wait_until("looked at", async || bed.fired().await == 0).await;
    let event = json!({"type": "disk.full"});
    for name in ["e1", "e2"] {
        assert!(bed.post("events", "Event", name, &event).await);
    }
    // The servers change places twice: two events are known, and no firing is repeated.
    for round in 0..2 {
        let first = if round == 0 {
            Some(bed.add_server().await)
        } else {
            bed.restart().await;
            None
        };
        if let Some(first) = first {
            first.end().await;
        }
        let name = format!("more-{round}");
        wait_until("an event", async || {
            bed.post("events", "Event", &name, &event).await
        })
        .await;
        wait_until("a run", async || bed.runs().await.len() == 1).await;
        wait_until("told", async || bed.fired().await == 1).await;
    }
    // One event was counted after the firing; two more are the next.
    for name in ["e5", "e6"] {
        assert!(bed.post("events", "Event", name, &event).await);
    }
    wait_until("a second run", async || bed.runs().await.len() == 2).await;
    wait_until("told", async || bed.fired().await == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_gets_the_books_of_its_group() {
    let bed = Bed::new().await;
    bed.grant_all().await;
    let steps =
        json!([{"name": "note", "line": {"path": "/etc/joined", "line": "hello", "create": true}}]);
    let reconcile = json!({"on": ["join"], "mode": "apply"});
    bed.book(json!({"target": {"all": true, "allowEmpty": true}, "reconcile": reconcile, "steps": steps}))
        .await;
    let mut agents = Vec::new();
    for (number, node) in ["node-1", "node-2"].into_iter().enumerate() {
        agents.push(bed.start_rooted(node, Some(bed.join_token().await)));
        let file = bed.root(node).join("etc/joined");
        wait_until("the file", async || file.exists()).await;
        let runs = bed.runs().await;
        assert_eq!(runs.len(), number + 1, "{runs:#?}");
        let made = runs.iter().filter(|run| {
            let nodes = run["spec"]["nodes"].as_array().into_iter().flatten();
            nodes.filter(|one| one["name"] == node).count() == 1
        });
        assert_eq!(made.count(), 1, "{runs:#?}");
    }
    for agent in agents {
        agent.kill().await;
    }
}
