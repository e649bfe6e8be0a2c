//! Writes what the streams of agents say about their nodes into the status of the Nodes.

use std::sync::Arc;
use std::time::Duration;

use portolan_kinds::{KindObject, find_kind};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::hub::{AgentHub, LinkState, WantedState};
use crate::cache::Cache;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::events::Events;
use crate::node_access::NodeIdentity;
use crate::objects::{Author, Objects};
use crate::peer::node_key;

/// The name that states are written under.
const AUTHOR: &str = "system:agents";

/// How long agents have to come back after a start of the server, before their links count as lost.
const START_GRACE: Duration = Duration::from_mins(1);

/// How long until a state that could not be written is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Writes states of nodes.
pub(crate) struct Liveness {
    pub(crate) hub: Arc<AgentHub>,
    pub(crate) objects: Objects,
    pub(crate) events: Events,
    pub(crate) cache: Cache,
    /// The name of this server.
    pub(crate) server: String,
    /// Whether no other server can have the agents.
    pub(crate) is_alone: bool,
}

impl Liveness {
    /// Works until the future is dropped.
    pub(crate) async fn run(self) {
        let grace = tokio::time::sleep_until(Instant::now() + START_GRACE);
        tokio::pin!(grace);
        let mut is_settled = false;
        loop {
            let due = tokio::select! {
                due = self.hub.due() => due,
                () = &mut grace, if !is_settled => {
                    is_settled = true;
                    self.orphans()
                }
            };
            for wanted in due {
                if let Err(error) = self.write(&wanted).await {
                    tracing::warn!(%error, node = wanted.node.name, "the state of a node cannot be written");
                    self.hub.put_back(wanted, TRY_AGAIN);
                }
            }
        }
    }

    /// Nodes whose agent was connected to this server before it started, and has not come back.
    fn orphans(&self) -> Vec<WantedState> {
        let Some(kind) = find_kind("Node") else {
            return Vec::new();
        };
        let nodes = self.cache.objects(kind, None).into_iter();
        let lost = nodes.filter(|node| {
            node.status.get("state").and_then(Value::as_str) == Some("ready")
                && self.is_without_server(node)
        });
        let wanted = lost.map(|node| WantedState {
            node: NodeIdentity {
                name: node.name().to_owned(),
                uid: node.metadata.uuid().to_owned(),
            },
            state: LinkState::LinkLost,
            due: Instant::now(),
        });
        wanted
            .filter(|wanted| !self.hub.is_connected(&wanted.node.uid))
            .collect()
    }

    /// Whether no living server has the node's agent. Other servers look after their own.
    fn is_without_server(&self, node: &KindObject) -> bool {
        let connected = node.status.get("connectedTo").and_then(Value::as_str);
        self.is_alone || connected.is_none_or(|server| server == self.server)
    }

    async fn write(&self, wanted: &WantedState) -> Result<(), ApiError> {
        let author = Author {
            name: AUTHOR.to_owned(),
            ..Author::default()
        };
        let key = node_key(&wanted.node.name)?;
        let changed = self.objects.change_status(&key, &author, |node| {
            let mut status = node.status.clone();
            // Another node may have the name by now.
            if node.metadata.uuid.as_deref() == Some(wanted.node.uid.as_str()) {
                self.put(&mut status, &wanted.state);
            }
            Ok(status)
        });
        changed.await?;
        if wanted.state == LinkState::Cloned {
            self.report_clone(&wanted.node, &author).await?;
        }
        Ok(())
    }

    fn put(&self, status: &mut Value, state: &LinkState) {
        if !status.is_object() {
            *status = json!({});
        }
        let connected = status.get("connectedTo").and_then(Value::as_str);
        if !matches!(state, LinkState::Ready(_)) && connected != Some(self.server.as_str()) {
            // The agent has found another server meanwhile.
            return;
        }
        status["state"] = match state {
            LinkState::Ready(_) => "ready",
            LinkState::LinkLost | LinkState::Cloned => "link-lost",
            LinkState::Left => "left",
        }
        .into();
        if let LinkState::Ready(version) = state {
            status["agentVersion"] = version.as_str().into();
            status["connectedTo"] = self.server.as_str().into();
        }
    }

    async fn report_clone(&self, node: &NodeIdentity, author: &Author) -> Result<(), ApiError> {
        let kind = find_kind("Event").ok_or_else(|| ApiError::internal("no kind Event"))?;
        let summary = "two agents use the certificate of this node; both were disconnected";
        let spec = json!({
            "type": "node.cloned", "severity": "error", "summary": summary,
            "source": {"kind": "Node", "name": node.name},
            "time": rfc3339(self.objects.time.now()),
        });
        let name = format!("node-cloned-{}", crate::objects::new_uuid());
        let event = KindObject::new(kind, &name, Some("system"), spec);
        self.events.create(event, author).await?;
        Ok(())
    }
}
