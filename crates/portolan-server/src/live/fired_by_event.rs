//! The run of a firing: the book of its trigger, with inputs made from the event.

use std::sync::Arc;

use portolan_fleet::{MemoryFiles, TextRenderer, scope_of};
use portolan_kinds::KindObject;
use portolan_store::{Compare, Transaction};
use portolan_trigger::{Firing, FleetEvent};
use serde_json::{Map, Value, json};

use super::triggers::USER;
use crate::error::ApiError;
use crate::runs::{FiredRun, MadeBy};

/// Letters of the name of a firing that are part of the name of its run.
const KEY: usize = 16;

/// The run of a firing. What has to be remembered about the firing is written with it.
pub(super) fn run_of(
    trigger: &KindObject,
    firing: &Firing,
    fence: Compare,
    with: Transaction,
) -> Result<FiredRun, ApiError> {
    let wanted = &trigger.spec["run"];
    let book = wanted["book"].as_str().unwrap_or_default().to_owned();
    let key = firing.id.get(..KEY).unwrap_or(&firing.id).to_owned();
    let name = format!("{book}-{key}");
    let nodes = if wanted["eventNode"] == true {
        let node = firing.event.node.clone();
        vec![node.ok_or_else(|| {
            ApiError::bad_request("`eventNode` is true, and the event is about no node")
        })?]
    } else {
        Vec::new()
    };
    let selector = match wanted["selector"].as_str() {
        Some(text) => Some(text.parse().map_err(|error| {
            ApiError::bad_request(format!("`run.selector` of the trigger: {error}"))
        })?),
        None => None,
    };
    Ok(FiredRun {
        user: USER,
        namespace: trigger.namespace().unwrap_or_default().to_owned(),
        text: None,
        is_check: wanted["mode"] == "check",
        inputs: inputs_of(trigger, &firing.event, firing.count)?,
        nodes,
        selector,
        made_by: MadeBy {
            origin: json!({
                "kind": "Trigger", "name": trigger.name(), "uuid": trigger.metadata.uuid(), "event": firing.event.uid,
            }),
            causes: causes_of(firing, &name),
            fence,
            with,
        },
        book,
        key,
    })
}

/// The chain of the run; its last link is the run itself.
fn causes_of(firing: &Firing, run: &str) -> Value {
    let links = firing.causes.links();
    let links = links.iter().enumerate().map(|(place, link)| {
        let is_own = place + 1 == links.len();
        let run = if is_own { run } else { link.run.as_str() };
        json!({"trigger": link.trigger, "run": run})
    });
    links.collect()
}

/// The inputs of the run, rendered with the event.
pub(super) fn inputs_of(
    trigger: &KindObject,
    event: &FleetEvent,
    count: u64,
) -> Result<Map<String, Value>, ApiError> {
    let Some(inputs) = trigger.spec["run"]["inputs"].as_object() else {
        return Ok(Map::new());
    };
    let about = json!({
        "uid": event.uid, "type": event.kind, "namespace": event.namespace, "node": event.node,
        "severity": event.severity.as_str(), "labels": event.labels, "data": event.data,
        "time": event.moment().to_string(),
    });
    let scope = Map::from_iter([
        ("event".to_owned(), about),
        ("count".to_owned(), count.into()),
        ("trigger".to_owned(), trigger.name().into()),
    ]);
    let renderer = TextRenderer::new(Arc::new(MemoryFiles::default()));
    renderer
        .map(inputs, &scope_of(&scope))
        .map_err(|error| ApiError::bad_request(format!("`run.inputs` of the trigger: {error}")))
}
