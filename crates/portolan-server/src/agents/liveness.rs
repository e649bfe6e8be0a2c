//! Decides from what agents are heard to say which nodes are there, and writes changes into the status of the Nodes.
//! What is written is told as events by `live/node_changes.rs`.
//!
//! Only the owner of the shard decides. A new owner takes the stored states over and gives every node time to be heard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portolan_agent::wire::server_message::Message;
use portolan_clock::{BootClock, Clock};
use portolan_detect::{
    CellKey, FleetLiveness, LivenessChange, LivenessInput, LivenessState, MassLossEnd, NodeUid,
    step,
};
use portolan_kinds::{KindObject, find_kind};
use portolan_store::Ownership;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::cell::{GossipCell, KEY_PURPOSE};
use super::hub::{AgentHub, NodeNews, StreamEnd};
use crate::cache::Cache;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::events::Events;
use crate::node_access::NodeIdentity;
use crate::objects::{Author, Objects};
use crate::peer::node_key;

/// The name that states are written under.
const AUTHOR: &str = "system:agents";

/// How long news are collected: a decision looks at all nodes.
const COLLECT: Duration = Duration::from_millis(100);

/// How long until a state that could not be written is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How much too late a decision may be. After a longer pause this server, and not the nodes, was silent.
const LATE: Duration = Duration::from_secs(2);

/// Decides and writes states of nodes.
pub(crate) struct Liveness {
    pub(crate) hub: Arc<AgentHub>,
    pub(crate) objects: Objects,
    pub(crate) events: Events,
    pub(crate) cache: Cache,
    /// The name of this server.
    pub(crate) server: String,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// What an owner knows.
struct Known {
    author: Author,
    state: FleetLiveness,
    cell: GossipCell,
    nodes: BTreeMap<NodeUid, KnownNode>,
    /// Mass losses that have no event yet.
    untold: Vec<LivenessChange>,
}

struct KnownNode {
    node: NodeIdentity,
    /// The version of its agent, until it is written.
    version: Option<String>,
    /// Whether its state has to be written.
    is_unwritten: bool,
    is_cloned: bool,
}

impl Liveness {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let ownership = self.owned.borrow_and_update().clone();
            if let Some(ownership) = ownership {
                let mut known = self.take_over(&ownership);
                tokio::select! {
                    changed = self.owned.changed() => if changed.is_err() { return },
                    () = look_after(&self.hub, &self.objects, &mut known, &self.events, &self.server) => {}
                }
            } else if self.owned.changed().await.is_err() {
                return;
            }
        }
    }

    /// The nodes that were connected once, in their stored states.
    fn take_over(&self, ownership: &Ownership) -> Known {
        let key = self.objects.sealer.as_ref();
        let key = key.and_then(|sealer| sealer.derived(KEY_PURPOSE));
        let mut known = Known {
            author: Author {
                name: AUTHOR.to_owned(),
                fence: Some(ownership.fence()),
                ..Author::default()
            },
            state: FleetLiveness::default(),
            cell: GossipCell::new(key.unwrap_or_else(CellKey::generate)),
            nodes: BTreeMap::new(),
            untold: Vec::new(),
        };
        let nodes = find_kind("Node").map_or_else(Vec::new, |kind| self.cache.objects(kind, None));
        let mut inputs = Vec::new();
        for node in nodes {
            let stored = node.status.get("state").and_then(Value::as_str);
            let Some(state) = stored.and_then(read_state) else {
                continue;
            };
            let identity = NodeIdentity {
                name: node.name().to_owned(),
                uid: node.metadata.uuid().to_owned(),
            };
            inputs.extend(known.know(&identity, state));
        }
        known.step(&inputs);
        known
    }
}

async fn look_after(
    hub: &AgentHub,
    objects: &Objects,
    known: &mut Known,
    events: &Events,
    server: &str,
) {
    let mut again = Some(Instant::now());
    loop {
        let due = known.state.next_due(BootClock.now());
        let planned = due.map(|due| Instant::now() + due.saturating_sub(BootClock.now()));
        let planned = [planned, again].into_iter().flatten().min();
        let mut news = tokio::select! {
            news = hub.news() => news,
            () = sleep_until(planned) => Vec::new(),
        };
        let late = planned.map(|planned| planned.elapsed()).unwrap_or_default();
        tokio::time::sleep(COLLECT).await;
        news.extend(hub.take_news());
        let mut inputs = Vec::new();
        if late > LATE {
            inputs.push(LivenessInput::TookOver);
        }
        for news in news {
            inputs.extend(known.take(news));
        }
        known.step(&inputs);
        if let Some((members, cell)) = known.cell.take_change() {
            for member in members {
                hub.send(&member.to_string(), Message::GossipCell(cell.clone()));
            }
        }
        let is_all_written = write_all(objects, events, known, server).await;
        again = (!is_all_written).then(|| Instant::now() + TRY_AGAIN);
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Known {
    fn know(&mut self, node: &NodeIdentity, state: LivenessState) -> Option<LivenessInput> {
        let uid: NodeUid = node.uid.parse().ok()?;
        self.nodes.entry(uid).or_insert_with(|| KnownNode {
            node: node.clone(),
            version: None,
            is_unwritten: false,
            is_cloned: false,
        });
        Some(LivenessInput::Known {
            node: uid,
            cell: self.cell.of(uid),
            state,
        })
    }

    /// What news of a node mean.
    fn take(&mut self, news: NodeNews) -> Vec<LivenessInput> {
        let Ok(uid) = news.node.uid.parse::<NodeUid>() else {
            return Vec::new();
        };
        match news.gossip {
            Some(place) => {
                self.cell.take(uid, place);
            }
            None if news.version.is_some() => self.cell.connected(uid),
            None => {}
        }
        // A node that was never here is as one that left: that it is heard makes it ready.
        let mut inputs: Vec<LivenessInput> = self
            .know(&news.node, LivenessState::Left)
            .into_iter()
            .collect();
        if let Some(known) = self.nodes.get_mut(&uid) {
            known.version = news.version.or(known.version.take());
            known.is_cloned |= news.end == Some(StreamEnd::Cloned);
        }
        if news.is_heard {
            inputs.push(LivenessInput::Heard(uid));
        }
        if let Some(accused) = news.accused {
            inputs.push(LivenessInput::Accuses {
                accuser: uid,
                accused,
            });
        }
        match news.end {
            Some(StreamEnd::Left) => inputs.push(LivenessInput::Left(uid)),
            Some(StreamEnd::Lost | StreamEnd::Cloned) => inputs.push(LivenessInput::Closed(uid)),
            None => {}
        }
        inputs
    }

    fn step(&mut self, inputs: &[LivenessInput]) {
        let state = std::mem::take(&mut self.state);
        let (state, changes) = step(state, inputs, BootClock.now());
        self.state = state;
        for change in changes {
            match change {
                LivenessChange::Node { node, to, .. } => {
                    if matches!(to, LivenessState::Down | LivenessState::Left) {
                        self.cell.remove(node);
                    }
                    if let Some(known) = self.nodes.get_mut(&node) {
                        known.is_unwritten = true;
                    }
                }
                mass_loss => self.untold.push(mass_loss),
            }
        }
    }

    fn forget(&mut self, node: NodeUid) {
        self.nodes.remove(&node);
        self.cell.remove(node);
        self.step(&[LivenessInput::Gone(node)]);
    }
}

/// Writes what is not written yet; false if something has to be tried again.
async fn write_all(objects: &Objects, events: &Events, known: &mut Known, server: &str) -> bool {
    let mut is_all = true;
    let unwritten = known
        .nodes
        .iter()
        .filter(|(_, node)| node.version.is_some() || node.is_unwritten || node.is_cloned);
    let unwritten: Vec<NodeUid> = unwritten.map(|(uid, _)| *uid).collect();
    for uid in unwritten {
        match write_node(objects, events, known, uid, server).await {
            Ok(true) => {}
            Ok(false) => known.forget(uid),
            Err(error) => {
                tracing::warn!(%error, node = %uid, "the state of a node cannot be written");
                is_all = false;
            }
        }
    }
    for change in std::mem::take(&mut known.untold) {
        if let Err(error) = create(objects, events, &known.author, mass_loss_spec(&change)).await {
            tracing::warn!(%error, "a mass loss cannot be told yet");
            known.untold.push(change);
            is_all = false;
        }
    }
    is_all
}

/// Writes what is known of a node; false if there is no such node any more.
async fn write_node(
    objects: &Objects,
    events: &Events,
    known: &mut Known,
    uid: NodeUid,
    server: &str,
) -> Result<bool, ApiError> {
    let Some(state) = known.state.state(uid) else {
        return Ok(false);
    };
    let Some(entry) = known.nodes.get_mut(&uid) else {
        return Ok(false);
    };
    let key = node_key(&entry.node.name)?;
    let mut is_there = false;
    let changed = objects.change_status(&key, &known.author, |node| {
        let mut status = node.status.clone();
        // Another node may have the name by now.
        is_there = node.metadata.uuid.as_deref() == Some(entry.node.uid.as_str());
        if is_there {
            if !status.is_object() {
                status = json!({});
            }
            status["state"] = word(state).into();
            if let Some(version) = &entry.version {
                status["agentVersion"] = version.as_str().into();
                status["connectedTo"] = server.into();
            }
        }
        Ok(status)
    });
    changed.await?;
    if !is_there {
        return Ok(false);
    }
    entry.version = None;
    entry.is_unwritten = false;
    if entry.is_cloned {
        create(objects, events, &known.author, clone_spec(&entry.node)).await?;
        entry.is_cloned = false;
    }
    Ok(true)
}

async fn create(
    objects: &Objects,
    events: &Events,
    author: &Author,
    mut spec: Value,
) -> Result<(), ApiError> {
    let kind = find_kind("Event").ok_or_else(|| ApiError::internal("no kind Event"))?;
    let kind_of_event = spec["type"].as_str().unwrap_or_default().replace('.', "-");
    let name = format!("{kind_of_event}-{}", crate::objects::new_uuid());
    spec["time"] = rfc3339(objects.time.now()).into();
    let event = KindObject::new(kind, &name, Some("system"), spec);
    events.create(event, author).await?;
    Ok(())
}

fn read_state(word: &str) -> Option<LivenessState> {
    Some(match word {
        "ready" => LivenessState::Ready,
        "link-lost" => LivenessState::LinkLost,
        "suspect" => LivenessState::Suspect,
        "down" => LivenessState::Down,
        "left" => LivenessState::Left,
        // It was enrolled, and has never connected.
        _ => return None,
    })
}

fn word(state: LivenessState) -> &'static str {
    match state {
        LivenessState::Ready => "ready",
        LivenessState::LinkLost => "link-lost",
        LivenessState::Suspect => "suspect",
        LivenessState::Down => "down",
        LivenessState::Left => "left",
    }
}

fn clone_spec(node: &NodeIdentity) -> Value {
    json!({
        "type": "node.cloned", "severity": "error",
        "summary": "two agents use the certificate of this node; both were disconnected",
        "source": {"kind": "Node", "name": node.name},
    })
}

fn mass_loss_spec(change: &LivenessChange) -> Value {
    match change {
        LivenessChange::MassLossBegan { lost, of, .. } => json!({
            "type": "fleet.mass-loss", "severity": "error",
            "summary": format!("{lost} of {of} nodes were lost at once; none of them is called down meanwhile"),
            "data": {"lost": lost, "of": of},
        }),
        LivenessChange::MassLossEnded { cause, .. } => {
            let why = match cause {
                MassLossEnd::Returned => "enough nodes are back",
                MassLossEnd::TooLong => "it has lasted for five minutes",
                MassLossEnd::TookOver => "another server has taken over",
            };
            json!({
                "type": "fleet.mass-loss-ended", "severity": "info",
                "summary": format!("the loss of many nodes at once is over: {why}"),
            })
        }
        LivenessChange::Node { .. } => Value::Null,
    }
}
