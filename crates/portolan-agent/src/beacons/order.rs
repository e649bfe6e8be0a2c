//! What the server wants to be watched, as it is sent and kept.

use std::time::Duration;

use portolan_trigger::{EdgeSpec, FleetSeverity, WrittenSpan};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
}

fn one() -> u32 {
    1
}

impl KeptOrder {
    /// Reads what the server sent; what this agent cannot watch is left out, and named in the log.
    pub(super) fn read(orders: wire::BeaconOrders) -> Vec<Self> {
        let orders = orders.beacons.into_iter().take(MAX_BEACONS);
        let read = orders.filter_map(|order| match serde_json::from_slice(&order.spec) {
            Ok(spec) => Some(Self {
                id: order.id,
                namespace: order.namespace,
                name: order.name,
                spec,
            }),
            Err(error) => {
                tracing::warn!(%error, beacon = order.name, "a beacon cannot be watched by this agent");
                None
            }
        });
        read.collect()
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
        }
    }

    /// What it is called in sentences.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::File { path, .. } => path.clone(),
            Self::Service { name, .. } => format!("service {name}"),
            Self::Disk { path, .. } => format!("the room at {path}"),
            Self::Port { address, port, .. } => format!("port {address}:{port}"),
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
        }
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
        let read = KeptOrder::read(wire::BeaconOrders { beacons });
        let words: Vec<&str> = read.iter().map(|one| one.spec.subject.word()).collect();
        assert_eq!(words, ["file", "command", "disk"]);
        assert_eq!(read[0].spec.interval(), Duration::from_secs(5));
        assert_eq!(read[0].spec.edge().of, 3);
        let kept = serde_json::to_vec(&read).expect("written");
        let again: Vec<KeptOrder> = serde_json::from_slice(&kept).expect("read");
        assert_eq!(again, read);
    }
}
