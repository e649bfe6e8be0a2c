//! What happens in a dev session besides builds and deployments.

use serde::Serialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many events wait to be printed; logs wait for the reader, and nothing else is that frequent.
const WAITING: usize = 1024;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// Where events go.
#[derive(Debug, Clone)]
pub struct DevEvents(Sender<DevEvent>);

impl DevEvents {
    /// Events, and who reads them.
    pub fn channel() -> (Self, Receiver<DevEvent>) {
        let (sender, receiver) = channel(WAITING);
        (Self(sender), receiver)
    }

    /// Tells of something, and waits if the reader is slow.
    pub async fn send(&self, event: DevEvent) {
        // Without a reader the session is over.
        let _ = self.0.send(event).await;
    }

    /// Tells of something without waiting; it is dropped if the reader is far behind.
    pub fn tell(&self, event: DevEvent) {
        let _ = self.0.try_send(event);
    }
}
