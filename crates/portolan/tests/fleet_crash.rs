//! The crash matrix of runs: a process dies at each place where something becomes durable, and is started again.
//!
//! Whatever dies, work that must not be done twice is done once, what was notified runs once, and every node has one end.
//! Only where the process that starts commands dies itself may nobody know how a command ended; then the node says so.

mod fleet_bed;
mod portolan;

use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::fleet_bed::{Fleet, NODES};
use crate::portolan::{wait_for, wait_until};

/// Ways in which a book goes over its nodes: a name, options of the book, and the barrier before its second step.
const STRATEGIES: [(&str, &str, &str); 4] = [
    ("lockstep", "", "none"),
    ("free", "  strategy: free\n", "none"),
    ("batches", "  batches: [1, 2]\n", "run"),
    (
        "gate",
        "  strategy: free\n  batches: [1, 2]\n  continue: {probe: {command: {shell: 'true'}}, runOn: first}\n",
        "batch",
    ),
];

fn book(options: &str, barrier: &str) -> String {
    format!(
        "\
apiVersion: v1alpha
kind: TaskBook
metadata: {{name: crash}}
spec:
  target: {{group: all, order: name}}
  unreachable: {{wait: 10m}}
{options}  steps:
  - {{name: work, command: {{shell: 'echo x >> once'}}}}
  - {{name: config, file: {{path: /srv/config, content: 'v1'}}, notify: [handle], barrier: {barrier}}}
  - {{name: first, runOn: first, command: {{shell: 'echo f >> first'}}}}
  - {{name: few, throttle: 1, command: {{shell: 'echo t >> few'}}}}
  - {{name: line, line: {{path: /srv/lines, line: a, create: true}}}}
  handlers:
  - {{name: handle, command: {{shell: 'echo h >> handled'}}}}
"
    )
}

/// The places where an agent dies. `:2` is the second time that it comes there.
const AGENT: [&str; 15] = [
    "agent-run-received",
    "agent-run-begun",
    "agent-step-starting",
    "agent-step-starting:2",
    "agent-job-created",
    "agent-step-started",
    "agent-step-started:2",
    "agent-step-started:4",
    "agent-shim-spawned",
    "agent-step-finishing",
    "agent-step-finishing:2",
    "agent-step-finished",
    "agent-step-finished:4",
    "agent-run-ending",
    "agent-run-ended",
];

/// The places where the process that starts commands dies.
const SHIM: [&str; 3] = ["shim-started", "shim-ended", "shim-written"];

/// The most writes of a run that are tried on the server.
const MAX_WRITES: usize = 40;

struct Matrix {
    fleet: Fleet,
    book: String,
}

impl Matrix {
    fn new() -> Self {
        let mut matrix = Self {
            fleet: Fleet::start(),
            book: String::new(),
        };
        matrix.choose(STRATEGIES[0]);
        matrix
    }

    fn choose(&mut self, (_, options, barrier): (&str, &str, &str)) {
        self.book = self.fleet.write("book.yaml", &book(options, barrier));
    }

    /// Forgets what earlier runs did on the nodes.
    fn clean(&self) {
        for node in NODES {
            for file in ["once", "handled", "first", "few", "srv/config", "srv/lines"] {
                let _ = fs::remove_file(self.fleet.root(node).join(file));
            }
        }
    }

    fn run(&self, nodes: &str) -> Child {
        let args = ["run", "-f", &self.book, "--nodes", nodes, "-o", "json"];
        let mut command = self.fleet.command(&args);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
            .spawn()
            .expect("the binary was built with this test")
    }

    /// Waits for the end of a run: the states of its nodes.
    fn end(running: Child, place: &str) -> Vec<String> {
        let answer = wait_for(running);
        let report: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        let nodes = report["nodes"].as_array();
        let nodes = nodes
            .unwrap_or_else(|| unreachable!("{place}: {answer}"))
            .iter();
        nodes
            .map(|node| node["state"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// A step that runs once in the run was done on one node, and nowhere else.
    fn check_first(&self, place: &str) {
        let mut first = NODES.map(|node| self.fleet.read(node, "first"));
        first.sort();
        assert_eq!(first, ["", "", "f\n"], "{place}");
    }

    fn check_done(&self, node: &str, place: &str) {
        assert_eq!(self.fleet.read(node, "few"), "t\n", "{place} on {node}");
        assert_eq!(self.fleet.read(node, "once"), "x\n", "{place} on {node}");
        assert_eq!(self.fleet.read(node, "handled"), "h\n", "{place} on {node}");
        assert_eq!(
            self.fleet.read(node, "srv/config"),
            "v1",
            "{place} on {node}"
        );
        assert_eq!(
            self.fleet.read(node, "srv/lines"),
            "a\n",
            "{place} on {node}"
        );
    }
}

/// All places with `PORTOLAN_LONG=1` or for the first strategy; otherwise some, others for each strategy.
fn places(strategy: usize) -> Vec<&'static str> {
    let is_tried = |at: &usize| {
        strategy == 0 || std::env::var_os("PORTOLAN_LONG").is_some() || at % 5 == strategy
    };
    let places = AGENT.iter().enumerate();
    places
        .filter(|(at, _)| is_tried(at))
        .map(|(_, place)| *place)
        .collect()
}

/// The agent of the first node dies, in every way in which books go over their nodes.
#[test]
fn an_agent_dies_at_every_place_and_again_while_it_recovers() {
    let mut matrix = Matrix::new();
    for (number, strategy) in STRATEGIES.into_iter().enumerate() {
        matrix.choose(strategy);
        for place in places(number) {
            let name = format!("{}: {place}", strategy.0);
            let nodes = if number == 0 { &NODES[..1] } else { &NODES[..] };
            matrix.agent_dies(place, &name, nodes);
        }
    }
}

impl Matrix {
    fn agent_dies(&mut self, place: &str, name: &str, nodes: &[&str]) {
        let matrix = self;
        matrix.clean();
        matrix.fleet.kill_agent("node-1");
        matrix.fleet.start_agent("node-1", Some(place));
        let running = matrix.run(&nodes.join(","));
        wait_until(|| matrix.fleet.has_died("node-1"));
        // The next one dies as well, if it comes there again.
        matrix.fleet.start_agent("node-1", Some(place));
        let mut running = Some(running);
        wait_until(|| {
            let has_ended = running
                .as_mut()
                .is_some_and(|run| run.try_wait().expect("looked").is_some());
            has_ended || matrix.fleet.has_died("node-1")
        });
        if matrix.fleet.has_died("node-1") {
            matrix.fleet.start_agent("node-1", None);
        }
        let states = Self::end(running.take().expect("a run"), name);
        assert_eq!(states, vec!["changed"; nodes.len()], "{name}");
        for node in nodes {
            matrix.check_done(node, name);
        }
        matrix.check_first(name);
    }
}

#[test]
fn commands_whose_starter_dies_run_at_most_once() {
    let mut matrix = Matrix::new();
    for place in SHIM {
        matrix.clean();
        matrix.fleet.kill_agent("node-1");
        matrix.fleet.start_agent("node-1", Some(place));
        let states = Matrix::end(matrix.run("node-1"), place);
        let once = matrix.fleet.read("node-1", "once");
        assert!(once.is_empty() || once == "x\n", "{place}: {once:?}");
        match states.as_slice() {
            [state] if state == "changed" => matrix.check_done("node-1", place),
            [state] => assert!(
                ["unknown", "failed"].contains(&state.as_str()),
                "{place}: {state}"
            ),
            _ => unreachable!("{place}: {states:?}"),
        }
    }
}

/// All writes with `PORTOLAN_LONG=1`; otherwise a few, and one for each further strategy.
fn writes(is_first: bool, moment: &str) -> Vec<usize> {
    if std::env::var_os("PORTOLAN_LONG").is_some() {
        return (1..=MAX_WRITES).collect();
    }
    match (is_first, moment) {
        (true, _) => vec![1, 6],
        (false, "server-run-written") => vec![4],
        (false, _) => Vec::new(),
    }
}

/// The server dies at a write, again at the first write after it was started, and is started once more.
#[test]
fn a_server_dies_at_every_write_of_a_run_and_again_while_it_recovers() {
    let mut matrix = Matrix::new();
    let all = NODES.join(",");
    let (mut tried, mut deaths) = (0, 0);
    for (number, strategy) in STRATEGIES.into_iter().enumerate() {
        matrix.choose(strategy);
        for moment in ["server-run-writing", "server-run-written"] {
            for write in writes(number == 0, moment) {
                let place = format!("{}: {moment}:{write}", strategy.0);
                matrix.clean();
                let crash = format!("{moment}:{write}");
                matrix.fleet.restart_server_at(Some(&crash));
                let mut running = matrix.run(&all);
                tried += 1;
                let mut has_ended = false;
                for again in [Some(moment), None] {
                    wait_until(|| {
                        has_ended = running.try_wait().expect("looked").is_some();
                        has_ended || matrix.fleet.has_server_died()
                    });
                    if has_ended {
                        break;
                    }
                    matrix.fleet.restart_server_at(again);
                    deaths += 1;
                }
                let states = Matrix::end(running, &place);
                assert_eq!(states, ["changed"; 3], "{place}");
                for node in NODES {
                    matrix.check_done(node, &place);
                }
                matrix.check_first(&place);
                if matrix.fleet.has_server_died() {
                    matrix.fleet.restart_server();
                }
            }
        }
    }
    assert!(deaths > tried, "{deaths} deaths in {tried} runs");
}
