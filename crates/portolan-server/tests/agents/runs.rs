//! Runs over connected agents: what is done, what is stored, and what nobody may see.

use portolan_server::FleetMethod;
use portolan_store::Span;
use serde_json::{Value, json};

use crate::bed::{Bed, RunningAgent, wait_until};

pub(crate) const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

impl Bed {
    /// Three nodes that namespace `default` may target.
    pub(crate) async fn with_nodes() -> (Self, Vec<RunningAgent>) {
        let bed = Self::new().await;
        let mut agents = Vec::new();
        for node in NODES {
            agents.push(bed.start_rooted(node, Some(bed.join_token().await)));
        }
        for node in NODES {
            bed.wait_for_state(node, "ready").await;
        }
        bed.grant_all().await;
        (bed, agents)
    }

    /// Lets the namespace `default` target the nodes of these tests.
    pub(crate) async fn grant_all(&self) {
        let group =
            json!({"kind": "NodeGroup", "metadata": {"name": "all"}, "spec": {"nodes": NODES}});
        self.create("nodegroups", group).await;
        let grant = json!({"groups": ["all"], "namespaces": ["default"]});
        let grant = json!({"kind": "NodeGrant", "metadata": {"name": "all"}, "spec": grant});
        self.create("nodegrants", grant).await;
    }

    async fn create(&self, plural: &str, mut object: Value) {
        object["apiVersion"] = "v1alpha".into();
        let made = self
            .admin(FleetMethod::Post, plural, Some(object.clone()))
            .await;
        assert!(made.is_some(), "{object}");
    }

    pub(crate) async fn book(&self, spec: Value) {
        let book = json!({"kind": "TaskBook", "metadata": {"name": "web", "namespace": "default"}, "spec": spec});
        self.create("namespaces/default/taskbooks", book).await;
    }

    async fn make(&self, plural: &str, kind: &str, name: &str, spec: Value) {
        let object =
            json!({"kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        self.create(&format!("namespaces/default/{plural}"), object)
            .await;
    }

    /// Looks into everything that is on the disk but what books write, and into the store.
    async fn assert_nowhere(&self, secret: &str) {
        assert!(!self.stored().await.contains(secret), "in the store");
        let mut waiting = vec![self.path("")];
        while let Some(path) = waiting.pop() {
            if path.ends_with("srv") {
                continue;
            }
            if path.is_dir() {
                let inside = path.read_dir_utf8().expect("read").flatten();
                waiting.extend(inside.map(camino::Utf8DirEntry::into_path));
            } else {
                let content = std::fs::read(&path).unwrap_or_default();
                let is_there = String::from_utf8_lossy(&content).contains(secret);
                assert!(!is_there, "{path}");
            }
        }
    }

    /// Why a run is refused.
    async fn refused(&self, request: Value) -> String {
        let path = "namespaces/default/taskbooks/web/run";
        let asked = self.asked(FleetMethod::Post, path, Some(request)).await;
        asked.expect_err("it is refused").to_string()
    }

    /// Makes a run and gives its name; `None` if it is refused.
    pub(crate) async fn run(&self, request: Value) -> Option<String> {
        let path = "namespaces/default/taskbooks/web/run";
        let made = self.admin(FleetMethod::Post, path, Some(request)).await?;
        Some(made["metadata"]["name"].as_str()?.to_owned())
    }

    async fn phase(&self, run: &str) -> String {
        let path = format!("namespaces/default/runs/{run}");
        let found = self.admin(FleetMethod::Get, &path, None).await;
        let phase = found.unwrap_or_default()["status"]["phase"].clone();
        phase.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn wait_for_phase(&self, run: &str, phase: &str) {
        wait_until(phase, async || {
            let now = self.phase(run).await;
            let has_ended = ["succeeded", "failed", "cancelled"].contains(&now.as_str());
            assert!(
                !has_ended || now == phase,
                "{now}: {:#}",
                self.parts(run).await
            );
            now == phase
        })
        .await;
    }

    pub(crate) async fn parts(&self, run: &str) -> Value {
        let path = format!("namespaces/default/runs/{run}/nodes");
        self.admin(FleetMethod::Get, &path, None)
            .await
            .expect("a report")
    }

    /// The states of all nodes, sorted by name.
    pub(crate) async fn states(&self, run: &str) -> Vec<String> {
        let parts = self.parts(run).await;
        let nodes = parts["nodes"].as_array().expect("nodes");
        let text = |node: &Value, key: &str| node[key].as_str().unwrap_or_default().to_owned();
        let mut states: Vec<(String, String)> = nodes
            .iter()
            .map(|node| (text(node, "name"), text(node, "state")))
            .collect();
        states.sort();
        states.into_iter().map(|(_, state)| state).collect()
    }

    /// Everything that the store holds, as text.
    async fn stored(&self) -> String {
        let mut all = String::new();
        let everything = Span::all();
        let scanned = self.store.scan(&everything, None, |record| {
            all.push_str(&String::from_utf8_lossy(&record.key));
            all.push_str(&String::from_utf8_lossy(&record.value));
            Ok(())
        });
        scanned.await.expect("read");
        all
    }
}

fn steps() -> Value {
    json!([
        {"name": "place", "directory": {"path": "/srv/web", "mode": "0755"}},
        {"name": "config", "file": {"path": "/srv/web/name", "content": "{{ node.name }} {{ vars.region }}\n"}},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_book_reaches_every_node_and_a_second_run_changes_nothing() {
    let (bed, agents) = Bed::with_nodes().await;
    let variable = json!({"kind": "Variable", "metadata": {"name": "region", "namespace": "default"},
        "spec": {"values": {"region": "north"}}});
    bed.create("namespaces/default/variables", variable).await;
    bed.book(json!({"target": {"group": "all"}, "batches": [1, 2], "vars": {"region": "none"}, "steps": steps()})).await;
    let check = bed.run(json!({"mode": "check"})).await.expect("a run");
    bed.wait_for_phase(&check, "succeeded").await;
    assert_eq!(bed.states(&check).await, ["changed"; 3]);
    for node in NODES {
        assert!(
            !bed.root(node).join("srv/web").exists(),
            "a check changes nothing"
        );
    }
    let first = bed.run(json!({})).await.expect("a run");
    bed.wait_for_phase(&first, "succeeded").await;
    assert_eq!(bed.states(&first).await, ["changed"; 3]);
    for node in NODES {
        let written = std::fs::read_to_string(bed.root(node).join("srv/web/name"));
        assert_eq!(written.expect("written"), format!("{node} north\n"));
    }
    let parts = bed.parts(&first).await;
    let step = &parts["nodes"][0]["steps"][1];
    assert_eq!(
        (&step["name"], &step["state"]),
        (&json!("config"), &json!("changed"))
    );
    assert!(
        step["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("north")),
        "{step}"
    );
    let second = bed.run(json!({})).await.expect("a run");
    bed.wait_for_phase(&second, "succeeded").await;
    assert_eq!(bed.states(&second).await, ["ok"; 3]);
    let narrowed = bed.run(json!({"nodes": ["node-2"]})).await.expect("a run");
    bed.wait_for_phase(&narrowed, "succeeded").await;
    assert_eq!(bed.states(&narrowed).await, ["ok"]);
    for agent in agents {
        agent.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_after_server_and_agent_were_restarted() {
    let (mut bed, mut agents) = Bed::with_nodes().await;
    // Nobody passes the barrier while one node is away, and the server is restarted meanwhile.
    bed.book(json!({
        "target": {"group": "all"}, "strategy": "free", "unreachable": {"wait": "10m"},
        "steps": [
            {"name": "before", "line": {"path": "/log", "line": "before", "create": true}},
            {"name": "after", "barrier": "run", "line": {"path": "/log", "line": "after", "create": true}},
        ],
    })).await;
    agents.remove(0).kill().await;
    bed.wait_for_state("node-1", "link-lost").await;
    let run = bed.run(json!({})).await.expect("a run");
    wait_until("two nodes wait", async || {
        bed.states(&run).await == ["running", "waiting", "waiting"]
    })
    .await;
    bed.restart().await;
    assert_eq!(bed.states(&run).await, ["running", "waiting", "waiting"]);
    assert!(
        !std::fs::read_to_string(bed.root("node-2").join("log"))
            .expect("a log")
            .contains("after")
    );
    agents.push(bed.start_rooted("node-1", None));
    bed.wait_for_phase(&run, "succeeded").await;
    for node in NODES {
        let log = std::fs::read_to_string(bed.root(node).join("log")).expect("a log");
        assert_eq!(log, "before\nafter\n", "{node}");
    }
    assert_eq!(bed.states(&run).await, ["changed"; 3]);
    for agent in agents {
        agent.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_stop_a_run_and_unreachable_nodes_count() {
    let (bed, mut agents) = Bed::with_nodes().await;
    bed.book(json!({
        "target": {"group": "all", "order": "name"}, "batches": [1],
        "steps": [{"name": "stop", "when": "node.name == 'node-2'", "file": {"path": "/no/such/directory", "content": "x"}}],
    })).await;
    let run = bed.run(json!({})).await.expect("a run");
    bed.wait_for_phase(&run, "failed").await;
    assert_eq!(bed.states(&run).await, ["skipped", "failed", "skipped"]);
    let parts = bed.parts(&run).await;
    let error = &parts["nodes"][1]["steps"][0]["error"];
    assert!(
        error["message"].is_string() && error["file"] == "TaskBook default/web",
        "{error}"
    );
    agents.remove(0).kill().await;
    bed.wait_for_state("node-1", "link-lost").await;
    let run = bed.run(json!({"nodes": ["node-1"]})).await.expect("a run");
    bed.wait_for_phase(&run, "failed").await;
    assert_eq!(bed.states(&run).await, ["unreachable"]);
    for agent in agents {
        agent.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_and_its_nodes_are_free() {
    let (bed, agents) = Bed::with_nodes().await;
    bed.book(json!({
        "target": {"group": "all"},
        "steps": [{"name": "wait", "wait": {"path": "/never", "timeout": "10m"}}, steps()[0]],
    }))
    .await;
    let run = bed.run(json!({})).await.expect("a run");
    wait_until("at work", async || bed.states(&run).await == ["running"; 3]).await;
    // Another run of the same nodes waits for the first, and says so.
    let next = bed.run(json!({})).await.expect("a run");
    bed.wait_for_phase(&next, "queued").await;
    let path = format!("namespaces/default/runs/{run}/cancel");
    bed.admin(FleetMethod::Post, &path, Some(json!({"how": "now"})))
        .await
        .expect("cancelled");
    bed.wait_for_phase(&run, "cancelled").await;
    wait_until("the next run is at work", async || {
        bed.states(&next).await == ["running"; 3]
    })
    .await;
    let path = format!("namespaces/default/runs/{next}/cancel");
    bed.admin(FleetMethod::Post, &path, Some(json!({"how": "now"})))
        .await
        .expect("cancelled");
    bed.wait_for_phase(&next, "cancelled").await;
    for agent in agents {
        agent.kill().await;
    }
}

/// A namespace without a grant targets nothing, a run is made by running a book alone, and a node sees its own part.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_at_nodes_or_parts_that_are_not_theirs() {
    let (bed, agents) = Bed::with_nodes().await;
    bed.book(json!({"target": {"all": true}, "steps": steps(), "vars": {"region": "x"}}))
        .await;
    bed.create(
        "namespaces",
        json!({"kind": "Namespace", "metadata": {"name": "other"}, "spec": {}}),
    )
    .await;
    let book = json!({"kind": "TaskBook", "metadata": {"name": "web", "namespace": "other"},
        "spec": {"target": {"all": true}, "steps": steps(), "vars": {"region": "x"}}});
    bed.create("namespaces/other/taskbooks", book).await;
    for request in [
        json!({}),
        json!({"nodes": ["node-1"]}),
        json!({"selector": "!x"}),
    ] {
        let path = "namespaces/other/taskbooks/web/run";
        let refused = bed
            .admin(FleetMethod::Post, path, Some(request.clone()))
            .await;
        assert_eq!(refused, None, "{request}");
    }
    let forged = json!({"apiVersion": "v1alpha", "kind": "Run", "metadata": {"name": "forged", "namespace": "other"},
        "spec": {"book": "web", "nodes": [{"name": "node-1", "uuid": "x"}]}});
    let path = "namespaces/other/runs";
    assert_eq!(bed.admin(FleetMethod::Post, path, Some(forged)).await, None);
    let run = bed
        .run(json!({"nodes": ["node-1", "node-2"]}))
        .await
        .expect("a run");
    bed.wait_for_phase(&run, "succeeded").await;
    let path = format!("/api/v1alpha/namespaces/default/runs/{run}/nodes");
    let own = bed.as_node("node-1", &path).await.expect("its own part");
    let nodes = own["nodes"].as_array().expect("nodes");
    assert_eq!((nodes.len(), &nodes[0]["name"]), (1, &json!("node-1")));
    assert!(!own.to_string().contains("node-2"), "{own}");
    assert_eq!(
        bed.as_node("node-3", &path).await,
        None,
        "it has no part in the run"
    );
    for path in [
        "/api/v1alpha/runs",
        "/api/v1alpha/namespaces/default/taskbooks/web/run",
    ] {
        assert_eq!(bed.as_node("node-1", path).await, None, "{path}");
    }
    for agent in agents {
        agent.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_inputs_reach_the_nodes_and_nothing_else() {
    const SECRET: &str = "hunter2-planted-secret";
    let (bed, agents) = Bed::with_nodes().await;
    bed.book(json!({
        "target": {"group": "all"}, "inputs": {"token": {"secret": true}},
        "steps": [{"name": "token", "file": {"path": "/token", "content": "{{ inputs.token }}", "mode": "0600"}}],
    })).await;
    assert_eq!(bed.run(json!({})).await, None, "the input is missing");
    let run = bed
        .run(json!({"inputs": {"token": SECRET}}))
        .await
        .expect("a run");
    bed.wait_for_phase(&run, "succeeded").await;
    for node in NODES {
        let token = std::fs::read_to_string(bed.root(node).join("token"));
        assert_eq!(token.expect("written"), SECRET);
    }
    let parts = bed.parts(&run).await.to_string();
    assert!(!parts.contains(SECRET) && !bed.stored().await.contains(SECRET));
    assert!(
        !bed.stored().await.contains("/secrets"),
        "the sealed inputs go with the run"
    );
    for node in NODES {
        let mut waiting = vec![bed.path(node)];
        while let Some(path) = waiting.pop() {
            if path.is_dir() {
                waiting.extend(
                    path.read_dir_utf8()
                        .expect("read")
                        .flatten()
                        .map(camino::Utf8DirEntry::into_path),
                );
            } else {
                let content = std::fs::read(&path).unwrap_or_default();
                assert!(
                    !String::from_utf8_lossy(&content).contains(SECRET),
                    "{path}"
                );
            }
        }
    }
    for agent in agents {
        agent.kill().await;
    }
}

/// A value of a Secret that a book uses as a variable, and what is computed from it, is nowhere but in the files that the book
/// writes.
#[tokio::test(flavor = "multi_thread")]
async fn secret_variables_reach_the_nodes_and_nothing_else() {
    const SECRET: &str = "hunter2{{-planted-secret";
    let (bed, agents) = Bed::with_nodes().await;
    bed.make(
        "secrets",
        "Secret",
        "db",
        json!({"values": {"password": SECRET}}),
    )
    .await;
    let password = json!({"secrets": {"password": {"secret": "db", "key": "password"}}});
    bed.make("variables", "Variable", "db", password).await;
    let url = json!({"dynamic": {"expressions": {"url": "'db://' + vars.password"}}});
    bed.make("variables", "Variable", "url", url).await;
    bed.book(json!({
        "target": {"group": "all"}, "vars": {"password": "", "url": "", "port": 80},
        "steps": [
            {"name": "place", "when": "vars.password != ''", "file": {"path": "/srv/password", "content": "{{ vars.password }}"}},
            {"name": "more", "forEach": "[vars.url]", "file": {"path": "/srv/url", "content": "{{ item }}"}},
            {"name": "look", "runOn": "first", "read": {"path": "/srv/password"}},
            {"name": "say", "print": {"message": "{{ steps['look'].content }} {{ vars.port }}"}},
            {"name": "fail", "onError": "ignore", "assert": {"that": "1 == 2", "message": "no {{ vars.url }}"}},
        ],
    })).await;
    // A check does not know what the first node will give to the others.
    for (mode, phase) in [("check", "failed"), ("apply", "succeeded")] {
        let run = bed.run(json!({"mode": mode})).await.expect("a run");
        bed.assert_nowhere(SECRET).await;
        bed.wait_for_phase(&run, phase).await;
        bed.assert_nowhere(SECRET).await;
        let stored = bed.stored().await;
        assert!(
            !stored.contains("/variables/0"),
            "what was sealed goes with the run"
        );
        for what in ["", "/nodes", "/plan"] {
            let path = format!("namespaces/default/runs/{run}{what}");
            let told = bed.admin(FleetMethod::Get, &path, None).await;
            assert!(told.is_some() || mode == "apply", "{path}");
            assert!(
                !told.unwrap_or_default().to_string().contains(SECRET),
                "{path}"
            );
        }
    }
    for path in [
        "namespaces/system/events",
        "namespaces/default/events",
        "namespaces/default/nodes/node-1/variables",
    ] {
        let told = bed.admin(FleetMethod::Get, path, None).await;
        assert!(!told.expect(path).to_string().contains(SECRET), "{path}");
    }
    for node in NODES {
        let read = |name: &str| std::fs::read_to_string(bed.root(node).join("srv").join(name));
        assert_eq!(read("password").expect("written"), SECRET);
        assert_eq!(read("url").expect("written"), format!("db://{SECRET}"));
    }
    let audit = std::fs::read_to_string(bed.path("audit.log")).expect("a log");
    let opened = |line: &&str| line.contains("read-secret") && line.contains("\"db\"");
    assert!(audit.lines().filter(opened).count() >= 2, "{audit}");
    for agent in agents {
        agent.kill().await;
    }
}

/// A Secret that is for some nodes is not given to others, also not through a Variable.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_pins_secrets_and_a_secret_stays_with_its_nodes() {
    let (bed, agents) = Bed::with_nodes().await;
    bed.make(
        "secrets",
        "Secret",
        "db",
        json!({"values": {"password": "first-of-all"}}),
    )
    .await;
    let password = json!({"secrets": {"password": {"secret": "db", "key": "password"}}});
    bed.make("variables", "Variable", "db", password).await;
    bed.make(
        "variables",
        "Variable",
        "port",
        json!({"values": {"port": 80}}),
    )
    .await;
    bed.book(json!({
        "target": {"group": "all"}, "vars": {"password": "", "port": 0}, "inputs": {"token": {"secret": true}},
        "steps": [{"name": "place", "file": {"path": "/srv/a", "content": "{{ vars.password }} {{ vars.port }} {{ inputs.token }}"}}],
    })).await;
    let given = json!({"token": "a-token-for-all"});
    let plan_of = async || {
        let request = json!({"mode": "check", "inputs": given});
        let check = bed.run(request).await.expect("a run");
        bed.wait_for_phase(&check, "succeeded").await;
        let path = format!("namespaces/default/runs/{check}/plan");
        let plan = bed.admin(FleetMethod::Get, &path, None).await;
        (check, plan.expect("a plan"))
    };
    let (check, plan) = plan_of().await;
    assert_eq!(
        plan["plan"]["versions"],
        json!({"Secret db": "generation 1", "Variable db": "generation 1", "Variable port": "generation 1"})
    );
    let approved = |inputs: &Value| json!({"plan": {"run": check, "digest": plan["digest"]}, "inputs": inputs});
    let why = bed
        .refused(approved(&json!({"token": "another-token"})))
        .await;
    assert!(why.contains("secret input `token` is not the one"), "{why}");
    let apply = async |kind: &str, plural: &str, name: &str, spec: Value| {
        let object = json!({
            "apiVersion": "v1alpha", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec,
        });
        let path = format!("namespaces/default/{plural}/{name}?apply=true");
        let applied = bed.admin(FleetMethod::Put, &path, Some(object)).await;
        assert!(applied.is_some(), "{path}");
    };
    apply(
        "Secret",
        "secrets",
        "db",
        json!({"values": {"password": "second-one"}}),
    )
    .await;
    let why = bed.refused(approved(&given)).await;
    assert!(
        why.contains("Secret db was at generation 1 and is at generation 2"),
        "{why}"
    );
    apply(
        "Variable",
        "variables",
        "port",
        json!({"values": {"port": 81}}),
    )
    .await;
    let why = bed.refused(approved(&given)).await;
    assert!(
        why.contains("Variable port was at generation 1 and is at generation 2"),
        "{why}"
    );
    let (check, plan) = plan_of().await;
    let approved = json!({"plan": {"run": check, "digest": plan["digest"]}, "inputs": given});
    let run = bed.run(approved).await.expect("a run");
    bed.wait_for_phase(&run, "succeeded").await;
    let spec = json!({"values": {"password": "second-one"}, "for": {"node": "node-1"}});
    apply("Secret", "secrets", "db", spec).await;
    let why = bed.refused(json!({"inputs": given})).await;
    assert!(
        why.contains("Secret db has a `for` that does not name the node"),
        "{why}"
    );
    let only = json!({"inputs": given, "nodes": ["node-1"]});
    assert!(bed.run(only).await.is_some());
    for agent in agents {
        agent.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_twice_makes_one_run_and_no_other_request_gets_it() {
    let (bed, _agents) = Bed::with_nodes().await;
    bed.book(json!({
        "target": {"group": "all"}, "steps": [{"name": "place", "directory": {"path": "/srv/web"}}],
    }))
    .await;
    let request = |mode: &str| json!({"mode": mode, "dedupeKey": "monday"});
    let first = bed.run(request("check")).await.expect("a run");
    assert_eq!(bed.run(request("check")).await.as_ref(), Some(&first));
    assert_eq!(bed.run(request("apply")).await, None, "another request");
    bed.wait_for_phase(&first, "succeeded").await;
}

/// A plan is refused when it is not the one that was approved, or when what it pins has changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_does_not_fit_any_more_makes_no_run() {
    let (bed, agents) = Bed::with_nodes().await;
    let variable = |region: &str| {
        json!({"apiVersion": "v1alpha", "kind": "Variable", "metadata": {"name": "region", "namespace": "default"},
            "spec": {"values": {"region": region}}})
    };
    bed.create("namespaces/default/variables", variable("north"))
        .await;
    bed.book(json!({"target": {"group": "all"}, "vars": {"region": "none"}, "steps": steps()}))
        .await;
    let check = bed.run(json!({"mode": "check"})).await.expect("a run");
    bed.wait_for_phase(&check, "succeeded").await;
    let path = format!("namespaces/default/runs/{check}/plan");
    let plan = bed
        .admin(FleetMethod::Get, &path, None)
        .await
        .expect("a plan");
    let digest = plan["digest"].as_str().expect("a digest");
    let approved = json!({"plan": {"run": check, "digest": digest}});
    for refused in [
        json!({"plan": {"run": check, "digest": "0".repeat(64)}}),
        json!({"plan": {"run": "web-nothing", "digest": digest}}),
        json!({"plan": approved["plan"], "mode": "check"}),
        json!({"plan": approved["plan"], "nodes": ["node-1"]}),
        json!({"plan": approved["plan"], "tags": ["a"]}),
    ] {
        assert_eq!(bed.run(refused.clone()).await, None, "{refused}");
    }
    let path = "namespaces/default/variables/region";
    let mut changed = bed
        .admin(FleetMethod::Get, path, None)
        .await
        .expect("a variable");
    changed["spec"]["values"]["region"] = "south".into();
    let changed = bed.admin(FleetMethod::Put, path, Some(changed)).await;
    assert!(changed.is_some(), "changed");
    assert_eq!(
        bed.run(approved.clone()).await,
        None,
        "its variables have changed"
    );
    let mut back = changed.expect("a variable");
    back["spec"]["values"]["region"] = "north".into();
    assert!(
        bed.admin(FleetMethod::Put, path, Some(back))
            .await
            .is_some()
    );
    let why = bed.refused(approved).await;
    assert!(
        why.contains("Variable region was at generation 1 and is at generation 3"),
        "{why}"
    );
    let check = bed.run(json!({"mode": "check"})).await.expect("a run");
    bed.wait_for_phase(&check, "succeeded").await;
    let path = format!("namespaces/default/runs/{check}/plan");
    let plan = bed
        .admin(FleetMethod::Get, &path, None)
        .await
        .expect("a plan");
    let digest = plan["digest"].as_str().expect("a digest");
    let approved = json!({"plan": {"run": check, "digest": digest}});
    let run = bed.run(approved.clone()).await.expect("a run");
    bed.wait_for_phase(&run, "succeeded").await;
    assert_eq!(bed.states(&run).await, ["changed"; 3]);
    let path = format!("namespaces/default/runs/{run}");
    let made = bed
        .admin(FleetMethod::Get, &path, None)
        .await
        .expect("a run");
    assert_eq!(
        (&made["spec"]["mode"], &made["spec"]["plan"]),
        (&json!("apply-plan"), &json!(digest))
    );
    let path = format!("namespaces/default/runs/{run}/plan");
    assert_eq!(
        bed.admin(FleetMethod::Get, &path, None).await,
        None,
        "it was no check"
    );
    for agent in agents {
        agent.kill().await;
    }
}
