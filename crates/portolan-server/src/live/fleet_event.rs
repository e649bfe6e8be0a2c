//! Stored Events as triggers see them, and events from outside as they are stored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use portolan_kinds::{KindObject, find_kind};
use portolan_trigger::{FleetEvent, FleetSeverity};
use serde_json::{Map, Value, json};

use crate::error::ApiError;

/// A stored Event as triggers see it. Its name is unique in its namespace, so both together name it.
pub(super) fn fleet_event(event: &KindObject) -> FleetEvent {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let spec = &event.spec;
    let created = event.metadata.creation_timestamp().parse::<Timestamp>();
    let time = spec["time"].as_str().and_then(|time| time.parse().ok());
    let received = created.ok().or(time).unwrap_or(Timestamp::UNIX_EPOCH);
    let source = &spec["source"];
    let node = text(&source["node"]);
    let node = node.or_else(|| text(&source["name"]).filter(|_| source["kind"] == "Node"));
    let mut data = spec["data"].as_object().cloned().unwrap_or_default();
    // What it is about is there for conditions and templates, unless the event has something of that name.
    for key in ["kind", "name"] {
        if let Some(value) = source.get(key) {
            let about = data.entry("source".to_owned()).or_insert_with(|| json!({}));
            if about.is_object() {
                about[key] = value.clone();
            }
        }
    }
    FleetEvent {
        uid: format!("{}/{}", event.namespace().unwrap_or_default(), event.name()),
        kind: text(&spec["type"]).unwrap_or_default(),
        namespace: event.namespace().unwrap_or_default().to_owned(),
        node,
        severity: match spec["severity"].as_str() {
            Some("error") => FleetSeverity::Error,
            Some("warning") => FleetSeverity::Warning,
            _ => FleetSeverity::Info,
        },
        labels: labels_of(event, &data),
        data,
        time: time.unwrap_or(received),
        received,
        causes: serde_json::from_value(spec["causes"].clone()).unwrap_or_default(),
    }
}

/// The labels of an event; those that a sender gave are in its data.
fn labels_of(event: &KindObject, data: &Map<String, Value>) -> BTreeMap<String, String> {
    let own = event.metadata.labels.clone().into_iter();
    let mut labels: BTreeMap<String, String> = own.collect();
    let source = event.spec["source"]["kind"].as_str();
    if matches!(source, Some("Webhook" | "Beacon"))
        && let Some(sent) = data.get("labels").and_then(Value::as_object)
    {
        let texts = sent.iter().filter_map(|(key, value)| {
            let value = value.as_str()?;
            Some((key.clone(), value.to_owned()))
        });
        labels.extend(texts);
    }
    labels
}

/// An event from outside as it is stored: its name follows from its uid, so that it is stored once.
pub(crate) fn stored_event(event: &FleetEvent, webhook: &str) -> Result<KindObject, ApiError> {
    let kind = find_kind("Event").ok_or_else(|| ApiError::internal("no kind Event"))?;
    let mut source = Map::from_iter([
        ("kind".to_owned(), json!("Webhook")),
        ("name".to_owned(), json!(webhook)),
    ]);
    if let Some(node) = &event.node {
        source.insert("node".to_owned(), json!(node));
    }
    let labels: BTreeMap<&String, &String> = event.labels.iter().collect();
    let mut data = event.data.clone();
    // Labels of senders need not be what labels of objects must be.
    if !labels.is_empty() {
        data.insert("labels".to_owned(), json!(labels));
    }
    let summary = data.get("annotations").and_then(|notes| {
        let summary = notes.get("summary").or_else(|| notes.get("description"));
        summary.and_then(Value::as_str)
    });
    let summary = summary.map_or_else(
        || format!("{} from the webhook {webhook}", event.kind),
        |summary| summary.chars().take(1_000).collect(),
    );
    let spec = json!({
        "type": event.kind, "severity": event.severity.as_str(), "summary": summary, "source": source,
        "time": event.time.to_string(), "occurrences": 1, "data": data,
    });
    let uid: String = event
        .uid
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(64)
        .collect();
    let name = format!("hook-{}", uid.to_ascii_lowercase());
    Ok(KindObject::new(kind, &name, Some(&event.namespace), spec))
}
