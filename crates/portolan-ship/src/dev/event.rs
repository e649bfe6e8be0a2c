//! What happens in a dev session besides builds and deployments.

use portolan_engine::{DomainEvent, Journal, Publisher};
use portolan_object::counted;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many events wait to be printed; logs wait for the reader, and nothing else is that frequent.
const WAITING: usize = 1024;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum DevEvent {
    /// The operating system does not tell of saved files: they are looked at again and again.
    Polling {
        /// Why.
        why: String,
    },
    /// Files were saved.
    Changed {
        /// The first few, relative to the document.
        files: Vec<String>,
        /// How many there are.
        count: usize,
    },
    /// A line of a log.
    Log {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// The line; what is no UTF-8 is replaced.
        line: String,
    },
    /// Lines of a log may be missing, or it cannot be read.
    LogTrouble {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// What is known of it.
        why: String,
    },
    /// A port is forwarded.
    Forwarding {
        /// Whose port: `service/web`.
        resource: String,
        /// The port there.
        port: u16,
        /// Where it is on this machine.
        address: String,
    },
    /// A forwarded port leads to this pod now.
    ForwardedTo {
        /// Whose port.
        resource: String,
        /// The pod.
        pod: String,
    },
    /// A port cannot be forwarded, or a connection broke; it is tried again.
    ForwardTrouble {
        /// Whose port.
        resource: String,
        /// Why.
        why: String,
    },
    /// Files were copied into a pod.
    Synced {
        /// The artifact.
        artifact: String,
        /// The pod.
        pod: String,
        /// How many files were copied.
        copied: usize,
        /// How many were removed.
        removed: usize,
    },
    /// Files could not be copied into a pod; the artifact is built instead.
    SyncTrouble {
        /// The artifact.
        artifact: String,
        /// The pod; empty if there is none.
        pod: String,
        /// Why.
        why: String,
    },
}

impl DomainEvent for DevEvent {
    const TOPIC: &'static str = "dev";
}

impl DevEvent {
    /// Whether something does not work.
    pub fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::Polling { .. }
                | Self::LogTrouble { .. }
                | Self::ForwardTrouble { .. }
                | Self::SyncTrouble { .. }
        )
    }

    /// One line for people.
    pub fn text(&self) -> String {
        match self {
            Self::Log { line, .. } => line.clone(),
            Self::Polling { why } => format!(
                "the system does not tell of saved files, they are looked at every second: {why}"
            ),
            Self::Changed { files, count } => {
                match (files.as_slice(), count.saturating_sub(files.len())) {
                    ([], _) => "many files were saved".to_owned(),
                    (files, 0) => format!("saved {}", files.join(", ")),
                    (files, more) => format!("saved {} and {more} more", files.join(", ")),
                }
            }
            Self::LogTrouble {
                pod,
                container,
                why,
            } => format!("log of `{container}` in the pod `{pod}`: {why}"),
            Self::Forwarding {
                resource,
                port,
                address,
            } => format!("forwarding {address} to port {port} of {resource}"),
            Self::ForwardedTo { resource, pod } => {
                format!("connections to {resource} lead to the pod {pod}")
            }
            Self::ForwardTrouble { resource, why } => format!("forwarding {resource}: {why}"),
            Self::Synced {
                artifact,
                pod,
                copied,
                removed,
            } => format!(
                "{artifact}: {} copied to the pod {pod}, {removed} removed",
                counted(*copied, "file")
            ),
            Self::SyncTrouble { artifact, pod, why } => {
                let place = match pod.as_str() {
                    "" => String::new(),
                    pod => format!(" into the pod `{pod}`"),
                };
                format!("cannot copy files of `{artifact}`{place}, it is built instead: {why}")
            }
        }
    }

    /// What it is about in the journal of the session; `None` for what is not kept there: lines of logs belong to the cluster.
    fn key(&self) -> Option<String> {
        match self {
            Self::Log { .. } => None,
            Self::Polling { .. } | Self::Changed { .. } => Some("files".to_owned()),
            Self::LogTrouble { pod, .. } => Some(format!("log/{pod}")),
            Self::Forwarding { resource, .. }
            | Self::ForwardedTo { resource, .. }
            | Self::ForwardTrouble { resource, .. } => Some(format!("forward/{resource}")),
            Self::Synced { artifact, .. } | Self::SyncTrouble { artifact, .. } => {
                Some(format!("sync/{artifact}"))
            }
        }
    }
}

/// Where events go.
#[derive(Debug, Clone)]
pub struct DevEvents {
    sender: Sender<DevEvent>,
    journal: Option<Publisher<DevEvent>>,
}

impl DevEvents {
    /// Events, and who reads them.
    pub fn channel() -> (Self, Receiver<DevEvent>) {
        let (sender, receiver) = channel(WAITING);
        let journal = None;
        (Self { sender, journal }, receiver)
    }

    /// The same, kept in a journal as well.
    #[must_use]
    pub fn kept_in(self, journal: &Journal) -> Self {
        Self {
            journal: Some(journal.publisher()),
            ..self
        }
    }

    /// Tells of something, and waits if the reader is slow.
    pub async fn send(&self, event: DevEvent) {
        self.keep(&event);
        // Without a reader the session is over.
        let _ = self.sender.send(event).await;
    }

    /// Tells of something without waiting; it is dropped if the reader is far behind.
    pub fn tell(&self, event: DevEvent) {
        self.keep(&event);
        let _ = self.sender.try_send(event);
    }

    /// Writes an event into the journal, if it is kept there.
    fn keep(&self, event: &DevEvent) {
        if let (Some(journal), Some(key)) = (&self.journal, event.key())
            && let Err(error) = journal.publish(key.as_str(), event)
        {
            tracing::warn!(%error, "an event of the session is not in its journal");
        }
    }
}
