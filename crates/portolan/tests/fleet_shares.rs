//! Shares with a real server and real agents: only those who may have one can read it, and the server never can.

mod fleet_bed;
mod portolan;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::fleet_bed::{Fleet, NODES};
use crate::portolan::{wait_for, wait_until};

/// Makes a token on node-1 and gives it to a group.
const GIVE: &str = "  \
  - name: token
    command: {shell: 'head -c 24 /dev/urandom | base64 > srv/token', creates: /srv/token}
    runOn: first
  - {name: give, runOn: first, publish: {share: token, path: /srv/token, to: {group: all}}}
";

const TAKE: &str =
    "  - {name: take, fetch: {share: token, path: /etc/token, mode: '0400'}, barrier: run}\n";

fn book(fleet: &Fleet, nodes: &[&str], steps: &str) -> String {
    let text = format!(
        "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: share}}\nspec:\n  \
         target: {{nodes: [{}], order: name}}\n  steps:\n{steps}",
        nodes.join(", ")
    );
    fleet.write("book.yaml", &text)
}

fn begin(fleet: &Fleet, nodes: &[&str], steps: &str) -> Child {
    let book = book(fleet, nodes, steps);
    let mut command = fleet.command(&["run", "-f", &book, "-o", "json"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
        .spawn()
        .expect("the binary was built with this test")
}

fn end(child: Child) -> Value {
    let answer = wait_for(child);
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"))
}

fn share(fleet: &Fleet) -> Value {
    let found = fleet.fleet(&["shares", "-o", "json"]);
    assert_eq!(found.code, 0, "{found}");
    let rows: Value = serde_json::from_str(&found.stdout).expect("JSON");
    rows[0].clone()
}

/// Whether any file of a directory has these bytes.
fn has_text(directory: &Path, text: &str) -> bool {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut entries = entries.filter_map(Result::ok);
    entries.any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return has_text(&path, text);
        }
        let content = fs::read(&path).unwrap_or_default();
        content
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

fn has_event(fleet: &Fleet, namespace: &str, kind: &str) -> bool {
    let found = fleet.fleet(&["get", "events", "-n", namespace, "-o", "json"]);
    found.stdout.contains(kind)
}

#[test]
fn a_token_reaches_the_nodes_that_may_have_it_and_nobody_else() {
    let mut fleet = Fleet::start();
    let steps = format!("{GIVE}{TAKE}");
    let first = end(begin(&fleet, &NODES, &steps));
    assert_eq!(first["state"], "changed", "{first:#}");
    let token = fleet.read("node-1", "srv/token");
    assert_eq!(token.trim().len(), 32);
    for node in NODES {
        assert_eq!(fleet.read(node, "etc/token"), token, "{node}");
    }
    assert!(!first.to_string().contains(token.trim()));
    assert!(!has_text(&fleet.path("server"), token.trim()));
    wait_until(|| share(&fleet)["taken"].as_array().map_or(0, Vec::len) == 3);
    assert_eq!(share(&fleet)["version"], 1);

    // Nothing is to be done a second time; another content is another version.
    let again = end(begin(&fleet, &NODES, &steps));
    assert_eq!(again["state"], "ok", "{again:#}");
    fs::write(fleet.root("node-1").join("srv/token"), "another").expect("written");
    let third = end(begin(&fleet, &NODES, &steps));
    assert_eq!(third["state"], "changed", "{third:#}");
    assert_eq!(share(&fleet)["version"], 2);
    assert_eq!(fleet.read("node-3", "etc/token"), "another");

    // A node that comes later gets it from one that has it.
    fleet.enrol("node-4");
    wait_until(|| fleet.state("node-4") == "ready");
    let later = end(begin(&fleet, &["node-4"], TAKE));
    assert_eq!(later["state"], "changed", "{later:#}");
    assert_eq!(fleet.read("node-4", "etc/token"), "another");

    // Without such a node it waits, and people hear of it.
    fleet.enrol("node-5");
    wait_until(|| fleet.state("node-5") == "ready");
    for node in ["node-1", "node-2", "node-3", "node-4"] {
        fleet.kill_agent(node);
    }
    let waits = begin(&fleet, &["node-5"], TAKE);
    wait_until(|| has_event(&fleet, "default", "share.pending"));
    assert_eq!(share(&fleet)["pending"][0], "node-5");
    fleet.start_agent("node-2", None);
    let waited = end(waits);
    assert_eq!(waited["state"], "changed", "{waited:#}");
    assert_eq!(fleet.read("node-5", "etc/token"), "another");
    assert!(
        share(&fleet)["pending"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );

    // One that it is not for is refused.
    let private = "  - {name: give, runOn: first, publish: {share: private, value: mine, to: {nodes: [node-2]}}}
  - {name: take, fetch: {share: private, path: /etc/private}, barrier: run}\n";
    let refused = end(begin(&fleet, &["node-2", "node-5"], private));
    assert_eq!(refused["state"], "failed", "{refused:#}");
    assert!(
        refused
            .to_string()
            .contains("is none that share private is for")
    );
    assert_eq!(fleet.read("node-2", "etc/private"), "mine");
    assert_eq!(fleet.read("node-5", "etc/private"), "");

    // A key that changes is not used, and people hear of it.
    fleet.kill_agent("node-5");
    fs::remove_file(fleet.path("node-5-data/shares/key")).expect("removed");
    fleet.start_agent("node-5", None);
    wait_until(|| fleet.state("node-5") == "ready");
    let more = "  - {name: give, publish: {share: token, value: third, to: {group: all}}}\n";
    let given = end(begin(&fleet, &["node-2"], more));
    assert_eq!(given["state"], "changed", "{given:#}");
    wait_until(|| has_event(&fleet, "system", "share.key-changed"));
    let holders = share(&fleet)["holders"].to_string();
    assert!(
        holders.contains("node-2") && !holders.contains("node-5"),
        "{holders}"
    );
}
