//! What happened, as triggers see it, and what it was caused by.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use portolan_cel::{Type, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::span::{earlier, later};

/// How far the clock of a node may be wrong before the time of its events is corrected.
const MAX_SKEW: Duration = Duration::from_mins(5);

/// How many runs that triggers started may stand behind a run, with itself.
pub const MAX_DEPTH: usize = 4;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetEvent {
    /// Its name: the same event has the same name, however often it is delivered.
    pub uid: String,
    /// What happened, in words for programs such as `beacon.drift`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The namespace that it belongs to.
    pub namespace: String,
    /// The node that it happened on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How bad it is.
    #[serde(default)]
    pub severity: FleetSeverity,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Json>,
    /// When it happened, by the clock of whoever saw it.
    pub time: Timestamp,
    /// When the server received it, by the clock of the server.
    pub received: Timestamp,
    /// The triggers and runs that led to it.
    #[serde(default, skip_serializing_if = "CauseChain::is_empty")]
    pub causes: CauseChain,
}

/// How bad an event is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum FleetSeverity {
    /// Nothing has to be done.
    #[default]
    Info,
    /// Somebody should look.
    Warning,
    /// Something is broken.
    Error,
}

/// The triggers that led to an event, the first one first, each with the run that it started.
///
/// A run takes the chain of the event that started it, and every event that the run makes takes the chain of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CauseChain {
    links: Vec<CauseLink>,
}

/// A trigger and the run that it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseLink {
    /// The uid of the trigger.
    pub trigger: String,
    /// The name of the run.
    pub run: String,
}

// === impl FleetEvent ===

impl FleetEvent {
    /// When it happened, corrected to at most five minutes before or after it was received.
    ///
    /// ```
    /// # use portolan_trigger::FleetEvent;
    /// let event: FleetEvent = serde_json::from_str(r#"{
    ///     "uid": "1", "type": "beacon.disk", "namespace": "shop",
    ///     "time": "2001-01-01T00:00:00Z", "received": "2026-11-18T09:00:00Z"
    /// }"#)?;
    /// assert_eq!(event.moment(), "2026-11-18T08:55:00Z".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn moment(&self) -> Timestamp {
        let first = earlier(self.received, MAX_SKEW);
        let last = later(self.received, MAX_SKEW);
        self.time.clamp(first, last)
    }

    /// The number that stands for its name in what is remembered about it.
    pub(crate) fn number(&self) -> u64 {
        let digest = portolan_digest::Digest::of(self.uid.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl FleetSeverity {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

// === impl CauseChain ===

impl CauseChain {
    /// Whether no trigger led to it.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// How many runs that triggers started stand behind it.
    pub fn depth(&self) -> usize {
        self.links.len()
    }

    /// The links, the first one first.
    pub fn links(&self) -> &[CauseLink] {
        &self.links
    }

    /// Whether a trigger is among them.
    pub fn has(&self, trigger: &str) -> bool {
        self.links.iter().any(|link| link.trigger == trigger)
    }

    /// The chain of a run that a trigger starts because of this one.
    #[must_use]
    pub fn with(&self, trigger: &str, run: &str) -> Self {
        let mut links = self.links.clone();
        links.push(CauseLink {
            trigger: trigger.to_owned(),
            run: run.to_owned(),
        });
        Self { links }
    }
}

/// An event together with its form for expressions, which is made at most once.
pub struct EventView<'e> {
    event: &'e FleetEvent,
    value: OnceCell<Value>,
}

impl<'e> EventView<'e> {
    /// A view of an event.
    pub fn new(event: &'e FleetEvent) -> Self {
        let value = OnceCell::new();
        Self { event, value }
    }

    /// The event.
    pub fn event(&self) -> &'e FleetEvent {
        self.event
    }

    /// The variable `event` of expressions.
    pub(crate) fn value(&self) -> Value {
        let made = self.value.get_or_init(|| {
            let event = self.event;
            portolan_cel::from_json(&json!({
                "uid": event.uid,
                "type": event.kind,
                "namespace": event.namespace,
                "node": event.node.as_deref().unwrap_or_default(),
                "severity": event.severity.as_str(),
                "labels": event.labels,
                "data": event.data,
                "time": event.moment().to_string(),
                "depth": event.causes.depth(),
            }))
        });
        made.clone()
    }
}

/// What expressions know about the variable `event`.
pub(crate) fn event_type() -> Type {
    Type::record([
        ("uid", Type::Text),
        ("type", Type::Text),
        ("namespace", Type::Text),
        ("node", Type::Text),
        ("severity", Type::Text),
        ("labels", Type::map(Type::Text)),
        ("data", Type::Any),
        ("time", Type::Text),
        ("depth", Type::Integer),
    ])
}
