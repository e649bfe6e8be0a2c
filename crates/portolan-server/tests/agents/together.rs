//! What nodes of a run do together: files of books, steps that run once or on other nodes, few at a time, and gates.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_digest::Digest;
use portolan_server::FleetMethod;
use serde_json::{Value, json};

use crate::bed::{Bed, wait_until};
use crate::runs::NODES;

impl Bed {
    fn read(&self, node: &str, name: &str) -> String {
        std::fs::read_to_string(self.root(node).join(name)).unwrap_or_default()
    }

    async fn ask(&self, run: &str, what: &str) -> Option<Value> {
        let path = format!("namespaces/default/runs/{run}/{what}");
        self.admin(FleetMethod::Post, &path, Some(json!({}))).await
    }

    async fn send_file(&self, content: &[u8]) -> String {
        let path = "namespaces/default/taskbooks/web/files";
        let digest = Digest::of(content).hex();
        let parts: Vec<&[u8]> = content.chunks(256 << 10).collect();
        for (number, part) in parts.iter().enumerate() {
            let body = json!({
                "digest": digest, "part": number, "parts": parts.len(), "content": STANDARD.encode(part),
            });
            let answer = self.admin(FleetMethod::Post, path, Some(body)).await;
            let is_last = number + 1 == parts.len();
            assert_eq!(answer.expect("taken")["complete"], is_last);
        }
        digest
    }

    async fn reason(&self, run: &str) -> String {
        let path = format!("namespaces/default/runs/{run}");
        let found = self.admin(FleetMethod::Get, &path, None).await;
        let reason = found.unwrap_or_default()["status"]["reason"].clone();
        reason.as_str().unwrap_or_default().to_owned()
    }
}

/// Templates with what they include, and a file of several parts, reach the nodes; a run is repeated with the same files.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_book_reach_the_nodes() {
    let (bed, agents) = Bed::with_nodes().await;
    let template = b"{% include 'head.j2' %}node {{ node.name }}\n";
    let mut large = String::new();
    for number in 0..60_000 {
        let _ = writeln!(large, "{number:09}");
    }
    let files = json!({
        "web.j2": bed.send_file(template).await, "head.j2": bed.send_file(b"# head\n").await,
        "large": bed.send_file(large.as_bytes()).await,
    });
    let text = "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web, namespace: default}\nspec:\n  \
                target: {group: all}\n  steps:\n  - {name: config, file: {path: /srv/web, template: web.j2}}\n  \
                - {name: large, file: {path: /srv/large, source: large}}\n";
    let mut request = json!({"book": {"file": "book.yaml", "text": text, "files": files}});
    let run = bed.run(request.clone()).await.expect("a run");
    bed.wait_for_phase(&run, "succeeded").await;
    for node in NODES {
        assert_eq!(bed.read(node, "srv/web"), format!("# head\nnode {node}\n"));
        assert_eq!(bed.read(node, "srv/large"), large);
    }
    std::fs::remove_file(bed.root("node-2").join("srv/web")).expect("removed");
    let again = bed.ask(&run, "rerun").await.expect("a run");
    assert_eq!(again["spec"]["parent"], run);
    let again = again["metadata"]["name"]
        .as_str()
        .expect("a name")
        .to_owned();
    bed.wait_for_phase(&again, "succeeded").await;
    assert_eq!(bed.states(&again).await, ["ok", "changed", "ok"]);
    // What the server does not have, and what has another digest, is refused.
    request["book"]["files"]["web.j2"] = Digest::of(b"unknown").hex().into();
    assert_eq!(bed.run(request).await, None);
    let wrong = json!({"digest": Digest::of(b"a").hex(), "part": 0, "parts": 1, "content": STANDARD.encode("b")});
    let path = "namespaces/default/taskbooks/web/files";
    assert_eq!(bed.admin(FleetMethod::Post, path, Some(wrong)).await, None);
    for agent in agents {
        agent.kill().await;
    }
}

/// A step runs on the first node alone; the others wait for its result and see it, and all see what all of them gave.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_the_first_node_and_of_all_nodes_are_seen() {
    for strategy in ["free", "lockstep"] {
        let (bed, agents) = Bed::with_nodes().await;
        bed.book(json!({
            "target": {"group": "all", "order": "name"}, "strategy": strategy,
            "steps": [
                {"name": "go", "runOn": "first", "wait": {"path": "/go", "timeout": "10m"}},
                {"name": "once", "runOn": "first", "line": {"path": "/once", "line": "x", "create": true}},
                {"name": "use", "when": "steps['once'].changed", "file": {"path": "/used", "content": "u"}},
                {"name": "few", "throttle": 1, "line": {"path": "/few", "line": "{{ node.name }}", "create": true}},
                {"name": "all", "barrier": "run", "when": "results('few').size() == 3 && results('few')['node-3'].changed",
                 "file": {"path": "/all", "content": "a"}},
            ],
        }))
        .await;
        let run = bed.run(json!({})).await.expect("a run");
        wait_until("at work", async || {
            let states = bed.states(&run).await;
            states.contains(&"running".to_owned())
        })
        .await;
        std::fs::write(bed.root("node-1").join("go"), "").expect("written");
        bed.wait_for_phase(&run, "succeeded").await;
        assert_eq!(NODES.map(|node| bed.read(node, "once")), ["x\n", "", ""]);
        for node in NODES {
            assert_eq!(bed.read(node, "used"), "u", "{strategy} {node}");
            assert_eq!(bed.read(node, "few"), format!("{node}\n"), "{strategy}");
            assert_eq!(bed.read(node, "all"), "a", "{strategy} {node}");
        }
        for agent in agents {
            agent.kill().await;
        }
    }
}

/// A node takes a step for each of the others with their values, also if server and agent are restarted meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_runs_on_another_node_for_each_node() {
    let (mut bed, mut agents) = Bed::with_nodes().await;
    bed.book(json!({
        "target": {"group": "all", "order": "name"}, "unreachable": {"wait": "10m"},
        "steps": [
            {"name": "go", "runOn": {"nodes": ["node-3"]}, "wait": {"path": "/go", "timeout": "10m"}},
            {"name": "drain", "runOn": {"group": "all", "selector": "!none", "nodes": ["node-3"], "limit": 1},
             "line": {"path": "/drained", "line": "{{ node.name }} {{ item }}", "create": true}, "forEach": ["a"]},
            {"name": "once", "runOn": {"nodes": ["node-3"], "per": "run"},
             "line": {"path": "/per-run", "line": "{{ node.name }}", "create": true}},
            {"name": "after", "when": "steps['drain'].changed", "file": {"path": "/after", "content": "x"}},
        ],
    }))
    .await;
    let run = bed.run(json!({})).await.expect("a run");
    wait_until("at work", async || bed.states(&run).await == ["running"; 3]).await;
    agents.remove(2).kill().await;
    bed.restart().await;
    agents.push(bed.start_rooted("node-3", None));
    std::fs::write(bed.root("node-3").join("go"), "").expect("written");
    bed.wait_for_phase(&run, "succeeded").await;
    let drained = bed.read("node-3", "drained");
    let mut drained: Vec<&str> = drained.lines().collect();
    drained.sort_unstable();
    assert_eq!(drained, ["node-1 a", "node-2 a", "node-3 a"]);
    assert_eq!(bed.read("node-3", "per-run").lines().count(), 1);
    assert_eq!(NODES.map(|node| bed.read(node, "after")), ["x"; 3]);
    assert_eq!(bed.read("node-1", "drained"), "");
    for agent in agents {
        agent.kill().await;
    }
}

/// Steps on other nodes: once for each item, once in the run, by labels; and books that ask for the nodes of the run and for
/// others, in a text, in an expression and in a template.
#[tokio::test(flavor = "multi_thread")]
async fn steps_on_others_and_what_books_know_of_other_nodes() {
    let (bed, agents) = Bed::with_nodes().await;
    for (node, role) in [("node-1", "web"), ("node-2", "web"), ("node-3", "db")] {
        let path = format!("nodes/{node}");
        let mut found = bed.admin(FleetMethod::Get, &path, None).await;
        let found = found.as_mut().expect("a node");
        found["metadata"]["labels"]["role"] = role.into();
        let changed = bed.admin(FleetMethod::Put, &path, Some(found.take())).await;
        assert!(changed.is_some(), "labelled");
    }
    let template = bed
        .send_file(b"{{ peers | map(attribute='name') | join(' ') }}\n")
        .await;
    let text = "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web, namespace: default}\nspec:\n  \
                target: {selector: role=web, order: name}\n  \
                compute: {backends: \"nodes ('role=db').map(n, n.name)\"}\n  steps:\n  \
                - {name: each, runOn: {selector: role=db}, forEach: [a, b], \
                   line: {path: /each, line: '{{ node.name }} {{ item }}', create: true}}\n  \
                - {name: once, runOn: {selector: role=db, per: run}, line: {path: /once, line: '{{ node.name }}', create: true}}\n  \
                - {name: seen, when: \"steps['each'].changed && steps['once'].changed\", \
                   file: {path: /seen, content: \"{{ vars.backends | join(' ') }}\"}}\n  \
                - {name: peers, file: {path: /peers, template: peers.j2}}\n";
    let book = json!({"file": "book.yaml", "text": text, "files": {"peers.j2": template}});
    let run = bed.run(json!({"book": book})).await.expect("a run");
    bed.wait_for_phase(&run, "succeeded").await;
    assert_eq!(
        bed.states(&run).await,
        ["changed"; 2],
        "the nodes of the run alone"
    );
    let each = bed.read("node-3", "each");
    let mut each: Vec<&str> = each.lines().collect();
    each.sort_unstable();
    assert_eq!(each, ["node-1 a", "node-1 b", "node-2 a", "node-2 b"]);
    assert_eq!(bed.read("node-3", "once").lines().count(), 1);
    for node in ["node-1", "node-2"] {
        assert_eq!(bed.read(node, "seen"), "node-3");
        assert_eq!(bed.read(node, "peers"), "node-1 node-2\n");
        assert_eq!(bed.read(node, "each") + &bed.read(node, "once"), "");
    }
    assert_eq!(bed.read("node-3", "seen"), "", "it has no part of its own");
    for agent in agents {
        agent.kill().await;
    }
}

/// A namespace that lost its grant puts nothing on a node any more, not by a run that was made before, and not through another node.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_counts_when_a_run_is_made_and_when_steps_are_sent() {
    let (bed, agents) = Bed::with_nodes().await;
    bed.book(json!({
        "target": {"nodes": ["node-1", "node-2"], "order": "name"}, "maxFailures": 3, "strategy": "free",
        "steps": [
            {"name": "go", "wait": {"path": "/go", "timeout": "10m"}},
            {"name": "other", "runOn": {"nodes": ["node-3"]}, "line": {"path": "/other", "line": "x", "create": true}},
        ],
    }))
    .await;
    let run = bed.run(json!({})).await.expect("a run");
    wait_until("at work", async || bed.states(&run).await == ["running"; 2]).await;
    let path = "nodegroups/all";
    let mut group = bed
        .admin(FleetMethod::Get, path, None)
        .await
        .expect("a group");
    group["spec"]["nodes"] = json!(["node-1", "node-2"]);
    bed.admin(FleetMethod::Put, path, Some(group))
        .await
        .expect("changed");
    for node in ["node-1", "node-2"] {
        std::fs::write(bed.root(node).join("go"), "").expect("written");
    }
    bed.wait_for_phase(&run, "failed").await;
    assert_eq!(bed.states(&run).await, ["failed"; 2]);
    let parts = bed.parts(&run).await.to_string();
    assert!(
        parts.contains("may not target the node any more"),
        "{parts}"
    );
    assert_eq!(bed.read("node-3", "other"), "");
    assert_eq!(bed.run(json!({})).await, None, "and no new run is made");
    for agent in agents {
        agent.kill().await;
    }
}

/// The next batch waits until a probe succeeds and somebody approves, also over a restart of the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_gate_holds_the_next_batch() {
    let (mut bed, agents) = Bed::with_nodes().await;
    bed.book(json!({
        "target": {"group": "all", "order": "name", "limit": 2}, "batches": [1], "unreachable": {"wait": "10m"},
        "continue": {
            "probe": {"wait": {"path": "/healthy", "timeout": "1s"}}, "runOn": "first",
            "retries": {"limit": 1, "interval": "1s"}, "approve": true,
        },
        "steps": [{"name": "work", "line": {"path": "/work", "line": "x", "create": true}}],
    }))
    .await;
    let run = bed.run(json!({})).await.expect("a run");
    bed.wait_for_phase(&run, "stalled").await;
    assert!(
        bed.reason(&run)
            .await
            .contains("the gate after batch 1 does not open")
    );
    assert_eq!(bed.read("node-2", "work"), "");
    std::fs::write(bed.root("node-1").join("healthy"), "").expect("written");
    bed.ask(&run, "resume").await.expect("resumed");
    wait_until("it waits for an approval", async || {
        bed.reason(&run).await.contains("approve")
    })
    .await;
    bed.restart().await;
    assert_eq!(bed.read("node-2", "work"), "");
    bed.ask(&run, "approve").await.expect("approved");
    bed.wait_for_phase(&run, "succeeded").await;
    assert_eq!(bed.states(&run).await, ["changed"; 2]);
    assert_eq!(bed.ask(&run, "approve").await, None, "it has ended");
    for agent in agents {
        agent.kill().await;
    }
}
