//! Rules of runs over a fleet of processes: what a run that changes nothing costs, and what nobody knows is not run over.

mod fleet_bed;
mod portolan;

use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Command};

use serde_json::Value;

use crate::fleet_bed::Fleet;
use crate::portolan::wait_until;

const HEAD: &str = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: web}
spec:
  target: {nodes: [node-1]}
  steps:
";

fn report(fleet: &Fleet, args: &[&str]) -> Value {
    let answer = fleet.fleet(&[args, &["-o", "json"]].concat());
    let report = serde_json::from_str(&answer.stdout);
    assert!(report.is_ok(), "{answer}");
    report.unwrap_or_default()
}

/// Counts the syncs of an agent from now on.
struct Syncs {
    strace: Child,
    trace: std::path::PathBuf,
}

impl Syncs {
    fn of(fleet: &Fleet, node: &str, name: &str) -> Self {
        let (id, trace) = (fleet.agent_id(node), fleet.path(name));
        let strace = Command::new("strace")
            .args([
                "-f",
                "-qq",
                "-e",
                "trace=fsync,fdatasync,sync,syncfs,sync_file_range",
                "-o",
            ])
            .arg(&trace)
            .args(["-p", &id.to_string()])
            .spawn()
            .expect("strace is installed");
        // Every thread has to be traced before something is counted.
        wait_until(|| {
            let threads = fs::read_dir(format!("/proc/{id}/task")).expect("it lives");
            threads.flatten().all(|thread| {
                let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
                !status.contains("TracerPid:\t0\n")
            })
        });
        Self { strace, trace }
    }

    fn count(mut self) -> usize {
        let id = self.strace.id().to_string();
        let ended = Command::new("kill").args(["-INT", &id]).status();
        assert!(ended.expect("kill is installed").success());
        self.strace.wait().expect("it ends");
        let trace = fs::read_to_string(&self.trace).expect("a trace");
        trace.lines().filter(|line| line.contains("sync(")).count()
    }
}

/// A sync stands before every effect and before its report; a run without effects has one, for the owner of the run.
#[test]
fn a_run_that_changes_nothing_costs_at_most_one_sync_on_a_node() {
    let fleet = Fleet::start();
    let mut text = HEAD.to_owned();
    for number in 0..30 {
        let _ = writeln!(
            text,
            "  - {{name: f{number}, file: {{path: /srv/f{number}, content: x}}}}"
        );
    }
    let book = fleet.write("book.yaml", &text);
    let traced = Syncs::of(&fleet, "node-1", "first");
    assert_eq!(report(&fleet, &["run", "-f", &book])["state"], "changed");
    assert!(traced.count() >= 2 * 30, "two for each effect");
    for name in ["second", "third"] {
        let traced = Syncs::of(&fleet, "node-1", name);
        assert_eq!(report(&fleet, &["run", "-f", &book])["state"], "ok");
        let count = traced.count();
        assert!(count <= 1, "{name}: {count}");
    }
}

/// A journal with a damaged record in the middle: nobody knows what was begun, so nothing is run until somebody has looked.
#[test]
fn a_damaged_journal_stops_runs_of_its_book_until_it_is_acknowledged() {
    let mut fleet = Fleet::start();
    let text = format!(
        "{HEAD}  - {{name: a, line: {{path: /srv/a, line: a, create: true}}}}\n  - {{name: b, line: {{path: /srv/b, line: b, create: true}}}}\n"
    );
    let book = fleet.write("book.yaml", &text);
    assert_eq!(report(&fleet, &["run", "-f", &book])["state"], "changed");
    let directory = fleet.path("node-1-data").join("journals");
    let journals = fs::read_dir(&directory).expect("journals");
    let journal = journals.flatten().next().expect("a journal").path();
    let mut bytes = fs::read(&journal).expect("read");
    // In the first record: damage to the last one is a torn tail.
    bytes[40] ^= 0x41;
    fs::write(&journal, &bytes).expect("written");
    fs::remove_file(fleet.root("node-1").join("srv/a")).expect("removed");
    for _ in 0..2 {
        let answer = fleet.fleet(&["run", "-f", &book]);
        assert_eq!(answer.code, 1, "{answer}");
        assert!(
            answer.to_string().contains("--acknowledge-damage"),
            "{answer}"
        );
        assert!(
            !fleet.root("node-1").join("srv/a").exists(),
            "nothing is begun"
        );
    }
    assert_eq!(
        report(&fleet, &["run", "-f", &book])["nodes"][0]["state"],
        "unknown"
    );
    // A check begins nothing, so it is answered.
    assert_eq!(
        report(&fleet, &["run", "-f", &book, "--check"])["state"],
        "changed"
    );
    // Its directory belongs to the agent while that runs.
    fleet.kill_agent("node-1");
    let acknowledged = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["agent", "--acknowledge-damage", "--data"])
        .arg(fleet.path("node-1-data"))
        .output()
        .expect("the binary was built with this test");
    let said = String::from_utf8_lossy(&acknowledged.stdout).into_owned();
    assert!(
        acknowledged.status.success() && said.ends_with(".journal.damaged-1\n"),
        "{acknowledged:?}"
    );
    fleet.start_agent("node-1", None);
    assert_eq!(report(&fleet, &["run", "-f", &book])["state"], "changed");
    assert!(fleet.root("node-1").join("srv/a").exists());
}

/// Two runs of one second are listed in the order in which they were made.
#[test]
fn runs_are_listed_by_when_they_were_made() {
    let fleet = Fleet::start();
    let text = format!("{HEAD}  - {{name: p, print: {{message: hello}}}}\n");
    let book = fleet.write("book.yaml", &text);
    let mut made: Vec<String> = (0..4)
        .map(|_| {
            report(&fleet, &["run", "-f", &book])["run"]
                .as_str()
                .expect("a name")
                .to_owned()
        })
        .collect();
    made.reverse();
    let list = report(&fleet, &["runs"]);
    let listed: Vec<&str> = list["items"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["metadata"]["name"].as_str())
        .collect();
    assert_eq!(listed, made);
}

/// The nearer scope wins; two of the same rank that disagree stop the run, and both are named.
#[test]
fn variables_of_equal_rank_that_disagree_are_an_error_that_names_both() {
    let fleet = Fleet::start();
    let variable = |name: &str, target: &str, value: &str| {
        let text = format!(
            "apiVersion: v1alpha\nkind: Variable\nmetadata: {{name: {name}, namespace: default}}\nspec: {{{target}values: {{word: {value}}}}}\n"
        );
        let file = fleet.write(&format!("{name}.yaml"), &text);
        let applied = fleet.fleet(&["apply", "-f", &file]);
        assert_eq!(applied.code, 0, "{applied}");
    };
    let text = format!(
        "{HEAD}  - {{name: f, file: {{path: /srv/word, content: \"{{{{ vars.word }}}}\"}}}}\n"
    )
    .replace("  target:", "  vars: {word: book}\n  target:");
    let book = fleet.write("book.yaml", &text);
    let word = || {
        assert_ne!(report(&fleet, &["run", "-f", &book])["state"], "failed");
        fleet.read("node-1", "srv/word")
    };
    assert_eq!(word(), "book");
    variable("everywhere", "", "all");
    assert_eq!(word(), "all");
    variable("of-group", "for: {groups: [all]}, ", "group");
    assert_eq!(word(), "group");
    variable("of-node", "for: {node: node-1}, ", "node");
    assert_eq!(word(), "node");
    variable("of-node-too", "for: {node: node-1}, ", "other");
    let refused = fleet.fleet(&["run", "-f", &book]);
    assert_eq!(refused.code, 2, "{refused}");
    for text in ["Variable of-node", "Variable of-node-too", "node-1"] {
        assert!(refused.to_string().contains(text), "{text}: {refused}");
    }
    assert_eq!(
        fleet.read("node-1", "srv/word"),
        "node",
        "nothing was begun"
    );
}

/// A handler that was notified before the node restarts runs once after it; a root directory without `--fake-boot` refuses.
#[test]
fn a_notified_handler_survives_a_restart_of_the_node() {
    let fleet = Fleet::start();
    let text = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: kernel}
spec:
  target: {nodes: [NODE]}
  steps:
  - {name: config, file: {path: /srv/config, content: x}, notify: [reload]}
  - {name: again, reboot: {}}
  - {name: after, file: {path: /srv/after, content: x}}
  handlers:
  - {name: reload, command: {shell: 'echo reload >> srv/reloads'}}
";
    let node = fleet_bed::EXEC_NODE;
    let book = fleet.write("book.yaml", &text.replace("NODE", node));
    let run = report(&fleet, &["run", "-f", &book]);
    assert_eq!(run["state"], "changed", "{run:#}");
    let boot = fleet.read(node, "var/lib/portolan/boot-id");
    assert_eq!(boot.trim().len(), 36, "{boot}");
    assert_eq!(fleet.read(node, "srv/after"), "x");
    assert_eq!(fleet.read(node, "srv/reloads"), "reload\n");
    let refused = fleet.write("refused.yaml", &text.replace("NODE", "node-1"));
    let run = report(&fleet, &["run", "-f", &refused]);
    assert_eq!(run["state"], "failed", "{run:#}");
    assert_eq!(
        run["nodes"][0]["owed"],
        serde_json::json!(["handlers/reload"]),
        "{run:#}"
    );
}
