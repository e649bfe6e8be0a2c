//! Beacons with a real server and real agents: what they tell is there once, whatever is killed.

mod fleet_bed;
mod portolan;

use std::collections::BTreeMap;
use std::fs;

use camino::Utf8Path;
use portolan_agent::{BeaconNotice, BeaconSpool};
use portolan_trigger::FleetSeverity;
use serde_json::{Map, Value};

use crate::fleet_bed::{Fleet, NODES};
use crate::portolan::wait_until;

const BEACONS: &str = "\
apiVersion: v1alpha
kind: Beacon
metadata: {name: conf, namespace: default}
spec: {target: {all: true}, file: {path: /etc/web.conf}, interval: 2s, labels: {team: web}}
---
apiVersion: v1alpha
kind: Beacon
metadata: {name: flag, namespace: default}
spec:
  target: {nodes: [node-1]}
  command: {run: [/bin/sh, -c, 'test ! -e etc/flag']}
  interval: 1s
  severity: error
";

/// The events of beacons in a namespace.
fn events(fleet: &Fleet, namespace: &str) -> Vec<Value> {
    let found = fleet.fleet(&["get", "events", "-n", namespace, "-o", "json"]);
    assert_eq!(found.code, 0, "{found}");
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON");
    let all = match found["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![found],
    };
    let is_beacon = |event: &Value| {
        let kind = event["spec"]["type"].as_str();
        kind.is_some_and(|kind| kind.starts_with("beacon."))
    };
    all.into_iter().filter(is_beacon).collect()
}

/// How often each condition of a beacon was told by a node.
fn told(fleet: &Fleet, beacon: &str, node: &str) -> Vec<String> {
    let events = events(fleet, "default").into_iter();
    let events = events.filter(|event| {
        event["spec"]["source"]["name"] == beacon && event["spec"]["source"]["node"] == node
    });
    let events = events.map(|event| {
        let condition = &event["spec"]["data"]["condition"];
        condition.as_str().unwrap_or_default().to_owned()
    });
    events.collect()
}

fn rows(fleet: &Fleet, beacon: &str) -> BTreeMap<String, Value> {
    let found = fleet.fleet(&["beacons", "--beacon", beacon, "-o", "json"]);
    assert_eq!(found.code, 0, "{found}");
    let rows: Vec<Value> = serde_json::from_str(&found.stdout).expect("JSON");
    let rows = rows.into_iter();
    rows.map(|row| (row["node"].as_str().unwrap_or_default().to_owned(), row))
        .collect()
}

fn apply(fleet: &Fleet, text: &str) {
    let file = fleet.write("beacons.yaml", text);
    let applied = fleet.fleet(&["apply", "-f", &file]);
    assert_eq!(applied.code, 0, "{applied}");
}

/// What happens while no server is there is told when it is back, and an agent that dies goes on where it was.
#[test]
fn changes_are_told_once_also_without_a_server_and_after_a_crash() {
    let mut fleet = Fleet::start();
    apply(&fleet, BEACONS);
    wait_until(|| rows(&fleet, "conf").len() == NODES.len());
    wait_until(|| rows(&fleet, "flag").contains_key("node-1"));
    assert_eq!(rows(&fleet, "flag").len(), 1);
    assert_eq!(rows(&fleet, "conf")["node-2"]["condition"], "absent");

    fs::write(fleet.root("node-2").join("etc/web.conf"), "one").expect("written");
    wait_until(|| told(&fleet, "conf", "node-2").len() == 1);
    fs::write(fleet.root("node-1").join("etc/flag"), "").expect("written");
    wait_until(|| told(&fleet, "flag", "node-1") == ["exit 1"]);
    let failed = events(&fleet, "default").into_iter();
    let failed = failed.filter(|event| event["spec"]["source"]["name"] == "flag");
    let failed: Vec<Value> = failed.collect();
    assert_eq!(failed[0]["spec"]["severity"], "error");
    assert_eq!(failed[0]["spec"]["type"], "beacon.command");

    // The agent dies just after the event is on its disk, and once before it is.
    for (crash, content) in [
        ("beacon-after-event", "two"),
        ("beacon-before-event", "three"),
    ] {
        fleet.kill_agent("node-2");
        let before = told(&fleet, "conf", "node-2").len();
        fleet.start_agent("node-2", Some(crash));
        fs::write(fleet.root("node-2").join("etc/web.conf"), content).expect("written");
        wait_until(|| fleet.has_died("node-2"));
        fleet.start_agent("node-2", None);
        wait_until(|| told(&fleet, "conf", "node-2").len() == before + 1);
    }

    // No server: the agent of node-1 is even started anew meanwhile.
    fleet.kill_server();
    fleet.kill_agent("node-1");
    fs::remove_file(fleet.root("node-1").join("etc/flag")).expect("removed");
    fleet.start_agent("node-1", None);
    let spool = fleet.path("node-1-data/beacons/spool.log");
    wait_until(|| {
        let text = fs::read(&spool).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("exit 0 and was exit 1")
    });
    fleet.restart_server();
    wait_until(|| told(&fleet, "flag", "node-1") == ["exit 1", "exit 0"]);
    assert_eq!(told(&fleet, "conf", "node-2").len(), 3);
    assert!(told(&fleet, "conf", "node-3").is_empty());

    // A Beacon that is gone is not watched any more.
    let deleted = fleet.fleet(&["delete", "beacon", "conf"]);
    assert_eq!(deleted.code, 0, "{deleted}");
    let orders = fleet.path("node-3-data/beacons/orders.json");
    wait_until(|| fs::read_to_string(&orders).is_ok_and(|text| !text.contains("conf")));
}

/// A spool that is full is delivered once, although the agent and the server die on the way.
#[test]
fn ten_thousand_events_of_an_offline_node_arrive_once() {
    const EVENTS: usize = 10_000;
    let mut fleet = Fleet::start();
    fleet.kill_agent("node-1");
    let directory = fleet.path("node-1-data/beacons");
    let directory = Utf8Path::from_path(&directory).expect("UTF-8");
    let mut spool = BeaconSpool::open(directory).expect("opened");
    let notice = |number: usize| BeaconNotice {
        namespace: "default".to_owned(),
        beacon: "many".to_owned(),
        subject: "file".to_owned(),
        severity: FleetSeverity::Warning,
        time: jiff::Timestamp::now(),
        summary: format!("event {number}"),
        data: Map::new(),
        run: None,
        during: None,
        id: None,
    };
    // Five more than fit: the oldest are dropped, and that is told.
    let notices: Vec<BeaconNotice> = (0..EVENTS + 5).map(notice).collect();
    spool.tell(&notices).expect("told");
    assert_eq!(spool.len(), EVENTS);
    drop(spool);

    fleet.start_agent("node-1", None);
    wait_until(|| events(&fleet, "default").len() >= 1_000);
    fleet.kill_agent("node-1");
    fleet.restart_server();
    fleet.start_agent("node-1", None);
    wait_until(|| events(&fleet, "default").len() >= EVENTS);
    wait_until(|| !events(&fleet, "system").is_empty());
    let lost = &events(&fleet, "system")[0];
    assert_eq!(lost["spec"]["type"], "beacon.lost");
    assert_eq!(lost["spec"]["data"]["lost"], 5);
    let mut summaries = BTreeMap::new();
    for event in events(&fleet, "default") {
        let summary = event["spec"]["summary"].as_str().unwrap_or_default();
        *summaries.entry(summary.to_owned()).or_insert(0) += 1;
    }
    assert_eq!(summaries.len(), EVENTS);
    assert!(summaries.values().all(|count| *count == 1));
    assert!(!summaries.contains_key("event 4") && summaries.contains_key("event 5"));
}
