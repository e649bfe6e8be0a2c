//! Runs over a fleet of processes: a server, three agents below directories of their own, and kills in the middle.

mod fleet_bed;
mod portolan;

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fleet_bed::Fleet;
use crate::portolan::{wait_for, wait_until};

/// A command that must not run twice, and that ends when a file is there; then a file and a handler.
const BOOK: &str = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: web}
spec:
  target: {group: all}
  steps:
  - name: work
    command: {shell: 'echo begun >> count; while [ ! -e go ]; do sleep 0.05; done; echo done >> count'}
  - name: config
    file: {path: /srv/config, content: \"{{ node.name }}\\n\"}
    notify: [restart]
  handlers:
  - {name: restart, command: {shell: 'echo restart >> restarts'}}
";

fn nodes_of(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nodes = report["nodes"].as_array().expect("nodes").iter();
    let mut nodes: Vec<(String, String)> = nodes
        .map(|node| (text(&node["name"]), text(&node["state"])))
        .collect();
    nodes.sort();
    nodes
}

fn all(state: &str) -> Vec<(String, String)> {
    let nodes = fleet_bed::NODES.iter();
    nodes
        .map(|node| ((*node).to_owned(), state.to_owned()))
        .collect()
}

/// The server and an agent are killed in the middle of a command: every step is done once, and every node has one end.
#[test]
fn kills_in_the_middle_repeat_nothing_and_lose_nothing() {
    let mut fleet = Fleet::start();
    let book = fleet.write("book.yaml", BOOK);
    let running = fleet.command(&["run", "-f", &book, "-o", "json"]);
    let running = spawn(running);
    for node in fleet_bed::NODES {
        wait_until(|| fleet.read(node, "count") == "begun\n");
    }
    fleet.kill_agent("node-1");
    fleet.restart_server();
    fleet.start_agent("node-1", None);
    for node in fleet_bed::NODES {
        fs::write(fleet.root(node).join("go"), "").expect("written");
    }
    let answer = wait_for(running);
    assert_eq!(answer.code, 0, "{answer}");
    let report: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(report["state"], "changed", "{report:#}");
    assert_eq!(nodes_of(&report), all("changed"));
    for node in fleet_bed::NODES {
        assert_eq!(fleet.read(node, "count"), "begun\ndone\n", "{node}");
        assert_eq!(fleet.read(node, "restarts"), "restart\n", "{node}");
        assert_eq!(fleet.read(node, "srv/config"), format!("{node}\n"));
    }
    // What is as it should be is not touched; a command without a guard is done again by a new run.
    let run = report["run"].as_str().expect("a name");
    let logs = fleet.fleet(&["logs", run]);
    assert_eq!(logs.code, 0, "{logs}");
    assert!(logs.stdout.contains("same on 3 nodes"), "{logs}");
    let runs = fleet.fleet(&["runs", "list"]);
    assert!(
        runs.stdout.contains(run) && runs.stdout.contains("3 changed"),
        "{runs}"
    );
}

#[test]
fn why_explains_a_run_a_node_and_a_step() {
    let fleet = Fleet::start();
    let book = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: web}
spec:
  target: {group: all}
  maxFailures: 3
  vars: {place: /srv/web}
  steps:
  - {name: place, directory: {path: '{{ vars.place }}'}, notify: [reload]}
  - name: fail
    when: node.name == 'node-2'
    command: {run: [sh, -c, 'exit 3']}
  handlers:
  - {name: reload, file: {path: /srv/reloaded, content: x}}
";
    let book = fleet.write("book.yaml", book);
    let run = fleet.fleet(&["run", "-f", &book, "-o", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let run = report["run"].as_str().expect("a name");
    let says = |words: &[&str], texts: &[&str]| {
        let answer = fleet.fleet(&[&["why"][..], words].concat());
        assert_eq!(answer.code, 0, "{answer}");
        for text in texts {
            assert!(answer.stdout.contains(text), "{text}: {answer}");
        }
    };
    says(
        &[run],
        &[
            "not as they should be: node-2",
            "node-2: failed\n  `fail` failed (",
            "book.yaml:10:5): `sh -c exit 3` ended with exit code 3",
            "owed: `handlers/reload`",
            "node-1: changed\n  changed something: place, handlers/reload",
        ],
    );
    says(
        &[run, "node-1", "fail"],
        &[
            "node-1: fail: skipped\n  `when: node.name == 'node-2'` does not hold\n  node.name is \"node-1\"",
        ],
    );
    says(&["node-1", "reload"], &["notified by `place`"]);
    says(
        &["node-3", "place"],
        &[
            "vars.place is \"/srv/web\", from the book",
            "/srv/web was not as the book says",
        ],
    );
    for words in [
        &["why", "nobody"][..],
        &["why", run, "node-9"],
        &["why", run, "node-1", "other"],
    ] {
        let answer = fleet.fleet(words);
        assert_ne!(answer.code, 0, "{answer}");
        assert!(
            answer.stdout.is_empty() && !answer.stderr.is_empty(),
            "{answer}"
        );
    }
}

/// What a check found is applied while it is true: a node that drifted is left alone, and another plan is refused.
#[test]
fn an_approved_plan_is_applied_and_nothing_else() {
    let fleet = Fleet::start();
    let book = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: web}
spec:
  target: {group: all}
  maxFailures: 3
  steps:
  - {name: place, directory: {path: /srv/web}}
  - {name: name, file: {path: /srv/web/name, content: \"{{ node.name }}\\n\"}}
  - {name: other, file: {path: /srv/other, content: \"x\\n\"}}
";
    let book = fleet.write("book.yaml", book);
    let plan = fleet.write("plan.json", "");
    let check = fleet.fleet(&["run", "-f", &book, "--check", "--plan-out", &plan]);
    assert_eq!(check.code, 1, "{check}");
    let written: Value =
        serde_json::from_str(&fs::read_to_string(&plan).expect("a plan")).expect("JSON");
    assert_eq!(written["plan"]["nodes"].as_array().map(Vec::len), Some(3));
    // What somebody reads is what is applied, and the name of the book is no path.
    let other = fs::read_to_string(&plan)
        .expect("a plan")
        .replace("/srv/", "/etc/");
    let other = fleet.write("other.json", &other);
    let refused = fleet.fleet(&["run", "--apply-plan", &other]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused.stderr.contains("was changed after it was written"),
        "{refused}"
    );
    fs::write(fleet.root("node-2").join("srv/other"), "by hand\n").expect("written");
    let applied = fleet.fleet(&["run", "--apply-plan", &plan, "-o", "json"]);
    assert_eq!(applied.code, 1, "{applied}");
    let report: Value = serde_json::from_str(&applied.stdout).expect("JSON");
    let expected = [
        ("node-1", "changed"),
        ("node-2", "failed"),
        ("node-3", "changed"),
    ];
    let expected = expected.map(|(node, state)| (node.to_owned(), state.to_owned()));
    assert_eq!(nodes_of(&report), expected, "{report:#}");
    let found = fleet.fleet(&["compliance", "-o", "json"]);
    assert_eq!(found.code, 1, "{found}");
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON");
    let percents = [0, 1, 2].map(|at| found[at]["percent"].as_u64());
    assert_eq!(percents, [Some(100), Some(0), Some(100)], "{found:#}");
    let table = fleet.fleet(&["compliance", "web", "--node", "node-1"]);
    assert_eq!(table.code, 0, "{table}");
    assert!(
        table.stdout.contains("node-1   100 %        3/3"),
        "{table}"
    );
    let why = fleet.fleet(&["why", "node-2"]);
    assert!(
        why.stdout
            .contains("nothing was done: the plan does not fit any more")
            && why
                .stdout
                .contains("/srv/other is not as the plan found it")
            && why.stdout.contains("-by hand"),
        "{why}"
    );
    assert_eq!(fleet.read("node-1", "srv/web/name"), "node-1\n");
    assert!(!fleet.root("node-2").join("srv/web").exists(), "untouched");
    // It was applied: the nodes are not as the plan found them any more.
    let again = fleet.fleet(&["run", "--apply-plan", &plan, "-o", "json"]);
    let report: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!(nodes_of(&report), all("failed"), "{report:#}");
    let mut other = written;
    other["digest"] = "0".repeat(64).into();
    let other = fleet.write("other.json", &other.to_string());
    let refused = fleet.fleet(&["run", "--apply-plan", &other]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused
            .stderr
            .contains("the digest is that of another plan"),
        "{refused}"
    );
}

/// A single command runs only on agents that take such commands, for users with the right to give them, and is audited.
#[test]
fn a_single_command_needs_a_right_and_an_agent_that_allows_it() {
    let fleet = Fleet::start();
    let shell = ["--", "sh", "-c", "echo '{{ one }}'; echo two >&2; exit 3"];
    let ran = fleet.fleet(&[&["exec", "--nodes", "node-1,node-3"][..], &shell].concat());
    assert_eq!(ran.code, 1, "{ran}");
    assert!(
        ran.stdout
            .contains("node-1: this agent takes no single commands"),
        "{ran}"
    );
    assert!(
        ran.stdout.contains("node-3: exit code 3") && ran.stdout.contains("  {{ one }}\n  two\n"),
        "{ran}"
    );
    let ran = fleet.fleet(&[
        "exec",
        "-l",
        "fleet=test",
        "--nodes",
        "node-3",
        "-o",
        "json",
        "--",
        "echo",
        "done",
    ]);
    assert_eq!(ran.code, 0, "{ran}");
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&report[0]["node"], &report[0]["output"]),
        (&"node-3".into(), &"done\n".into()),
        "{report}"
    );
    let log = fs::read_to_string(fleet.path("server").join("audit.log")).unwrap_or_default();
    assert!(
        log.contains(r#""verb":"exec""#) && log.contains("echo two >&2"),
        "{log}"
    );
    // A user who may run books may not give commands.
    let role = "\
apiVersion: v1alpha
kind: ClusterRole
metadata: {name: runner}
spec: {rules: [{kinds: ['*'], verbs: [get, list, watch, create, update, run]}]}
---
apiVersion: v1alpha
kind: ClusterRoleBinding
metadata: {name: runner}
spec: {role: {kind: ClusterRole, name: runner}, subjects: [{kind: user, name: eve}]}
";
    let role = fleet.write("role.yaml", role);
    let applied = fleet.fleet(&["apply", "-f", &role]);
    assert_eq!(applied.code, 0, "{applied}");
    let made = fleet.fleet(&["auth", "token", "--user", "eve"]);
    assert_eq!(made.code, 0, "{made}");
    let token = fleet.write("eve.token", made.stdout.trim());
    let refused = fleet.fleet(&[
        "exec",
        "--nodes",
        "node-3",
        "--token-file",
        &token,
        "--",
        "true",
    ]);
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains("exec"), "{refused}");
}

/// A book from a work tree of git: its commit is part of the run, and what was changed since is refused or marked.
#[test]
fn a_book_that_is_not_committed_is_refused_or_marked() {
    let fleet = Fleet::start();
    let text = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: web}
spec:
  target: {group: all}
  steps:
  - {name: config, file: {path: /srv/config, template: config.j2}}
";
    fs::create_dir(fleet.path("books")).expect("a directory");
    let book = fleet.write("books/book.yaml", text);
    let template = fleet.write("books/config.j2", "one\n");
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(args)
            .current_dir(fleet.path("books"))
            .output()
            .expect("git is installed");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "books"]);
    let commit = git(&["rev-parse", "HEAD"]);
    let commits = || {
        let runs = fleet.fleet(&["runs", "list", "-o", "json"]);
        let runs: Value = serde_json::from_str(&runs.stdout).expect("JSON");
        let runs = runs["items"].as_array().cloned().unwrap_or_default();
        let commits = runs.iter().map(|run| {
            run["spec"]["commit"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        });
        commits.collect::<std::collections::BTreeSet<String>>()
    };
    let ran = fleet.fleet(&["run", "-f", &book]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(commits().contains(&commit), "{:?}", commits());
    fs::write(&template, "two\n").expect("written");
    let refused = fleet.fleet(&["run", "-f", &book]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("--allow-dirty"), "{refused}");
    assert_eq!(fleet.read("node-1", "srv/config"), "one\n");
    let ran = fleet.fleet(&["run", "-f", &book, "--allow-dirty"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(fleet.read("node-1", "srv/config"), "two\n");
    assert!(
        commits().contains(&format!("{commit}-dirty")),
        "{:?}",
        commits()
    );
}

#[test]
fn the_exit_code_and_the_text_reflect_every_node() {
    let fleet = Fleet::start();
    let book = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: web}
spec:
  target: {group: all}
  maxFailures: 3
  steps:
  - {name: place, directory: {path: /srv/web}}
  - name: name
    file: {path: /srv/web/name, content: \"same everywhere\\n\"}
  - name: fail
    when: node.name == 'node-2'
    command: {run: [sh, -c, 'echo what went wrong; exit 3']}
";
    let book = fleet.write("book.yaml", book);
    let check = fleet.fleet(&["run", "-f", &book, "--check"]);
    assert_eq!(check.code, 1, "{check}");
    assert!(
        check.stdout.contains("change") && check.stdout.contains("same everywhere"),
        "{check}"
    );
    assert!(!fleet.root("node-1").join("srv/web").exists());
    let run = fleet.fleet(&["run", "-f", &book]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("same on 3 nodes"), "{run}");
    assert!(
        run.stdout.contains("failed") && run.stdout.contains("2 changed, 1 failed"),
        "{run}"
    );
    assert!(
        run.stderr.contains("what went wrong") && run.stderr.contains("book.yaml:11"),
        "{run}"
    );
    let ok = fleet.fleet(&["run", "-f", &book, "--nodes", "node-1"]);
    assert_eq!(ok.code, 0, "{ok}");
    let drained = fleet.fleet(&["nodes", "drain", "node-1"]);
    assert_eq!(drained.code, 0, "{drained}");
    let none = fleet.fleet(&["run", "-f", &book, "--nodes", "node-1"]);
    assert_eq!(none.code, 2, "{none}");
    let wrong = fleet.write("wrong.yaml", &BOOK.replace("command:", "comand:"));
    let refused = fleet.fleet(&["run", "-f", &wrong]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(
        refused.stderr.contains("did you mean") && refused.stderr.contains("wrong.yaml"),
        "{refused}"
    );
}

fn spawn(mut command: Command) -> std::process::Child {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.expect("the binary was built with this test")
}
