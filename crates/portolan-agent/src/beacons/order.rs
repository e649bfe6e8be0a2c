//! What the server wants to be watched, as it is sent and kept.

use std::time::Duration;

use portolan_trigger::{BeaconSubject, EdgeSpec, FleetSeverity, WrittenSpan};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kept_book::KeptBook;
use crate::wire;

/// The most beacons of a node.
const MAX_BEACONS: usize = 200;

/// How often something is looked at if the order does not say.
const INTERVAL: Duration = Duration::from_secs(30);

/// The shortest time between two looks.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The longest that a command may take.
const MAX_COMMAND: Duration = Duration::from_mins(1);

/// A beacon as it is kept across restarts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptOrder {
    /// Tells it apart from the same Beacon with another spec.
    pub(super) id: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) spec: BeaconSpec,
    /// The book whose drift is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) book: Option<KeptBook>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) unusable: String,
}

/// What a beacon watches and when it tells something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BeaconSpec {
    #[serde(flatten)]
    pub(super) subject: Subject,
    #[serde(default)]
    interval: Option<WrittenSpan>,
    #[serde(default)]
    every: Option<WrittenSpan>,
    #[serde(default = "one")]
    seen: u32,
    #[serde(default = "one")]
    of: u32,
    #[serde(default)]
    pub(super) severity: FleetSeverity,
    #[serde(default)]
    pub(super) labels: Map<String, Value>,
}

/// What is watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Subject {
    File {
        path: String,
        #[serde(default)]
        state: Option<String>,
    },
    Service {
        name: String,
        state: String,
    },
    Disk {
        path: String,
        free_percent: u64,
    },
    Port {
        address: String,
        port: u16,
        state: String,
    },
    Command {
        run: Vec<String>,
        timeout: WrittenSpan,
        #[serde(default)]
        ok_codes: Vec<i32>,
    },
    Drift {
        book: String,
    },
}

fn one() -> u32 {
    1
}

impl KeptOrder {
    /// Reads what the server sent; what this agent cannot watch is left out, and named in the log. `known` are the orders
    /// before.
    pub(super) fn read(orders: wire::BeaconOrders, known: &[Self]) -> Vec<Self> {
        let orders = orders.beacons.into_iter().take(MAX_BEACONS);
        let read = orders.filter_map(|order| match serde_json::from_slice(&order.spec) {
            Ok(spec) => {
                let mut kept = Self {
                    id: order.id,
                    namespace: order.namespace,
                    name: order.name,
                    spec,
                    book: None,
                    unusable: order.unusable,
                };
                kept.take_book(order.book, order.keeps_book, known);
                Some(kept)
            }
            Err(error) => {
                tracing::warn!(%error, beacon = order.name, "a beacon cannot be watched by this agent");
                None
            }
        });
        read.collect()
    }
}

impl KeptOrder {
    fn take_book(&mut self, book: Option<wire::RunOrder>, keeps_book: bool, known: &[Self]) {
        if let Some(book) = book {
            self.book = KeptBook::read(book);
            if self.book.is_none() {
                "the book is too large to be kept on a node".clone_into(&mut self.unusable);
            }
        } else if keeps_book
            && let Some(before) = known.iter().find(|before| before.id == self.id)
            && before.book.is_some()
        {
            self.book.clone_from(&before.book);
            self.unusable.clear();
        }
    }
}

impl BeaconSpec {
    /// How often it is looked at.
    pub(super) fn interval(&self) -> Duration {
        let interval = self.interval.map_or(INTERVAL, |interval| interval.0);
        interval.max(MIN_INTERVAL)
    }

    /// When it tells something.
    pub(super) fn edge(&self) -> EdgeSpec {
        EdgeSpec {
            every: self.every,
            seen: self.seen,
            of: self.of,
        }
    }
}

impl Subject {
    /// The last part of the type of its events.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Service { .. } => "service",
            Self::Disk { .. } => "disk",
            Self::Port { .. } => "port",
            Self::Command { .. } => "command",
            Self::Drift { .. } => "drift",
        }
    }

    /// A condition as it is told. That of a drift says more than its word, so that another drift is another condition.
    pub(super) fn shown<'c>(&self, condition: &'c str) -> &'c str {
        match self {
            Self::Drift { .. } => condition.split(' ').next().unwrap_or(condition),
            _ => condition,
        }
    }

    /// What of it runs can change.
    pub(super) fn changed_by_runs(&self) -> BeaconSubject {
        match self {
            Self::File { path, .. } => BeaconSubject::Path(path.clone()),
            Self::Service { name, .. } => BeaconSubject::Service(name.clone()),
            Self::Drift { .. } => BeaconSubject::Everything,
            _ => BeaconSubject::Other,
        }
    }

    /// What it is called in sentences.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::File { path, .. } => path.clone(),
            Self::Service { name, .. } => format!("service {name}"),
            Self::Disk { path, .. } => format!("the room at {path}"),
            Self::Port { address, port, .. } => format!("port {address}:{port}"),
            Self::Drift { book } => format!("TaskBook {book}"),
            Self::Command { run, .. } => {
                // Only the program: arguments may hold what not everybody should read.
                format!("command {}", run.first().map_or("", String::as_str))
            }
        }
    }
}

/// The time that a command may take.
pub(super) fn command_time(timeout: WrittenSpan) -> Duration {
    timeout.0.clamp(MIN_INTERVAL, MAX_COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(spec: &str) -> wire::BeaconOrder {
        wire::BeaconOrder {
            id: "1".to_owned(),
            namespace: "default".to_owned(),
            name: "b".to_owned(),
            spec: spec.as_bytes().to_vec().into(),
            ..wire::BeaconOrder::default()
        }
    }

    /// A server that cannot read the book at the moment does not make the node forget it.
    #[test]
    fn the_book_of_a_drift_stays_while_the_server_cannot_tell() {
        let drift = || order(r#"{"drift": {"book": "web"}}"#);
        let read = |order: wire::BeaconOrder, known: &[KeptOrder]| {
            let beacons = vec![order];
            KeptOrder::read(wire::BeaconOrders { beacons }, known)
        };
        let mut first = drift();
        first.book = Some(wire::RunOrder {
            file: "web.yaml".to_owned(),
            ..wire::RunOrder::default()
        });
        let known = read(first, &[]);
        let kept = serde_json::to_vec(&known).expect("written");
        let known: Vec<KeptOrder> = serde_json::from_slice(&kept).expect("read");
        assert_eq!(
            known[0].book.as_ref().expect("a book").order().file,
            "web.yaml"
        );
        let mut unsure = drift();
        unsure.keeps_book = true;
        unsure.unusable = "no answer from git".to_owned();
        assert_eq!(read(unsure.clone(), &known), known);
        let without = read(unsure, &[]);
        assert_eq!(without[0].unusable, "no answer from git");
        let mut refused = drift();
        refused.unusable = "it needs an input".to_owned();
        assert!(read(refused, &known)[0].book.is_none());
        let mut large = drift();
        large.book = Some(wire::RunOrder {
            book: vec![b' '; 2 << 20].into(),
            ..wire::RunOrder::default()
        });
        assert!(read(large, &known)[0].unusable.contains("too large"));
        let subject = &known[0].spec.subject;
        assert_eq!(subject.shown("drifted 0123"), "drifted");
    }

    #[test]
    fn specs_are_read_as_the_server_writes_them_and_kept_as_they_are() {
        let beacons = vec![
            order(
                r#"{"target": {"all": true}, "file": {"path": "/etc/a"}, "interval": "5s", "seen": 2, "of": 3,
                    "severity": "error", "labels": {"a": "b"}, "suspend": false}"#,
            ),
            order(r#"{"moon": {}, "interval": "5s"}"#),
            order(r#"{"command": {"run": ["true"], "timeout": "10s", "okCodes": [0, 1]}}"#),
            order(r#"{"disk": {"path": "/", "freePercent": 10}}"#),
        ];
        let read = KeptOrder::read(wire::BeaconOrders { beacons }, &[]);
        let words: Vec<&str> = read.iter().map(|one| one.spec.subject.word()).collect();
        assert_eq!(words, ["file", "command", "disk"]);
        assert_eq!(read[0].spec.interval(), Duration::from_secs(5));
        assert_eq!(read[0].spec.edge().of, 3);
        let kept = serde_json::to_vec(&read).expect("written");
        let again: Vec<KeptOrder> = serde_json::from_slice(&kept).expect("read");
        assert_eq!(again, read);
    }
}
