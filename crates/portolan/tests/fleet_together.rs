//! What nodes of a run do together: files of books, steps that run once or on other nodes, few at a time, and gates.

mod fleet_bed;
mod portolan;

use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::fleet_bed::{Fleet, NODES};
use crate::portolan::{wait_for, wait_until};

fn book(fleet: &Fleet, spec: &str) -> String {
    let text = format!(
        "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {{name: web}}\nspec:\n  target: {{group: all, order: name}}\n{spec}"
    );
    fleet.write("book.yaml", &text)
}

fn begin(fleet: &Fleet, args: &[&str]) -> Child {
    let mut command = fleet.command(args);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
        .spawn()
        .expect("the binary was built with this test")
}

fn report(child: Child) -> Value {
    let answer = wait_for(child);
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| unreachable!("{answer}"))
}

fn run(fleet: &Fleet, book: &str) -> Value {
    report(begin(fleet, &["run", "-f", book, "-o", "json"]))
}

/// The newest run of the fleet.
fn newest(fleet: &Fleet) -> Value {
    let runs = fleet.fleet(&["runs", "-o", "json"]);
    let runs: Value = serde_json::from_str(&runs.stdout).unwrap_or_default();
    runs["items"][0].clone()
}

/// Templates with what they include, and a file of several parts, reach the nodes as they were when the run was made.
#[test]
fn files_of_a_book_reach_the_nodes() {
    let fleet = Fleet::start();
    fs::create_dir_all(fleet.path("templates")).expect("made");
    fleet.write(
        "templates/web.j2",
        "{% include 'templates/head.j2' %}node {{ node.name }}\n",
    );
    fleet.write("templates/head.j2", "# made by Portolan\n");
    let mut large = String::new();
    for number in 0..90_000 {
        let _ = writeln!(large, "{number:09}");
    }
    fleet.write("large", &large);
    let book = book(
        &fleet,
        "  steps:\n  - {name: config, file: {path: /srv/web, template: templates/web.j2}}\n  \
         - {name: large, file: {path: /srv/large, source: large}}\n",
    );
    let first = run(&fleet, &book);
    assert_eq!(first["state"], "changed", "{first:#}");
    for node in NODES {
        let expected = format!("# made by Portolan\nnode {node}\n");
        assert_eq!(fleet.read(node, "srv/web"), expected);
        assert_eq!(fleet.read(node, "srv/large"), large, "{node}");
    }
    // A run is repeated with the files that it had, whatever the directory has now.
    fleet.write("templates/head.j2", "# other\n");
    fs::remove_file(fleet.root("node-2").join("srv/web")).expect("removed");
    let name = first["run"].as_str().expect("a name");
    let again = fleet.fleet(&["runs", "rerun", name, "-o", "json"]);
    assert_eq!(again.code, 0, "{again}");
    let expected = "# made by Portolan\nnode node-2\n";
    assert_eq!(fleet.read("node-2", "srv/web"), expected);
    let again: Value = serde_json::from_str(&again.stdout).unwrap_or_default();
    let second = again["run"].as_str().expect("a name");
    let second = fleet.fleet(&["get", "run", second, "-o", "json"]);
    let second: Value = serde_json::from_str(&second.stdout).unwrap_or_default();
    assert_eq!(second["spec"]["parent"], name);
    let none = fleet.fleet(&["runs", "rerun", name, "--failed"]);
    assert_eq!(none.code, 2, "{none}");
}

/// A step runs on the first node alone; the others wait for its result and see it, and all see what all of them gave.
#[test]
fn results_of_the_first_node_and_of_all_nodes_are_seen() {
    let fleet = Fleet::start();
    for strategy in ["free", "lockstep"] {
        let spec = format!(
            "  strategy: {strategy}\n  steps:\n  \
             - {{name: token, runOn: first, command: {{shell: 'sleep 0.3; echo x >> once; printf secret-%s 7'}}}}\n  \
             - {{name: use, file: {{path: /srv/token, content: \"{{{{ steps['token'].stdout }}}}\"}}}}\n  \
             - {{name: own, command: {{shell: 'printf %s {{{{ node.name }}}}'}}}}\n  \
             - name: all\n    barrier: run\n    when: results('own').size() == 3 && results('own')['node-3'].stdout == 'node-3'\n    \
             file: {{path: /srv/all, content: seen}}\n"
        );
        let book = book(&fleet, &spec);
        let report = run(&fleet, &book);
        assert_eq!(report["state"], "changed", "{strategy}: {report:#}");
        let once = NODES.map(|node| fleet.read(node, "once"));
        assert_eq!(once, ["x\n", "", ""], "{strategy}");
        for node in NODES {
            assert_eq!(
                fleet.read(node, "srv/token"),
                "secret-7",
                "{strategy} {node}"
            );
            assert_eq!(fleet.read(node, "srv/all"), "seen", "{strategy} {node}");
            for file in ["once", "srv/token", "srv/all"] {
                let _ = fs::remove_file(fleet.root(node).join(file));
            }
        }
    }
}

/// No two nodes take a throttled step at the same time, also when the server dies meanwhile.
#[test]
fn few_nodes_take_a_throttled_step_at_once() {
    let mut fleet = Fleet::start();
    let shared = fleet.path("shared");
    fs::create_dir_all(&shared).expect("made");
    let shared = shared.to_str().expect("UTF-8").to_owned();
    let spec = format!(
        "  strategy: free\n  unreachable: {{wait: 10m}}\n  steps:\n  - name: one\n    throttle: 1\n    \
         command: {{shell: 'mkdir {shared}/lock && echo $$ >> {shared}/begun && sleep 0.5 && rmdir {shared}/lock'}}\n"
    );
    let book = book(&fleet, &spec);
    let running = begin(&fleet, &["run", "-f", &book, "-o", "json"]);
    wait_until(|| fs::read_to_string(format!("{shared}/begun")).is_ok());
    fleet.restart_server();
    let report = report(running);
    // `mkdir` fails for the second one that is there.
    assert_eq!(report["state"], "changed", "{report:#}");
    let begun = fs::read_to_string(format!("{shared}/begun")).expect("read");
    assert_eq!(begun.lines().count(), 3);
}

/// A node takes a step for each of the others, with their values; its failure is theirs. Without a grant it is refused.
#[test]
fn a_step_runs_on_another_node_for_each_node() {
    let mut fleet = Fleet::start();
    let spec = "  maxFailures: 3\n  steps:\n  - name: drain\n    runOn: {nodes: [node-3]}\n    \
                command: {shell: 'echo {{ node.name }} >> drained; test {{ node.name }} != node-2'}\n  \
                - {name: after, command: {shell: 'echo x >> after'}}\n";
    let path = book(&fleet, spec);
    let report = run(&fleet, &path);
    let nodes = report["nodes"].as_array().expect("nodes").iter();
    let states: Vec<&str> = nodes.filter_map(|node| node["state"].as_str()).collect();
    assert_eq!(states, ["changed", "failed", "changed"], "{report:#}");
    let drained = fleet.read("node-3", "drained");
    let mut drained: Vec<&str> = drained.lines().collect();
    drained.sort_unstable();
    assert_eq!(drained, NODES);
    assert!(fleet.read("node-1", "drained").is_empty());
    let after = NODES.map(|node| fleet.read(node, "after"));
    assert_eq!(after, ["x\n", "", "x\n"]);
    // The node that takes the step dies in it: the step is taken up, not begun again.
    let spec = "  unreachable: {wait: 10m}\n  steps:\n  - name: slow\n    runOn: {nodes: [node-3]}\n    \
                command: {shell: 'echo {{ node.name }} >> slow; while [ ! -e go ]; do sleep 0.05; done'}\n";
    let path = book(&fleet, spec);
    let args = ["run", "-f", &path, "-o", "json", "--nodes", "node-1"];
    let running = begin(&fleet, &args);
    wait_until(|| fleet.read("node-3", "slow") == "node-1\n");
    fleet.kill_agent("node-3");
    fleet.restart_server();
    fleet.start_agent("node-3", None);
    fs::write(fleet.root("node-3").join("go"), "").expect("written");
    let report = crate::report(running);
    assert_eq!(report["state"], "changed", "{report:#}");
    assert_eq!(fleet.read("node-3", "slow"), "node-1\n");
    // A namespace without a grant puts nothing on a node, by no path.
    let other = "apiVersion: v1alpha\nkind: NodeGroup\nmetadata: {name: one}\nspec: {nodes: [node-1]}\n---\n\
                 apiVersion: v1alpha\nkind: NodeGrant\nmetadata: {name: all}\nspec: {groups: [one], namespaces: [default]}\n";
    let other = fleet.write("other.yaml", other);
    let applied = fleet.fleet(&["apply", "-f", &other]);
    assert_eq!(applied.code, 0, "{applied}");
    let refused = fleet.fleet(&["run", "-f", &path, "--nodes", "node-1"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused.stderr.contains("may not target a node node-3"),
        "{refused}"
    );
}

/// The next batch waits until a probe on the first node succeeds, and until somebody approves.
#[test]
fn a_gate_holds_the_next_batch() {
    let mut fleet = Fleet::start();
    let spec = "  batches: [1]\n  unreachable: {wait: 10m}\n  continue:\n    \
                probe: {command: {shell: 'echo asked >> asked; cat healthy'}}\n    that: result.stdout == 'yes'\n    \
                runOn: first\n    retries: {limit: 1, interval: 1s}\n    approve: true\n  \
                steps:\n  - {name: work, command: {shell: 'echo x >> work'}}\n";
    let path = book(&fleet, spec);
    let args = ["run", "-f", &path, "-o", "json", "--nodes", "node-1,node-2"];
    let stalled = report(begin(&fleet, &args));
    assert_eq!(stalled["state"], "stalled", "{stalled:#}");
    assert_eq!(fleet.read("node-1", "asked"), "asked\nasked\n");
    assert_eq!(fleet.read("node-2", "work"), "");
    let name = stalled["run"].as_str().expect("a name").to_owned();
    fs::write(fleet.root("node-1").join("healthy"), "yes").expect("written");
    let resumed = fleet.fleet(&["runs", "resume", &name]);
    assert_eq!(resumed.code, 0, "{resumed}");
    let phase = |fleet: &Fleet| newest(fleet)["status"].clone();
    wait_until(|| {
        let reason = phase(&fleet)["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        reason.contains("approve")
    });
    fleet.restart_server();
    wait_until(|| phase(&fleet)["phase"] == "gate");
    assert_eq!(fleet.read("node-2", "work"), "");
    let approved = fleet.fleet(&["runs", "approve", &name]);
    assert_eq!(approved.code, 0, "{approved}");
    wait_until(|| phase(&fleet)["phase"] == "succeeded");
    for node in ["node-1", "node-2"] {
        assert_eq!(fleet.read(node, "work"), "x\n");
    }
    assert_eq!(fleet.read("node-1", "asked"), "asked\nasked\nasked\n");
    let late = fleet.fleet(&["runs", "approve", &name]);
    assert_eq!(late.code, 2, "{late}");
}
