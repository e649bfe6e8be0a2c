//! Events that the server itself makes: nobody waits for them, and what is too much is counted and told.
//!
//! A run on many nodes makes thousands of events in a second. They wait in a queue of fixed length; those that find it full
//! are lost, and an event `events.dropped` says how many. An event that is made twice, after a restart, has the same name
//! and is written once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use portolan_digest::Digest;
use portolan_kinds::wire::ConfigSpec;
use portolan_kinds::{KindObject, find_kind};
use portolan_trigger::{CauseChain, EventFilter, EventFilterSpec};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::Events;
use crate::cache::Cache;
use crate::clock::rfc3339;
use crate::error::RefusalReason;
use crate::keys::ObjectKey;
use crate::objects::{Author, new_uuid};

/// Events that may wait.
const QUEUE: usize = 10_000;

/// Events that are being written at once: those of a second share records.
const AT_ONCE: usize = 2_000;

/// How often a loss is told.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The most bytes of what an event says about itself.
const MAX_DATA: usize = 8 << 10;

/// The most letters of a summary.
const MAX_SUMMARY: usize = 1_000;

/// The namespace of what concerns the whole fleet.
const SYSTEM: &str = "system";

/// The name of the Config that servers read.
const CONFIG: &str = "server";

/// The name that the server's events are written under.
const AUTHOR: &str = "system:events";

/// Takes events of the server; clones share a queue.
#[derive(Clone)]
pub(crate) struct EventSink(Arc<Sink>);

struct Sink {
    queue: mpsc::Sender<NewEvent>,
    cache: Cache,
    /// Which types are made, as the Config of this version says.
    filter: Mutex<(Option<String>, EventFilter)>,
    lost: AtomicU64,
    /// Events that wait or are being written.
    waiting: watch::Sender<usize>,
}

/// Writes what an [`EventSink`] takes.
pub(crate) struct SunkEvents {
    events: Events,
    sink: EventSink,
    queue: mpsc::Receiver<NewEvent>,
}

/// An event that is to be written.
#[derive(Debug, Clone)]
pub(crate) struct NewEvent {
    kind: &'static str,
    name: Option<String>,
    namespace: Option<String>,
    severity: &'static str,
    summary: String,
    source: Value,
    labels: BTreeMap<String, String>,
    data: Value,
    causes: Value,
    time: Option<String>,
}

impl EventSink {
    pub(crate) fn new(events: Events) -> (Self, SunkEvents) {
        Self::with_queue(events, QUEUE)
    }

    fn with_queue(events: Events, length: usize) -> (Self, SunkEvents) {
        let (queue, receiver) = mpsc::channel(length);
        let sink = Self(Arc::new(Sink {
            queue,
            cache: events.cache.clone(),
            filter: Mutex::default(),
            lost: AtomicU64::new(0),
            waiting: watch::Sender::new(0),
        }));
        let sunk = SunkEvents {
            events,
            sink: sink.clone(),
            queue: receiver,
        };
        (sink, sunk)
    }

    /// Takes an event if its type is made. Never waits.
    pub(crate) fn tell(&self, event: NewEvent) {
        if !self.allows(event.kind) || self.knows(&event) {
            return;
        }
        match self.0.queue.try_send(event) {
            Ok(()) => self.0.waiting.send_modify(|count| *count += 1),
            Err(_) => self.lose(1),
        }
    }

    /// Whether an event is stored already. What is told again does not fill the queue.
    fn knows(&self, event: &NewEvent) -> bool {
        let name = event.name.as_deref();
        let namespace = event.namespace.as_deref().unwrap_or(SYSTEM);
        name.is_some_and(|name| self.0.cache.event_key(namespace, name).is_some())
    }

    /// Events that were lost since the server started.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Waits until everything that was told is written, for a time at most.
    pub(crate) async fn flush(&self, most: Duration) {
        let mut waiting = self.0.waiting.subscribe();
        let done = waiting.wait_for(|count| *count == 0);
        let _ = tokio::time::timeout(most, done).await;
    }

    /// Counts events that cannot be made.
    pub(crate) fn lose(&self, count: u64) {
        self.0.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// Whether events of a type are made.
    fn allows(&self, kind: &str) -> bool {
        let config = find_kind("Config").and_then(|kind| {
            let key = ObjectKey::new(kind, None, CONFIG);
            self.0.cache.object(&key)
        });
        let version = config
            .as_ref()
            .and_then(|config| config.metadata.resource_version.clone());
        let mut filter = self.0.filter.lock();
        if filter.0 != version {
            let lists = config.and_then(|config| config.typed_spec::<ConfigSpec>().ok());
            let lists = lists.and_then(|config| config.events).unwrap_or_default();
            let lists = EventFilterSpec {
                allow: lists.allow,
                deny: lists.deny,
            };
            // Lists were checked when they were written.
            *filter = (version, EventFilter::new(&lists).unwrap_or_default());
        }
        filter.1.allows(kind)
    }
}

impl SunkEvents {
    /// Writes until the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut writing = JoinSet::new();
        let mut tick = tokio::time::interval(TELL_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = 0;
        loop {
            tokio::select! {
                Some(event) = self.queue.recv(), if writing.len() < AT_ONCE => {
                    writing.spawn(self.write(event));
                }
                Some(_) = writing.join_next(), if !writing.is_empty() => {
                    self.sink.0.waiting.send_modify(|count| *count = count.saturating_sub(1));
                }
                _ = tick.tick() => {
                    let lost = self.sink.lost();
                    if lost > told {
                        self.tell_loss(lost - told).await;
                        told = lost;
                    }
                }
            }
        }
    }

    fn write(&self, event: NewEvent) -> impl Future<Output = ()> + Send + use<> {
        let (events, sink) = (self.events.clone(), self.sink.clone());
        async move {
            let Some(object) = event.object(&rfc3339(events.objects.time.now())) else {
                return;
            };
            let author = author();
            match events.create(object, &author).await {
                // It was made before a restart, or its namespace is gone.
                Err(error)
                    if matches!(
                        error.reason,
                        RefusalReason::AlreadyExists
                            | RefusalReason::NotFound
                            | RefusalReason::Terminating
                    ) => {}
                Err(error) => {
                    tracing::warn!(%error, "an event cannot be written");
                    sink.lose(1);
                }
                Ok(_) => {}
            }
        }
    }

    async fn tell_loss(&self, count: u64) {
        let summary = format!("{count} events of the server were lost: too many came at once");
        let event = NewEvent::new("events.dropped", summary)
            .warning()
            .data(json!({ "count": count }));
        self.write(event).await;
    }
}

fn author() -> Author {
    Author {
        name: AUTHOR.to_owned(),
        ..Author::default()
    }
}

impl NewEvent {
    /// An event of a type, with a sentence. It concerns the whole fleet unless it is about an object in a namespace.
    pub(crate) fn new(kind: &'static str, summary: impl Into<String>) -> Self {
        Self {
            kind,
            name: None,
            namespace: None,
            severity: "info",
            summary: summary.into(),
            source: Value::Null,
            labels: BTreeMap::new(),
            data: Value::Null,
            causes: Value::Null,
            time: None,
        }
    }

    pub(crate) fn warning(mut self) -> Self {
        self.severity = "warning";
        self
    }

    pub(crate) fn error(mut self) -> Self {
        self.severity = "error";
        self
    }

    /// What it is about; it is in the same namespace.
    pub(crate) fn about(mut self, object: &KindObject) -> Self {
        self.namespace = object.namespace().map(str::to_owned);
        self.source["kind"] = object.kind.name.into();
        self.source["name"] = object.name().into();
        self
    }

    /// An object in the namespace of another one.
    pub(crate) fn about_other(mut self, near: &KindObject, kind: &str, name: &str) -> Self {
        self.namespace = near.namespace().map(str::to_owned);
        self.source = json!({"kind": kind, "name": name});
        self
    }

    /// The node that it happened on.
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.source["node"] = node.into();
        self
    }

    /// What tells it from others of its sort: the same makes one event.
    pub(crate) fn named(mut self, sort: &str, id: &str) -> Self {
        let digest = Digest::of(format!("{}\0{id}", self.kind).as_bytes()).hex();
        let digest = digest.get(..24).unwrap_or_default();
        self.name = Some(format!("{sort}-{digest}"));
        self
    }

    /// More about it; what is too much is left out.
    pub(crate) fn data(mut self, data: Value) -> Self {
        self.data = data;
        self
    }

    /// The triggers that led to it.
    pub(crate) fn caused_by(mut self, causes: &CauseChain) -> Self {
        if !causes.is_empty() {
            self.causes = json!(causes);
        }
        self
    }

    /// The triggers that led to it, as a Run has them.
    pub(crate) fn caused_as(mut self, run: &Value) -> Self {
        self.causes = run.get("causes").cloned().unwrap_or_default();
        self
    }

    /// The object, made now.
    fn object(self, now: &str) -> Option<KindObject> {
        let kind = find_kind("Event")?;
        let mut summary = self.summary;
        if let Some((end, _)) = summary.char_indices().nth(MAX_SUMMARY) {
            summary.truncate(end);
        }
        let mut spec = Map::from_iter([
            ("type".to_owned(), json!(self.kind)),
            ("severity".to_owned(), json!(self.severity)),
            ("summary".to_owned(), json!(summary)),
            ("occurrences".to_owned(), json!(1)),
            (
                "time".to_owned(),
                json!(self.time.as_deref().unwrap_or(now)),
            ),
        ]);
        let mut data = self.data;
        let bytes = data.to_string().len();
        if bytes > MAX_DATA {
            data = json!({ "leftOutBytes": bytes });
        }
        let parts = [
            ("source", self.source),
            ("data", data),
            ("causes", self.causes),
        ];
        let parts = parts.into_iter().filter(|(_, value)| !value.is_null());
        spec.extend(parts.map(|(key, value)| (key.to_owned(), value)));
        let name = self
            .name
            .unwrap_or_else(|| format!("{}-{}", self.kind.replace('.', "-"), new_uuid()));
        let namespace = self.namespace.as_deref().unwrap_or(SYSTEM);
        let mut object = KindObject::new(kind, &name, Some(namespace), Value::Object(spec));
        object.metadata.labels = self.labels.into_iter().collect();
        Some(object)
    }
}

#[cfg(test)]
mod tests;
