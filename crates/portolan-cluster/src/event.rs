//! Kubernetes events, which people see with `kubectl describe` and `kubectl events`.
//!
//! An event that is repeated within a few minutes is one event with a count, so something that happens every second
//! does not fill the cluster.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::error::ClusterError;

/// How long the same thing said again is the same event.
const FOLD_FOR: Duration = Duration::from_mins(6);

/// The most bytes of a note that the API server takes.
const LONGEST_NOTE: usize = 1024;

/// The most events that are remembered; older ones are forgotten first.
const REMEMBERED: usize = 4096;

/// Whether something is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It is.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something to be told about an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct News {
    /// Whether it is as it should be.
    pub event_type: EventType,
    /// One word for it.
    pub reason: String,
    /// What was done, in one word.
    pub action: String,
    /// A sentence.
    pub note: String,
}

/// The object that something is told about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Regarding {
    /// `portolan.dev/v1alpha1`
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// Writes events.
pub struct EventRecorder {
    cluster: Cluster,
    resource: Resource,
    controller: String,
    instance: String,
    known: Mutex<HashMap<u64, WrittenEvent>>,
}

#[derive(Clone)]
struct WrittenEvent {
    name: String,
    count: u32,
    at: Instant,
}

impl EventRecorder {
    /// Writes events in the name of a controller, of which this is one instance.
    pub fn new(cluster: &Cluster, controller: &str, instance: &str) -> Self {
        Self {
            cluster: cluster.clone(),
            resource: Resource::in_namespaces("events.k8s.io/v1", "Event", "events"),
            controller: controller.to_owned(),
            instance: instance.chars().take(128).collect(),
            known: Mutex::default(),
        }
    }

    /// Tells something. What was told a short time ago is counted.
    pub async fn tell(&self, regarding: &Regarding, news: &News) -> Result<(), ClusterError> {
        let mut hasher = DefaultHasher::new();
        (regarding, news).hash(&mut hasher);
        let key = hasher.finish();
        let written = self.lookup(key);
        if let Some(written) = written {
            let count = written.count + 1;
            let series = json!({"series": {"count": count, "lastObservedTime": now()}});
            let place = (regarding.namespace.as_str(), written.name.as_str());
            let merged = self
                .cluster
                .merge(&self.resource, place, &series, &self.controller);
            match merged.await {
                Ok(_) => {
                    self.remember(
                        key,
                        WrittenEvent {
                            count,
                            at: Instant::now(),
                            ..written
                        },
                    );
                    return Ok(());
                }
                // It has been cleared away.
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
        let name = format!("{}.{:x}", regarding.name, nanoseconds());
        let event = self.event(&name, regarding, news);
        let made = self
            .cluster
            .create(&self.resource, &event, &self.controller);
        match made.await {
            // Sent twice, because the first answer was lost.
            Ok(_) | Err(ClusterError::Exists { .. }) => {
                let written = WrittenEvent {
                    name,
                    count: 1,
                    at: Instant::now(),
                };
                self.remember(key, written);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn event(&self, name: &str, regarding: &Regarding, news: &News) -> Value {
        json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": name, "namespace": regarding.namespace},
            "eventTime": now(),
            "reportingController": self.controller,
            "reportingInstance": self.instance,
            "type": format!("{:?}", news.event_type),
            "reason": news.reason,
            "action": news.action,
            "note": cut(&news.note, LONGEST_NOTE),
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        })
    }

    fn lookup(&self, key: u64) -> Option<WrittenEvent> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let written = known.get(&key).cloned();
        written.filter(|written| written.at.elapsed() < FOLD_FOR)
    }

    fn remember(&self, key: u64, written: WrittenEvent) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.retain(|_, written| written.at.elapsed() < FOLD_FOR);
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, written);
    }
}

/// The start of a text, not longer than so many bytes.
fn cut(text: &str, longest: usize) -> &str {
    let mut end = text.len().min(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

/// Makes names of events that differ.
fn nanoseconds() -> i128 {
    Timestamp::now().as_nanosecond()
}
