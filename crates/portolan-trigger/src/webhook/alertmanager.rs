//! What Alertmanager sends: each alert is one event.

use std::collections::BTreeMap;

use jiff::Timestamp;
use portolan_digest::FieldHasher;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::mapping::{MappedEvents, MappingProblem};
use super::signature::WebhookRefusal;
use super::{MAX_EVENTS, WebhookOrigin, bounded_data, bounded_labels, bounded_node};
use crate::event::{CauseChain, FleetEvent, FleetSeverity};

/// The body of Alertmanager's webhook, version 4; fields that are not needed are not named.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AlertGroup {
    #[serde(default)]
    receiver: String,
    #[serde(default)]
    group_key: String,
    #[serde(default, rename = "externalURL")]
    external_url: String,
    #[serde(default)]
    truncated_alerts: u64,
    alerts: Vec<AlertItem>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AlertItem {
    status: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    starts_at: Option<Timestamp>,
    #[serde(default)]
    ends_at: Option<Timestamp>,
    #[serde(default, rename = "generatorURL")]
    generator_url: String,
    #[serde(default)]
    fingerprint: String,
}

/// Reads what Alertmanager sends. An alert is an event of type `alert.firing` or `alert.resolved`; its severity is that
/// of the label `severity`, its node that of the label `node` or else the host of `instance`. Alertmanager repeats alerts
/// that go on; the same alert is the same event.
///
/// # Errors
/// When the body is not what Alertmanager sends.
pub fn alertmanager_events(
    body: &[u8],
    origin: WebhookOrigin<'_>,
) -> Result<MappedEvents, WebhookRefusal> {
    let group: AlertGroup = serde_json::from_slice(body)
        .map_err(|error| WebhookRefusal::Malformed(error.to_string()))?;
    let mut mapped = MappedEvents {
        left_out: group.truncated_alerts,
        ..MappedEvents::default()
    };
    for (index, alert) in group.alerts.iter().enumerate() {
        if index >= MAX_EVENTS {
            mapped.left_out += 1;
            continue;
        }
        match event_of(alert, &group, origin) {
            Ok(event) => mapped.events.push(event),
            Err(why) => mapped.problems.push(MappingProblem { index, why }),
        }
    }
    Ok(mapped)
}

fn event_of(
    alert: &AlertItem,
    group: &AlertGroup,
    origin: WebhookOrigin<'_>,
) -> Result<FleetEvent, String> {
    let (kind, time) = match alert.status.as_str() {
        "firing" => ("alert.firing", alert.starts_at),
        "resolved" => ("alert.resolved", alert.ends_at),
        _ => return Err("`status` is neither `firing` nor `resolved`".to_owned()),
    };
    let data = json!({
        "alert": alert.labels.get("alertname"),
        "annotations": alert.annotations,
        "startsAt": alert.starts_at,
        "generator": alert.generator_url,
        "fingerprint": alert.fingerprint,
        "receiver": group.receiver,
        "groupKey": group.group_key,
        "externalUrl": group.external_url,
    });
    let data = match data {
        Json::Object(data) => data,
        _ => Map::new(),
    };
    Ok(FleetEvent {
        uid: uid_of(alert, origin),
        kind: kind.to_owned(),
        namespace: origin.namespace.to_owned(),
        node: node_of(&alert.labels),
        severity: severity_of(&alert.labels),
        labels: bounded_labels(alert.labels.clone()),
        data: bounded_data(data),
        time: time.unwrap_or(origin.received),
        received: origin.received,
        causes: CauseChain::default(),
    })
}

/// The same alert has the same name, however often it is sent; when it fires again it has begun at another time.
fn uid_of(alert: &AlertItem, origin: WebhookOrigin<'_>) -> String {
    let mut hasher = FieldHasher::of("alert");
    hasher.add(origin.uid).add(&alert.status);
    for (name, value) in &alert.labels {
        hasher.add(name).add(value);
    }
    hasher.add(&alert.fingerprint);
    hasher.add(&alert.starts_at.map(|time| time.to_string()));
    hasher.finish().hex()
}

fn severity_of(labels: &BTreeMap<String, String>) -> FleetSeverity {
    match labels.get("severity").map(String::as_str) {
        Some("critical" | "error" | "page" | "emergency") => FleetSeverity::Error,
        Some("warning" | "warn") => FleetSeverity::Warning,
        _ => FleetSeverity::Info,
    }
}

fn node_of(labels: &BTreeMap<String, String>) -> Option<String> {
    let named = labels.get("node").map(String::as_str);
    let host = labels.get("instance").map(|instance| {
        let (host, _) = instance.rsplit_once(':').unwrap_or((instance, ""));
        host
    });
    named.or(host).and_then(bounded_node)
}
