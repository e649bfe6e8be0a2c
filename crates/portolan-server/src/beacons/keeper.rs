//! Looks after all beacons, on the server that owns the shard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portolan_agent::wire::server_message::Message;
use portolan_agent::wire::{
    BeaconAck, BeaconEvents, BeaconOrders, BeaconStates, CronOrders, CronStates,
};
use portolan_kinds::find_kind;
use portolan_store::Ownership;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::agent_jobs::AgentJobs;
use super::intake;
use super::selection::BeaconView;
use crate::error::ApiError;
use crate::node_access::{NodeIdentity, NodeScope};
use crate::objects::Author;
use crate::peer::node_key;
use crate::runs::StandingBooks;
use crate::server::ApiServer;

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
    /// The schedules that it keeps did something.
    Kept(Arc<NodeIdentity>, CronStates),
}

/// Looks after all beacons.
pub(crate) struct BeaconKeeper {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) inputs: mpsc::Receiver<BeaconInput>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// What is under way.
#[derive(Default)]
struct Deliveries {
    /// What nodes were told to watch, and which schedules they keep, by their uuids.
    ordered: BTreeMap<String, (BeaconOrders, CronOrders)>,
    /// Nodes whose events are being written, with what came from them meanwhile: one message of a node at a time, so that
    /// an event that was sent twice is written once.
    writing: BTreeMap<String, Option<BeaconEvents>>,
    tasks: JoinSet<(Arc<NodeIdentity>, String, Option<u64>)>,
}

impl BeaconKeeper {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut under_way = Deliveries::default();
        let mut books = StandingBooks::new(Arc::clone(&self.server));
        let mut revisions = self.server.cache.subscribe();
        let mut look = Some(Instant::now());
        loop {
            tokio::select! {
                input = self.inputs.recv() => match input {
                    Some(input) => {
                        if let BeaconInput::Connected(node) = &input {
                            under_way.ordered.remove(&node.uid);
                            sooner(&mut look, Instant::now());
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
                    sooner(&mut look, Instant::now() + COLLECT);
                }
                () = books.next() => sooner(&mut look, Instant::now()),
                () = sleep_until(look) => look = self.give_orders(&mut under_way, &mut books),
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
            BeaconInput::Seen(node, seen) => {
                let states = intake::states(&self.server.cache, &self.scope(&node), &seen.states);
                self.keep_status(&node, "beacons", states).await;
            }
            BeaconInput::Kept(node, kept) => {
                let jobs = intake::cron_jobs(&self.server.cache, &self.scope(&node), &kept.jobs);
                self.keep_status(&node, "cronJobs", jobs).await;
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
        let (events, scope) = (self.server.events.clone(), self.scope(&node));
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
            self.server.agents.send(&node.uid, ack);
        }
        if let Some(told) = waiting {
            self.write(node, told, under_way);
        }
    }

    async fn keep_status(&self, node: &Arc<NodeIdentity>, field: &str, states: Value) {
        if let Err(error) = self.write_status(node, field, &states).await {
            tracing::warn!(%error, node = node.name, "what a node tells of itself cannot be kept");
        }
    }

    async fn write_status(
        &self,
        node: &Arc<NodeIdentity>,
        field: &str,
        states: &Value,
    ) -> Result<(), ApiError> {
        let Some(author) = self.author() else {
            return Ok(());
        };
        let key = node_key(&node.name)?;
        let changed = self.server.objects.change_status(&key, &author, |stored| {
            let mut status = stored.status.clone();
            if stored.metadata.uuid.as_deref() == Some(node.uid.as_str()) {
                if !status.is_object() {
                    status = json!({});
                }
                status[field] = states.clone();
            }
            Ok(status)
        });
        changed.await?;
        Ok(())
    }

    /// Tells the connected nodes what to watch and which schedules to keep, where that has changed. Gives when to look again
    /// although nothing changes.
    fn give_orders(
        &self,
        under_way: &mut Deliveries,
        books: &mut StandingBooks,
    ) -> Option<Instant> {
        let (cache, agents) = (&self.server.cache, &self.server.agents);
        let connected = agents.connected();
        under_way.ordered.retain(|uid, _| connected.contains(uid));
        self.server.kept_files.retain(&connected);
        let kind = find_kind("Node")?;
        let (beacons, jobs) = (BeaconView::new(cache), AgentJobs::new(cache));
        let again = books.want(&beacons.books().chain(jobs.books()).collect());
        let mut round = books.round();
        for node in cache.objects(kind, None) {
            let uid = node.metadata.uuid();
            if !connected.contains(uid) {
                continue;
            }
            round.begin_node();
            let beacons = beacons.orders(&node, &mut round);
            // What cannot be said yet is said when the books were read.
            let Some((beacons, jobs)) = beacons.zip(jobs.orders(&node, &mut round)) else {
                continue;
            };
            let watched = beacons.beacons.iter().filter_map(|order| {
                let book = order.book.as_ref()?;
                Some((order.namespace.as_str(), book))
            });
            let kept = jobs.jobs.iter().flat_map(|order| {
                let books = order.books.iter();
                books.map(move |book| (order.namespace.as_str(), book))
            });
            self.server.kept_files.keep(uid, watched.chain(kept));
            let known = under_way.ordered.get(uid);
            if known.is_none_or(|(known, _)| *known != beacons) {
                agents.send(uid, Message::BeaconOrders(beacons.clone()));
            }
            if known.is_none_or(|(_, known)| *known != jobs) {
                agents.send(uid, Message::CronOrders(jobs.clone()));
            }
            under_way.ordered.insert(uid.to_owned(), (beacons, jobs));
        }
        again
    }

    fn scope(&self, node: &Arc<NodeIdentity>) -> NodeScope {
        NodeScope::new(Arc::clone(node), self.server.cache.clone())
    }
}

fn sooner(look: &mut Option<Instant>, time: Instant) {
    *look = Some(look.map_or(time, |known| known.min(time)));
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
