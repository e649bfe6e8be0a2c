//! What nodes of a run give to each other: results of steps, files, and who has them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use portolan_server::FleetMethod;
use portolan_store::{Span, Transaction};
use serde_json::{Value, json};

use crate::bed::{Bed, wait_until};
use crate::runs::NODES;

/// Nobody but the nodes may have it.
const PLANTED: &str = "planted-7Qk2mZ9vT4";

impl Bed {
    /// Runs steps on nodes, and gives the name of the run.
    async fn run_steps(&self, nodes: &[&str], steps: &Value) -> String {
        let book = json!({
            "apiVersion": "v1alpha", "kind": "TaskBook", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"target": {"nodes": nodes, "order": "name"}, "steps": steps},
        });
        let book = json!({"file": "book.yaml", "text": book.to_string(), "files": {}});
        let run = self.run(json!({"book": book})).await;
        run.expect("a run")
    }

    async fn share(&self, name: &str) -> Value {
        let path = format!("namespaces/default/shares/{name}");
        let found = self.admin(FleetMethod::Get, &path, None).await;
        found.unwrap_or_default()
    }

    async fn has_event(&self, kind: &str) -> bool {
        let path = "namespaces/default/events";
        let found = self.admin(FleetMethod::Get, path, None).await;
        found.unwrap_or_default().to_string().contains(kind)
    }

    /// Asserts that no file of the server and of the agents has the planted value; the nodes themselves have it.
    fn assert_not_planted(&self) {
        let mut waiting = vec![self.path("").into_std_path_buf()];
        let mut seen = 0;
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                let is_node = path.to_string_lossy().ends_with("-root");
                if path.is_dir() && !is_node {
                    waiting.push(path);
                } else if path.is_file() {
                    let content = fs::read(&path).unwrap_or_default();
                    let mut parts = content.windows(PLANTED.len());
                    assert!(
                        !parts.any(|part| part == PLANTED.as_bytes()),
                        "{}",
                        path.display()
                    );
                    seen += 1;
                }
            }
        }
        assert!(seen > 3, "files were looked at");
    }
}

/// A large result is kept apart, a sensitive one is encrypted to the nodes of the run; neither a restart of the server nor one
/// of the node that gave them loses them.
#[tokio::test(flavor = "multi_thread")]
async fn large_and_sensitive_results_reach_the_other_nodes() {
    let (mut bed, mut agents) = Bed::with_nodes().await;
    let large = "0123456789".repeat(6_000);
    fs::write(bed.root("node-1").join("srv/large"), &large).expect("written");
    for node in NODES {
        let secret = format!("{PLANTED} of {node}");
        fs::write(bed.root(node).join("srv/secret"), secret).expect("written");
    }
    let steps = json!([
        {"name": "large", "runOn": "first", "read": {"path": "/srv/large"}},
        {"name": "secret", "runOn": "first", "read": {"path": "/srv/secret"}, "sensitive": true},
        {"name": "own", "read": {"path": "/srv/secret"}, "sensitive": true},
        {"name": "given", "barrier": "run", "wait": {"path": "/srv/go", "timeout": "5m"}},
        {"name": "copy", "file": {"path": "/srv/copy", "content": "{{ steps['large'].content }}"}},
        {"name": "token", "file": {"path": "/srv/token", "content": "{{ steps['secret'].content }}", "mode": "0600"}},
        {"name": "all", "when": "results('own')['node-3'].content.endsWith(' of node-3')",
         "file": {"path": "/srv/all", "content": "seen"}},
    ]);
    let run = bed.run_steps(&NODES, &steps).await;
    wait_until("the results are given", async || {
        let states = bed.parts(&run).await.to_string();
        states.matches("\"name\":\"own\"").count() == 3
    })
    .await;
    bed.restart().await;
    agents.remove(0).kill().await;
    agents.insert(0, bed.start_rooted("node-1", None));
    for node in NODES {
        fs::write(bed.root(node).join("srv/go"), "").expect("written");
    }
    bed.wait_for_phase(&run, "succeeded").await;
    for node in NODES {
        let read = |name: &str| fs::read_to_string(bed.root(node).join(name)).unwrap_or_default();
        assert_eq!(read("srv/copy"), large, "{node}");
        assert_eq!(read("srv/token"), format!("{PLANTED} of node-1"), "{node}");
        assert_eq!(read("srv/all"), "seen", "{node}");
    }
    let parts = bed.parts(&run).await.to_string();
    assert!(!parts.contains(PLANTED), "{parts}");
    bed.assert_not_planted();
    // What is too large fails where it is given, and says so.
    let items: Vec<u32> = (0..20).collect();
    let steps = json!([
        {"name": "huge", "runOn": "first", "forEach": items, "read": {"path": "/srv/large"}},
        {"name": "size", "when": "steps['huge'].items.size() == 20", "file": {"path": "/srv/size", "content": "x"}},
    ]);
    let run = bed.run_steps(&NODES, &steps).await;
    bed.wait_for_phase(&run, "failed").await;
    let parts = bed.parts(&run).await.to_string();
    assert!(parts.contains("can be given at most"), "{parts}");
    for agent in agents {
        agent.kill().await;
    }
}

/// Files with their permissions, in a directory that is always one whole version.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_given_to_other_nodes() {
    let (bed, agents) = Bed::with_nodes().await;
    let from = bed.root("node-1").join("srv/tls");
    fs::create_dir_all(from.join("old")).expect("made");
    for (name, mode) in [
        ("key.pem", 0o600),
        ("cert.pem", 0o644),
        ("old/key.pem", 0o640),
    ] {
        fs::write(from.join(name), format!("{PLANTED} {name}")).expect("written");
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(from.join(name), mode).expect("set");
    }
    let steps = json!([
        {"name": "give", "runOn": "first", "publish": {"share": "tls", "directory": "/srv/tls", "to": {"group": "all"}}},
        {"name": "take", "barrier": "run", "fetch": {"share": "tls", "directory": "/etc/tls", "purge": true}},
    ]);
    let first = bed.run_steps(&NODES, &steps).await;
    bed.wait_for_phase(&first, "succeeded").await;
    for node in NODES {
        let to = bed.root(node).join("etc/tls");
        for (name, mode) in [
            ("key.pem", 0o600),
            ("cert.pem", 0o644),
            ("old/key.pem", 0o640),
        ] {
            let content = fs::read_to_string(to.join(name)).unwrap_or_default();
            assert_eq!(content, format!("{PLANTED} {name}"), "{node}");
            let found = fs::metadata(to.join(name)).expect("a file").permissions();
            assert_eq!(found.mode() & 0o777, mode, "{node} {name}");
        }
        let top = fs::metadata(&to).expect("a directory").permissions();
        assert_eq!(top.mode() & 0o777, 0o700, "{node}");
        // Nothing is left beside it.
        let beside = fs::read_dir(bed.root(node).join("etc")).expect("a directory");
        assert_eq!(beside.count(), 2, "{node}");
    }
    bed.assert_not_planted();
    // A second time nothing is to be done; a check says what would be.
    let second = bed.run_steps(&NODES, &steps).await;
    bed.wait_for_phase(&second, "succeeded").await;
    assert_eq!(bed.states(&second).await, ["ok"; 3]);
    fs::remove_file(from.join("old/key.pem")).expect("removed");
    fs::write(bed.root("node-2").join("etc/tls/stray"), "").expect("written");
    let third = bed.run_steps(&NODES, &steps).await;
    bed.wait_for_phase(&third, "succeeded").await;
    assert_eq!(bed.states(&third).await, ["changed"; 3]);
    assert_eq!(bed.share("tls").await["status"]["version"], 2);
    for node in NODES {
        let to = bed.root(node).join("etc/tls");
        assert!(!to.join("old").exists() && !to.join("stray").exists());
        assert!(to.join("key.pem").exists(), "{node}");
    }
    // Files that are not of the share are not removed unasked, and links are not followed.
    fs::write(bed.root("node-2").join("etc/tls/stray"), "").expect("written");
    let keep = json!([{"name": "take", "fetch": {"share": "tls", "directory": "/etc/tls"}}]);
    let refused = bed.run_steps(&["node-2"], &keep).await;
    bed.wait_for_phase(&refused, "failed").await;
    let parts = bed.parts(&refused).await.to_string();
    assert!(parts.contains("not in the share: stray"), "{parts}");
    symlink("/etc/hostname", from.join("link")).expect("made");
    let refused = bed.run_steps(&["node-1"], &json!([steps[0]])).await;
    bed.wait_for_phase(&refused, "failed").await;
    for agent in agents {
        agent.kill().await;
    }
}

/// A step waits until all nodes have a version: one comes late, one is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_waits_until_all_nodes_have_a_share() {
    let (bed, mut agents) = Bed::with_nodes().await;
    let give = json!({"name": "give", "runOn": "first", "publish": {"share": "token", "value": PLANTED, "to": {"group": "all"}}});
    let take = json!({"name": "take", "barrier": "run", "fetch": {"share": "token", "path": "/etc/token"}});
    let all = |timeout: &str, more: Value| {
        let mut wait = json!({"share": "token", "timeout": timeout});
        for (key, value) in more.as_object().into_iter().flatten() {
            wait[key] = value.clone();
        }
        json!({"name": "all", "barrier": "run", "wait": wait})
    };
    let version = json!({"version": "{{ steps['give'].version }}"});
    let steps = json!([give, take, all("5m", version)]);
    let waits = bed.run_steps(&["node-1", "node-2"], &steps).await;
    wait_until("two have it", async || {
        let holders = bed.share("token").await["status"]["holders"].clone();
        let holders = holders.as_array().cloned().unwrap_or_default();
        holders.iter().filter(|one| one["taken"] == 1).count() == 2
    })
    .await;
    assert_eq!(bed.states(&waits).await[0], "running");
    let late = bed.run_steps(&["node-3"], &json!([take])).await;
    bed.wait_for_phase(&late, "succeeded").await;
    bed.wait_for_phase(&waits, "succeeded").await;
    // Another version, and the third node is gone.
    let agent = agents.remove(2);
    agent.stop.cancel();
    let _ = agent.ended.await;
    bed.wait_for_state("node-3", "left").await;
    let mut give = give;
    give["publish"]["value"] = "another".into();
    let steps = json!([give, take, all("3s", json!({}))]);
    let without = bed.run_steps(&["node-1", "node-2"], &steps).await;
    bed.wait_for_phase(&without, "failed").await;
    let parts = bed.parts(&without).await.to_string();
    assert!(
        parts.contains("version 2 is missing on node-3 (not connected, left)"),
        "{parts}"
    );
    let steps = json!([give, take, all("1m", json!({"skipDown": true}))]);
    let skips = bed.run_steps(&["node-1", "node-2"], &steps).await;
    bed.wait_for_phase(&skips, "succeeded").await;
    for agent in agents {
        agent.kill().await;
    }
}

/// A key that the server makes up is not encrypted to, and is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_its_node_has_not_signed_is_refused() {
    let (bed, mut agents) = Bed::with_nodes().await;
    let key = async |node: &str| {
        let key = bed.status(node, "shareKey").await;
        key.as_str().unwrap_or_default().to_owned()
    };
    wait_until("all have keys", async || {
        !key("node-2").await.is_empty() && !key("node-3").await.is_empty()
    })
    .await;
    let (right, wrong) = (key("node-2").await, key("node-3").await);
    // Somebody who can write to the store.
    let mut found = None;
    let everything = Span::all();
    let scanned = bed.store.scan(&everything, None, |record| {
        let text = String::from_utf8_lossy(&record.key).into_owned();
        let mut parts = record.value.windows(right.len());
        if !text.contains("/op/") && parts.any(|part| part == right.as_bytes()) {
            found = Some((text, record.mod_revision, record.value.to_vec()));
        }
        Ok(())
    });
    scanned.await.expect("read");
    let (place, revision, mut value) = found.expect("the status of the node");
    let at = value
        .windows(right.len())
        .position(|part| part == right.as_bytes());
    let at = at.expect("the key");
    value[at..at + right.len()].copy_from_slice(wrong.as_bytes());
    let changed = Transaction::replace(place, revision, value);
    assert!(bed.store.commit(changed).await.expect("written").succeeded);
    wait_until("the key is another", async || key("node-2").await == wrong).await;

    let give = json!([{"name": "give", "publish": {"share": "token", "value": PLANTED, "to": {"group": "all"}}}]);
    let run = bed.run_steps(&["node-1"], &give).await;
    bed.wait_for_phase(&run, "succeeded").await;
    let holders = bed.share("token").await["status"]["holders"].to_string();
    assert!(
        holders.contains("node-3") && !holders.contains("node-2"),
        "{holders}"
    );
    wait_until("it is told", async || {
        let path = "namespaces/system/events";
        let found = bed.admin(FleetMethod::Get, path, None).await;
        found
            .unwrap_or_default()
            .to_string()
            .contains("share.key-refused")
    })
    .await;
    // Its own key comes with its next stream.
    agents.remove(1).kill().await;
    agents.push(bed.start_rooted("node-2", None));
    wait_until("the key is its own", async || key("node-2").await == right).await;
    let take = json!([{"name": "take", "fetch": {"share": "token", "path": "/etc/token"}}]);
    let run = bed.run_steps(&["node-2"], &take).await;
    bed.wait_for_phase(&run, "succeeded").await;
    for agent in agents {
        agent.kill().await;
    }
}

/// A version that is too old is gone, and so is one that was for one time.
#[tokio::test(flavor = "multi_thread")]
async fn versions_end_by_their_age_or_when_all_have_them() {
    let (bed, agents) = Bed::with_nodes().await;
    let steps = json!([{"name": "give", "publish": {"share": "short", "value": "v", "to": {"group": "all"}, "ttl": "1s"}}]);
    let run = bed.run_steps(&["node-1"], &steps).await;
    bed.wait_for_phase(&run, "succeeded").await;
    wait_until("it is gone", async || {
        bed.share("short").await["status"]["gone"] == "expired"
    })
    .await;
    wait_until("it is told", async || bed.has_event("share.expired").await).await;
    let take = json!([{"name": "take", "fetch": {"share": "short", "path": "/etc/short"}}]);
    let refused = bed.run_steps(&["node-2"], &take).await;
    bed.wait_for_phase(&refused, "failed").await;
    let parts = bed.parts(&refused).await.to_string();
    assert!(parts.contains("is older than its `ttl` allows"), "{parts}");

    let steps = json!([
        {"name": "give", "runOn": "first", "publish": {"share": "once", "value": "v", "to": {"group": "all"}, "oneShot": true}},
        {"name": "take", "barrier": "run", "fetch": {"share": "once", "path": "/etc/once"}},
    ]);
    let run = bed.run_steps(&NODES, &steps).await;
    bed.wait_for_phase(&run, "succeeded").await;
    wait_until("all have it", async || {
        bed.share("once").await["status"]["gone"] == "taken"
    })
    .await;
    // Nothing is published or taken again.
    let again = bed.run_steps(&NODES, &steps).await;
    bed.wait_for_phase(&again, "succeeded").await;
    assert_eq!(bed.states(&again).await, ["ok"; 3]);
    assert_eq!(bed.share("once").await["status"]["version"], 1);
    for agent in agents {
        agent.kill().await;
    }
}
