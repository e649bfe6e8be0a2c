//! What the server does by itself with agents: triggers on two servers of one store, nodes that join, values that steps make.

use portolan_server::FleetMethod;
use serde_json::{Value, json};

use crate::bed::{Bed, wait_until};

impl Bed {
    pub(crate) async fn post(&self, plural: &str, kind: &str, name: &str, spec: &Value) -> bool {
        let object = json!({
            "apiVersion": "v1alpha", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec,
        });
        let path = format!("namespaces/default/{plural}");
        let made = self.admin(FleetMethod::Post, &path, Some(object)).await;
        made.is_some()
    }

    pub(crate) async fn runs(&self) -> Vec<Value> {
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

/// A step reads a value on one node; runs on other nodes use it with its version, until it is too old.
#[tokio::test(flavor = "multi_thread")]
async fn a_variable_has_the_value_that_a_step_made() {
    let mut bed = Bed::new().await;
    bed.grant_all().await;
    let mut agents = Vec::new();
    for node in ["node-1", "node-2"] {
        agents.push(bed.start_rooted(node, Some(bed.join_token().await)));
        bed.wait_for_state(node, "ready").await;
    }
    let leader = bed.root("node-1").join("etc/leader");
    std::fs::write(&leader, "first").expect("written");
    let elect = json!({
        "target": {"all": true}, "vars": {"round": 1},
        "steps": [{"name": "leader", "runOn": "first", "read": {"path": "/etc/leader"}}],
    });
    assert!(bed.post("taskbooks", "TaskBook", "elect", &elect).await);
    let round = json!({"values": {"round": 1}});
    assert!(bed.post("variables", "Variable", "round", &round).await);
    let variable = json!({"dynamic": {
        "taskBook": "elect", "step": "leader", "results": {"leader": "result.content"}, "ttl": "1h",
    }});
    assert!(bed.post("variables", "Variable", "leader", &variable).await);
    let status = async |field: &str| {
        let path = "namespaces/default/variables/leader";
        let found = bed.admin(FleetMethod::Get, path, None).await;
        found.unwrap_or_default()["status"][field].clone()
    };
    wait_until("a value", async || status("version").await == 1).await;
    assert_eq!(status("values").await, json!({"leader": "first"}));
    assert_eq!(status("producer").await["node"], "node-1");
    // A circle through the book that makes the value is refused.
    let circle = json!({"dynamic": {"expressions": {"round": "vars.leader.size()"}}});
    assert!(!bed.post("variables", "Variable", "circle", &circle).await);

    let steps =
        json!([{"name": "note", "file": {"path": "/etc/seen", "content": "{{ vars.leader }}"}}]);
    bed.book(json!({"target": {"all": true}, "vars": {"leader": "nobody"}, "steps": steps}))
        .await;
    let run = bed.run(json!({})).await.expect("a run");
    bed.wait_for_phase(&run, "succeeded").await;
    let seen = std::fs::read_to_string(bed.root("node-2").join("etc/seen"));
    assert_eq!(seen.expect("a file"), "first");
    let versions = async |run: &str| {
        let path = format!("namespaces/default/runs/{run}");
        let found = bed.admin(FleetMethod::Get, &path, None).await;
        found.unwrap_or_default()["spec"]["variableVersions"].clone()
    };
    assert_eq!(versions(&run).await, json!({"leader": 1}));

    // What the step is made from changes, so it runs again; a second server goes on with the numbers.
    std::fs::write(&leader, "second").expect("written");
    let path = "namespaces/default/variables/round?apply=true";
    let changed = json!({
        "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": "round", "namespace": "default"},
        "spec": {"values": {"round": 2}},
    });
    bed.admin(FleetMethod::Put, path, Some(changed))
        .await
        .expect("changed");
    wait_until("another value", async || status("version").await == 2).await;
    assert_eq!(status("attempts").await, 2);

    // A step that fails leaves the last value, which runs do not use unless the Variable says so.
    std::fs::remove_file(&leader).expect("removed");
    for (policy, is_made) in [("fail", false), ("use-last", true)] {
        let mut spec = variable.clone();
        spec["dynamic"]["refresh"] = "1s".into();
        spec["dynamic"]["whenStale"] = policy.into();
        let path = "namespaces/default/variables/leader?apply=true";
        let object = json!({
            "apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": "leader", "namespace": "default"},
            "spec": spec,
        });
        bed.admin(FleetMethod::Put, path, Some(object))
            .await
            .expect("changed");
        wait_until("an error", async || status("error").await.is_string()).await;
        wait_until(policy, async || {
            bed.run(json!({})).await.is_some() == is_made
        })
        .await;
        assert_eq!(status("values").await, json!({"leader": "second"}));
    }
    bed.restart().await;
    for agent in agents {
        agent.kill().await;
    }
}
