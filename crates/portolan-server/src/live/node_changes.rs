//! Changes of Nodes and Runs that are events: a node comes, goes or is lost, a slot or a trigger starts a run, a run ends.
//!
//! They are found in the changes of the store and named by them, so a new owner that sees some of them again makes no second
//! event.

use portolan_kinds::KindObject;
use serde_json::{Value, json};

use crate::cache::{Change, Side};
use crate::events::NewEvent;
use crate::runs::is_over;

/// Kinds whose changes are looked at.
const KINDS: [&str; 2] = ["Node", "Run"];

/// Whether a change may be an event.
pub(super) fn is_looked_at(change: &Change) -> bool {
    KINDS.contains(&change.kind.name)
}

/// The event that a change is; `None` for all others.
pub(super) fn event_of(change: &Change, incarnation: u64) -> Option<NewEvent> {
    let before = change.object(Side::Before, incarnation);
    let after = change.object(Side::After, incarnation);
    match change.kind.name {
        "Node" => node_event(before.as_deref(), after.as_deref(), change.revision),
        "Run" => run_event(before.as_deref(), after.as_deref()),
        _ => None,
    }
}

fn node_event(
    before: Option<&KindObject>,
    after: Option<&KindObject>,
    revision: u64,
) -> Option<NewEvent> {
    let node = after.or(before)?;
    let state = |node: Option<&KindObject>| {
        let state = node.and_then(|node| node.status.get("state"));
        state.and_then(Value::as_str).map(str::to_owned)
    };
    let (was, is) = (state(before), state(after));
    let name = node.name();
    let event = match (before, after, is.as_deref()) {
        (None, Some(_), _) => NewEvent::new("node.joined", format!("node {name} was enrolled")),
        (Some(_), None, _) => {
            NewEvent::new("node.removed", format!("node {name} was removed")).warning()
        }
        _ if was == is => return None,
        (_, _, Some("ready")) => NewEvent::new("node.ready", format!("node {name} is ready")),
        (_, _, Some("link-lost")) => {
            let summary = format!("the agent of node {name} is not connected any more");
            NewEvent::new("node.link-lost", summary).warning()
        }
        (_, _, Some("suspect")) => {
            let summary = format!("other nodes do not hear of node {name}");
            NewEvent::new("node.suspect", summary).warning()
        }
        (_, _, Some("down")) => NewEvent::new("node.down", format!("node {name} is down")).error(),
        (_, _, Some("left")) => NewEvent::new("node.left", format!("node {name} has left")),
        _ => return None,
    };
    let event = event
        .about(node)
        .on(name)
        .named("node", &format!("{}-{revision}", node.metadata.uuid()))
        .data(json!({"before": was, "state": is, "labels": node.metadata.labels}));
    Some(event)
}

fn run_event(before: Option<&KindObject>, after: Option<&KindObject>) -> Option<NewEvent> {
    let run = after?;
    if before.is_none() {
        return firing_event(run);
    }
    if !is_over(run) || before.is_some_and(is_over) {
        return None;
    }
    let phase = run.status["phase"].as_str().unwrap_or_default();
    let counts = run.status["counts"].as_object().into_iter().flatten();
    let counts: Vec<String> = counts
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let summary = format!("run {} {phase}: {}", run.name(), counts.join(", "));
    let mut event = NewEvent::new("run.ended", summary);
    if phase != "succeeded" {
        event = event.warning();
    }
    let event = event
        .about(run)
        .named("run-ended", run.metadata.uuid())
        .caused_as(&run.spec)
        .data(json!({
            "run": run.name(), "book": run.spec["book"], "mode": run.spec["mode"], "phase": phase,
            "counts": run.status["counts"], "origin": run.spec["origin"],
        }));
    Some(event)
}

/// The event of a run that a schedule or a trigger made.
fn firing_event(run: &KindObject) -> Option<NewEvent> {
    let origin = run.spec.get("origin")?;
    let text = |key: &str| origin[key].as_str().unwrap_or_default();
    let (name, started) = (text("name"), run.name());
    let event = match text("kind") {
        "CronJob" => {
            let summary = format!(
                "CronJob {name} started the slot {}: run {started}",
                text("slot")
            );
            NewEvent::new("cron.started", summary)
        }
        "TaskBook" => {
            let summary = format!("TaskBook {name} is run by {}: run {started}", text("cause"));
            NewEvent::new("reconcile.started", summary)
        }
        _ => NewEvent::new(
            "trigger.fired",
            format!("trigger {name} fired: run {started}"),
        ),
    };
    let event = event
        .about_other(run, text("kind"), name)
        .named("firing", run.metadata.uuid())
        .caused_as(&run.spec)
        .data(json!({
            "run": started, "book": run.spec["book"], "slot": origin["slot"], "event": origin["event"],
            "cause": origin["cause"],
        }));
    Some(event)
}
