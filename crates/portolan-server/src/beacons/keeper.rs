//! Looks after all beacons, on the server that owns the shard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portolan_agent::wire::server_message::Message;
use portolan_agent::wire::{BeaconAck, BeaconEvents, BeaconOrders, BeaconStates};
use portolan_kinds::find_kind;
use portolan_store::Ownership;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::intake;
use super::selection::BeaconView;
use crate::agents::AgentHub;
use crate::cache::Cache;
use crate::error::ApiError;
use crate::events::Events;
use crate::node_access::{NodeIdentity, NodeScope};
use crate::objects::{Author, Objects};
use crate::peer::node_key;

/// The name that events and states are written under.
const AUTHOR: &str = "system:beacons";

/// How long changes are collected before nodes are told what to watch.
const COLLECT: Duration = Duration::from_millis(300);

/// Something that an agent did.
#[derive(Debug)]
pub(crate) enum BeaconInput {
    /// It has connected.
    Connected(Arc<NodeIdentity>),
    /// Its beacons told something.
    Told(Arc<NodeIdentity>, BeaconEvents),
    /// Its beacons see something.
    Seen(Arc<NodeIdentity>, BeaconStates),
}

/// Looks after all beacons.
pub(crate) struct BeaconKeeper {
    pub(crate) objects: Objects,
    pub(crate) events: Events,
    pub(crate) cache: Cache,
    pub(crate) agents: Arc<AgentHub>,
    pub(crate) inputs: mpsc::Receiver<BeaconInput>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// What is under way.
#[derive(Default)]
struct Deliveries {
    /// What nodes were told to watch, by their uuids.
    ordered: BTreeMap<String, BeaconOrders>,
    /// Nodes whose events are being written, with what came from them meanwhile: one message of a node at a time, so that
    /// an event that was sent twice is written once.
    writing: BTreeMap<String, Option<BeaconEvents>>,
    tasks: JoinSet<(Arc<NodeIdentity>, String, Option<u64>)>,
}

impl BeaconKeeper {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut under_way = Deliveries::default();
        let mut revisions = self.cache.subscribe();
        let mut look = Some(Instant::now());
        loop {
            tokio::select! {
                input = self.inputs.recv() => match input {
                    Some(input) => {
                        if let BeaconInput::Connected(node) = &input {
                            under_way.ordered.remove(&node.uid);
                            look.get_or_insert(Instant::now());
                        }
                        self.take(input, &mut under_way).await;
                    }
                    None => return,
                },
                changed = revisions.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    revisions.borrow_and_update();
                    look.get_or_insert(Instant::now() + COLLECT);
                }
                () = sleep_until(look) => {
                    look = None;
                    self.give_orders(&mut under_way);
                }
                Some(ended) = under_way.tasks.join_next() => match ended {
                    Ok((node, spool, number)) => self.written(node, spool, number, &mut under_way),
                    Err(error) => {
                        tracing::error!(%error, "events of beacons were not written");
                        // Agents send them again.
                        under_way.tasks.abort_all();
                        under_way.writing.clear();
                    }
                },
            }
        }
    }

    /// Who writes, while this server owns the shard.
    fn author(&self) -> Option<Author> {
        let ownership = self.owned.borrow().clone()?;
        Some(Author {
            name: AUTHOR.to_owned(),
            fence: Some(ownership.fence()),
            ..Author::default()
        })
    }

    async fn take(&self, input: BeaconInput, under_way: &mut Deliveries) {
        match input {
            BeaconInput::Connected(_) => {}
            BeaconInput::Told(node, events) => self.write(node, events, under_way),
            BeaconInput::Seen(node, states) => {
                if let Err(error) = self.keep_states(&node, &states).await {
                    tracing::warn!(%error, node = node.name, "what beacons see cannot be kept");
                }
            }
        }
    }

    /// Begins to write events of a node, or lets them wait for those that are being written.
    fn write(&self, node: Arc<NodeIdentity>, told: BeaconEvents, under_way: &mut Deliveries) {
        // An agent that gets no answer sends them again, to the new owner.
        let Some(author) = self.author() else { return };
        if let Some(waiting) = under_way.writing.get_mut(&node.uid) {
            *waiting = Some(told);
            return;
        }
        under_way.writing.insert(node.uid.clone(), None);
        let (events, scope) = (self.events.clone(), self.scope(&node));
        under_way.tasks.spawn(async move {
            let number = intake::write_events(&events, &author, &node, &scope, &told).await;
            (node, told.spool, number)
        });
    }

    fn written(
        &self,
        node: Arc<NodeIdentity>,
        spool: String,
        number: Option<u64>,
        under_way: &mut Deliveries,
    ) {
        let waiting = under_way.writing.remove(&node.uid).flatten();
        if let Some(number) = number {
            let ack = Message::BeaconAck(BeaconAck { spool, number });
            self.agents.send(&node.uid, ack);
        }
        if let Some(told) = waiting {
            self.write(node, told, under_way);
        }
    }

    async fn keep_states(
        &self,
        node: &Arc<NodeIdentity>,
        seen: &BeaconStates,
    ) -> Result<(), ApiError> {
        let Some(author) = self.author() else {
            return Ok(());
        };
        let states = intake::states(&self.cache, &self.scope(node), &seen.states);
        let key = node_key(&node.name)?;
        let changed = self.objects.change_status(&key, &author, |stored| {
            let mut status = stored.status.clone();
            if stored.metadata.uuid.as_deref() == Some(node.uid.as_str()) {
                if !status.is_object() {
                    status = json!({});
                }
                status["beacons"] = states.clone();
            }
            Ok(status)
        });
        changed.await?;
        Ok(())
    }

    /// Tells the connected nodes what to watch, where that has changed.
    fn give_orders(&self, under_way: &mut Deliveries) {
        let connected = self.agents.connected();
        under_way.ordered.retain(|uid, _| connected.contains(uid));
        let Some(kind) = find_kind("Node") else {
            return;
        };
        let view = BeaconView::new(&self.cache);
        for node in self.cache.objects(kind, None) {
            let uid = node.metadata.uuid();
            if !connected.contains(uid) {
                continue;
            }
            let orders = view.orders(&node);
            if under_way.ordered.get(uid) != Some(&orders) {
                let message = Message::BeaconOrders(orders.clone());
                self.agents.send(uid, message);
                under_way.ordered.insert(uid.to_owned(), orders);
            }
        }
    }

    fn scope(&self, node: &Arc<NodeIdentity>) -> NodeScope {
        NodeScope::new(Arc::clone(node), self.cache.clone())
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
