//! Triggers and schedules over a fleet of processes: the server dies between a firing and its run, and people look.

mod fleet_bed;
mod portolan;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::fleet_bed::{Fleet, NODES};
use crate::portolan::wait_until;

/// A book that people run, one that a trigger runs when the first has ended, and a schedule that is far away.
const OBJECTS: &str = "\
apiVersion: v1alpha
kind: TaskBook
metadata: {name: begin, namespace: default}
spec:
  target: {nodes: [node-1]}
  steps:
  - {name: work, file: {path: /srv/begun, content: '{{ inputs.round }}'}}
  inputs: {round: {type: string}}
---
apiVersion: v1alpha
kind: TaskBook
metadata: {name: after, namespace: default}
spec:
  target: {all: true}
  inputs: {of: {type: string}, changed: {type: int}}
  steps:
  - {name: count, command: {shell: 'echo \"{{ inputs.of }} {{ inputs.changed }}\" >> fired'}}
---
apiVersion: v1alpha
kind: Trigger
metadata: {name: after, namespace: default}
spec:
  match: {types: [run.ended], when: \"event.data.book == 'begin'\"}
  run:
    book: after
    selector: fleet=test
    inputs: {of: '{{ event.data.run }}', changed: '{{ event.data.counts.changed }}'}
---
apiVersion: v1alpha
kind: CronJob
metadata: {name: yearly, namespace: default}
spec: {schedule: '30 2 29 2 *', timeZone: Europe/Berlin, books: [{name: after}]}
";

/// Places between a firing and its run where the server dies. The second run is the one of the trigger.
const PLACES: [&str; 3] = [
    "server-trigger-fired",
    "server-run-creating:2",
    "server-run-created:2",
];

fn json(fleet: &Fleet, args: &[&str]) -> Value {
    let answer = fleet.fleet(&[args, &["-o", "json"]].concat());
    serde_json::from_str(&answer.stdout).unwrap_or_default()
}

/// The runs of the trigger's book that have ended well.
fn runs(fleet: &Fleet) -> usize {
    let list = json(fleet, &["runs", "list", "--book", "after"]);
    let runs = list["items"].as_array().into_iter().flatten();
    runs.filter(|run| run["status"]["phase"] == "succeeded")
        .count()
}

/// Events of steps that changed something.
fn changed_steps(fleet: &Fleet) -> usize {
    let list = json(fleet, &["events", "--type", "run.step.changed"]);
    list["items"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_firing_is_one_run_wherever_the_server_dies() {
    let mut fleet = Fleet::start();
    let objects = fleet.write("live.yaml", OBJECTS);
    let applied = fleet.fleet(&["apply", "-f", &objects]);
    assert_eq!(applied.code, 0, "{applied}");
    for (number, place) in PLACES.into_iter().enumerate() {
        fleet.restart_server_at(Some(place));
        wait_until(|| fleet.state("node-1") == "ready");
        // Whether its end is seen before the server dies is of no matter here.
        let input = format!("round={number}");
        let begun = fleet.fleet(&["run", "begin", "--input", &input]);
        wait_until(|| fleet.has_server_died());
        fleet.restart_server();
        wait_until(|| runs(&fleet) == number + 1);
        for node in NODES {
            let lines = fleet.read(node, "fired");
            assert_eq!(
                lines.lines().count(),
                number + 1,
                "{place}: {begun}\n{lines}"
            );
            assert!(lines.lines().all(|line| line.ends_with(" 1")), "{lines}");
        }
    }
    let all = json(&fleet, &["runs", "list", "--book", "after"]);
    assert_eq!(all["items"].as_array().map(Vec::len), Some(PLACES.len()));
    looks(&fleet);
}

/// What people see of it.
fn looks(fleet: &Fleet) {
    let cron = fleet.fleet(&["cron"]);
    assert_eq!(cron.code, 0, "{cron}");
    assert!(cron.stdout.contains("Europe/Berlin"), "{cron}");
    assert!(cron.stdout.contains("2028-02-29T01:30:00Z"), "{cron}");
    wait_until(|| {
        let triggers = fleet.fleet(&["triggers"]);
        triggers.stdout.contains("ready") && triggers.stdout.contains(" 3 ")
    });
    // Each end, firing and changed step is one event, although servers that took over told some again.
    let kinds = |kind: &str| {
        let list = json(fleet, &["events", "--type", kind]);
        list["items"].as_array().cloned().unwrap_or_default()
    };
    wait_until(|| kinds("run.ended").len() == 6);
    wait_until(|| kinds("trigger.fired").len() == 3);
    wait_until(|| changed_steps(fleet) >= 12);
    assert_eq!(changed_steps(fleet), 12);
    let nodes = fleet.fleet(&[
        "events", "-n", "system", "--type", "node.*", "--node", "node-2",
    ]);
    assert!(nodes.stdout.contains("node.joined"), "{nodes}");
    assert!(nodes.stdout.contains("node node-2 is ready"), "{nodes}");
    // What an end would have done is said, and not done.
    let ended = kinds("run.ended");
    let by_book = |book: &str| {
        let event = ended
            .iter()
            .find(|event| event["spec"]["data"]["book"] == book);
        event.expect("an event")["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let known = fleet.fleet(&["triggers", "test", &by_book("begin")]);
    assert_eq!(known.code, 1, "{known}");
    assert!(
        known
            .stdout
            .contains("✗ uid: the same event was seen before"),
        "{known}"
    );
    let other = fleet.fleet(&["triggers", "test", &by_book("after")]);
    assert!(
        other.stdout.contains("✗ match.when: `when` is false"),
        "{other}"
    );
    let event = "\
apiVersion: v1alpha
kind: Event
metadata: {name: perhaps}
spec: {type: run.ended, data: {book: begin, run: begin-1, counts: {changed: 7}}}
";
    let event = fleet.write("event.yaml", event);
    let new = fleet.fleet(&["triggers", "test", "-f", &event]);
    assert_eq!(new.code, 0, "{new}");
    assert!(
        new.stdout
            .contains("→ runs the TaskBook after with changed=7, of=\"begin-1\""),
        "{new}"
    );
    assert_eq!(runs(fleet), 3);
    follows(fleet);
}

/// Events are printed as they happen, after those that were there.
fn follows(fleet: &Fleet) {
    let mut command = fleet.command(&["events", "-f", "--type", "run.ended", "-o", "name"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command
        .spawn()
        .expect("the binary was built with this test");
    let stdout = child.stdout.take().expect("it was asked for");
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let known: BTreeSet<String> = lines.by_ref().take(6).collect();
    assert_eq!(known.len(), 6);
    let begun = fleet.fleet(&["run", "begin", "--input", "round=last"]);
    assert_eq!(begun.code, 0, "{begun}");
    let new: BTreeSet<String> = lines.take(2).collect();
    let _ = child.kill();
    let _ = child.wait();
    assert!(new.len() == 2 && new.is_disjoint(&known), "{new:?}");
}
