//! Looks after all runs, on the server that owns the shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_agent::wire::server_message::Message;
use portolan_agent::wire::{FilePart, FileRequest, RunAck, RunReport, SideReport, SideRequest};
use portolan_fleet::{RunEnd, Stage};
use portolan_kinds::{KindObject, find_kind};
use portolan_store::{Ownership, Span, StoreError};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::active::{ActiveRun, How, Outgoing, Surroundings, Wishes, stop};
use super::files::{FileShelf, all_files, remove_file};
use super::keys;
use super::record::{StoredBook, delete_run};
use super::sealed::RunSecrets;
use super::standing::KeptFiles;
use super::target::FleetView;
use crate::agents::AgentHub;
use crate::cache::Cache;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::events::EventSink;
use crate::objects::{Author, Objects, key_of};

/// How often runs are looked at when nothing happens: times pass in any case.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long reports are collected, so that many are written at once.
const COLLECT: Duration = Duration::from_millis(10);

/// Inputs that are taken in one round.
const MAX_INPUTS: usize = 4_096;

/// How long agents have to come back after a server took over, before their nodes count as not reachable.
const RETURN_TIME: Duration = Duration::from_secs(30);

/// How many runs of a book that ended are kept.
const KEPT_RUNS: usize = 100;

/// How often records of runs that do not exist any more are looked for.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

/// The name that runs are written under.
const AUTHOR: &str = "system:runs";

/// Something that an agent did. Nodes are named by their uuids.
#[derive(Debug)]
pub(crate) enum RunInput {
    /// It has connected, and takes part in these runs.
    Connected { node: String, runs: Vec<String> },
    /// It reported something.
    Reported {
        node: String,
        report: Box<RunReport>,
    },
    /// It wants others to take a step for it.
    SideAsked { node: String, request: SideRequest },
    /// It took a step by itself.
    SideDone { node: String, report: SideReport },
    /// It needs a part of a file.
    FileAsked { node: String, request: FileRequest },
}

/// Looks after all runs.
pub(crate) struct RunController {
    pub(crate) objects: Objects,
    pub(crate) event_sink: EventSink,
    pub(crate) cache: Cache,
    pub(crate) agents: Arc<AgentHub>,
    /// Files of books that nodes keep.
    pub(crate) kept_files: Arc<KeptFiles>,
    pub(crate) inputs: mpsc::Receiver<RunInput>,
    /// Whether this server owns the shard.
    pub(crate) owned: watch::Receiver<Option<Ownership>>,
}

/// The runs of an owner.
struct OwnedRuns {
    ownership: Ownership,
    since: Instant,
    /// The nodes that had a stream when the round began.
    connected: BTreeSet<String>,
    /// By the uuid of the Run.
    runs: BTreeMap<String, ActiveRun>,
    swept: Option<Instant>,
    /// Files that no run needed at the last sweep, with the revisions of their heads.
    unneeded: BTreeMap<(String, String), u64>,
}

/// Why an owner stops to look after runs.
struct OwnershipLost;

impl RunController {
    /// Works until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let ownership = self.owned.borrow_and_update().clone();
            let mut owned = ownership.map(OwnedRuns::new);
            match &mut owned {
                Some(owned) => {
                    let OwnershipLost = self.look_after(owned).await;
                }
                // Agents send again what nobody acknowledged.
                None => self.ignore_inputs().await,
            }
        }
    }

    async fn ignore_inputs(&mut self) {
        loop {
            tokio::select! {
                changed = self.owned.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                    return;
                }
                input = self.inputs.recv() => if input.is_none() {
                    std::future::pending::<()>().await;
                },
            }
        }
    }

    async fn look_after(&mut self, owned: &mut OwnedRuns) -> OwnershipLost {
        let mut revisions = self.cache.subscribe();
        let mut inputs = Vec::new();
        loop {
            if let Err(OwnershipLost) = self.round(owned, &mut inputs).await {
                // The shard may be taken by this server again; the controllers say so.
                tokio::time::sleep(LOOK_EVERY).await;
                return OwnershipLost;
            }
            revisions.borrow_and_update();
            tokio::select! {
                _ = self.owned.changed() => return OwnershipLost,
                _ = revisions.changed() => {}
                count = self.inputs.recv_many(&mut inputs, MAX_INPUTS) => {
                    if count == 0 {
                        std::future::pending::<()>().await;
                    }
                    tokio::time::sleep(COLLECT).await;
                    while inputs.len() < MAX_INPUTS && let Ok(input) = self.inputs.try_recv() {
                        inputs.push(input);
                    }
                }
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Takes what happened, and lets every run go on as far as it can.
    async fn round(
        &mut self,
        owned: &mut OwnedRuns,
        inputs: &mut Vec<RunInput>,
    ) -> Result<(), OwnershipLost> {
        self.find_runs(owned).await;
        // Before those that are gone: a node counts as away only in a round that knows until when it was heard of. One
        // that is silent for long would be called unknown at once, while a step of it may still run.
        owned.connected = self.agents.connected();
        // Before those that came back: what was sent over the old stream is sent again.
        for node in self.agents.take_gone() {
            for run in owned.runs.values_mut() {
                run.left(&node);
            }
        }
        for input in inputs.drain(..) {
            if let RunInput::FileAsked { node, request } = input {
                self.send_file(owned, node, &request).await;
            } else {
                self.take(owned, input);
            }
        }
        let uuids: Vec<String> = owned.runs.keys().cloned().collect();
        for uuid in uuids {
            let mut around = self.surroundings(owned, &uuid);
            let Some(run) = owned.runs.get_mut(&uuid) else {
                continue;
            };
            around.denied = self.denied(run);
            let Some(object) = self.object_of(&uuid) else {
                // Somebody deleted its Run, or its namespace.
                let nodes: Vec<String> = run.held_nodes().cloned().collect();
                self.send(nodes.iter().map(|node| run.stop(node, true)));
                owned.runs.remove(&uuid);
                continue;
            };
            let wishes = Wishes::of(&object);
            match run
                .go_on(&self.objects, &owned.ownership, &around, &wishes)
                .await
            {
                Ok(Some(outgoing)) => {
                    run.tell_steps(&self.event_sink, &object);
                    self.send(outgoing);
                }
                Ok(None) => return Err(OwnershipLost),
                Err(error) => {
                    tracing::warn!(%error, run = run.name, "a run cannot be written");
                    // What it did not take in is still in its inbox.
                    continue;
                }
            }
            if let Err(error) = self.tell(owned, &uuid, &object).await {
                tracing::warn!(%error, run = object.name(), "the status of a run cannot be written");
                continue;
            }
            if owned.runs.get(&uuid).is_some_and(ActiveRun::has_ended) {
                owned.runs.remove(&uuid);
            }
        }
        self.sweep(owned).await;
        Ok(())
    }

    /// Loads runs that are new here.
    async fn find_runs(&self, owned: &mut OwnedRuns) {
        for run in self.objects_of_runs() {
            let uuid = run.metadata.uuid();
            if owned.runs.contains_key(uuid) || is_over(&run) {
                continue;
            }
            match ActiveRun::load(&self.objects, &run, &owned.ownership).await {
                Ok(Some(mut active)) => {
                    // Agents that are here know nothing of this owner yet.
                    let connected = self.agents.connected();
                    let orders = connected.iter().filter_map(|node| active.order_for(node));
                    self.send(orders.collect::<Vec<_>>());
                    owned.runs.insert(uuid.to_owned(), active);
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, run = run.name(), "a run cannot be read"),
            }
        }
    }

    fn take(&self, owned: &mut OwnedRuns, input: RunInput) {
        match input {
            RunInput::Connected { node, runs } => {
                for run in runs {
                    let known = owned.runs.get(&run);
                    if known.is_some_and(|run| run.is_at_work(&node)) {
                        continue;
                    }
                    let how = match known {
                        Some(run) if run.needs(&node) => How::OwnPart,
                        _ => How::Drain,
                    };
                    self.send([stop(&node, &run, owned.ownership.epoch, how)]);
                }
                let orders = owned
                    .runs
                    .values_mut()
                    .filter_map(|run| run.order_for(&node));
                self.send(orders.collect::<Vec<_>>());
            }
            RunInput::SideAsked { node, request } => {
                if let Some(run) = owned.runs.get_mut(&request.run) {
                    run.side_asked(&node, request);
                }
            }
            RunInput::SideDone { node, report } => {
                if let Some(run) = owned.runs.get_mut(&report.run) {
                    run.side_done(&node, &report);
                }
            }
            RunInput::FileAsked { .. } => {}
            RunInput::Reported { node, report } => match owned.runs.get_mut(&report.run) {
                Some(run) if run.has_node(&node) => {
                    let again = run.take(&node, *report);
                    self.send(again);
                }
                // The run is over, or was deleted: nobody waits for the report any more.
                _ => self.send([Outgoing {
                    node,
                    message: Message::RunAck(RunAck {
                        run: report.run,
                        session: report.session,
                        number: report.number,
                    }),
                }]),
            },
        }
    }

    /// Sends a part of a file to a node that takes part in its run, or keeps its book.
    async fn send_file(&self, owned: &OwnedRuns, node: String, request: &FileRequest) {
        let run = owned.runs.get(&request.run);
        let run = run.filter(|run| run.needs(&node) && run.has_file(&request.digest));
        let mut part = FilePart {
            digest: request.digest.clone(),
            part: request.part,
            ..FilePart::default()
        };
        let namespace = run.map(|run| run.namespace.clone());
        let kept = || self.kept_files.namespace_of(&node, &request.digest);
        if let Some(namespace) = namespace.or_else(kept) {
            let shelf = FileShelf {
                store: self.objects.store.clone(),
                namespace,
            };
            match shelf.read_part(&request.digest, request.part).await {
                Ok(Some((parts, content))) => {
                    part.parts = parts;
                    part.content = content.into();
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, run = request.run, "a file of a book cannot be read");
                    return;
                }
            }
        }
        self.agents.send(&node, Message::FilePart(part));
    }

    fn surroundings(&self, owned: &OwnedRuns, uuid: &str) -> Surroundings {
        let Some(run) = owned.runs.get(uuid) else {
            return Surroundings {
                connected: BTreeSet::new(),
                held: BTreeMap::new(),
                denied: BTreeSet::new(),
            };
        };
        let mut held = BTreeMap::new();
        if !run.is_check() {
            for other in owned.runs.values().filter(|other| other.uuid != uuid) {
                held.extend(
                    other
                        .held_nodes()
                        .map(|node| (node.clone(), other.name.clone())),
                );
            }
        }
        let mut connected = owned.connected.clone();
        if owned.since.elapsed() < RETURN_TIME {
            connected.extend(self.returning());
        }
        connected.retain(|node| run.has_node(node));
        let view = FleetView::new(&self.cache);
        let granted = view.granted(&run.namespace);
        let granted: BTreeSet<&str> = granted.iter().map(|node| node.metadata.uuid()).collect();
        let denied = run
            .all_nodes()
            .filter(|node| !granted.contains(node.as_str()));
        Surroundings {
            connected,
            held,
            denied: denied.cloned().collect(),
        }
    }

    /// Nodes of a run that its namespace may not target any more.
    fn denied(&self, run: &ActiveRun) -> BTreeSet<String> {
        let view = FleetView::new(&self.cache);
        let granted = view.granted(&run.namespace);
        let granted: BTreeSet<&str> = granted.iter().map(|node| node.metadata.uuid()).collect();
        let denied = run
            .all_nodes()
            .filter(|node| !granted.contains(node.as_str()));
        denied.cloned().collect()
    }

    /// Nodes that were connected before this server took over, and may be on their way back.
    fn returning(&self) -> Vec<String> {
        let nodes = find_kind("Node").map_or_else(Vec::new, |kind| self.cache.objects(kind, None));
        let ready = nodes
            .iter()
            .filter(|node| matches!(node.status["state"].as_str(), Some("ready" | "suspect")));
        ready.map(|node| node.metadata.uuid().to_owned()).collect()
    }

    fn send(&self, outgoing: impl IntoIterator<Item = Outgoing>) {
        for Outgoing { node, message } in outgoing {
            self.agents.send(&node, message);
        }
    }

    fn objects_of_runs(&self) -> Vec<Arc<KindObject>> {
        find_kind("Run").map_or_else(Vec::new, |kind| self.cache.objects(kind, None))
    }

    fn object_of(&self, uuid: &str) -> Option<Arc<KindObject>> {
        let runs = self.objects_of_runs();
        runs.into_iter().find(|run| run.metadata.uuid() == uuid)
    }

    /// Writes how far a run is into the status of its Run.
    async fn tell(
        &self,
        owned: &OwnedRuns,
        uuid: &str,
        object: &KindObject,
    ) -> Result<(), ApiError> {
        let Some(run) = owned.runs.get(uuid) else {
            return Ok(());
        };
        let author = Author {
            name: AUTHOR.to_owned(),
            fence: Some(owned.ownership.fence()),
            ..Author::default()
        };
        let around = self.surroundings(owned, uuid);
        let status = self.status_of(run, object, &around);
        if status == object.status {
            return Ok(());
        }
        if run.has_ended() {
            self.finish(run).await?;
        }
        self.objects
            .set_status(&key_of(object), status, &author)
            .await?;
        Ok(())
    }

    fn status_of(&self, run: &ActiveRun, object: &KindObject, around: &Surroundings) -> Value {
        let behind = around
            .held
            .values()
            .next()
            .map(|other| format!("behind the run {other}"));
        let (phase, why) = match run.stage() {
            Stage::Reserving => ("queued", behind),
            Stage::Running | Stage::Stopping { .. } => ("running", run.reason()),
            Stage::Gate => ("gate", run.reason()),
            Stage::Stalled { .. } => ("stalled", run.reason()),
            Stage::Ended(RunEnd::Succeeded) => ("succeeded", None),
            Stage::Ended(RunEnd::Failed) => (
                "failed",
                object.status["reason"].as_str().map(str::to_owned),
            ),
            Stage::Ended(RunEnd::Cancelled) => ("cancelled", None),
        };
        let mut status = json!({
            "phase": phase, "batch": run.batch(), "counts": run.counts(), "startedAt": object.status["startedAt"],
        });
        if run.gate_number() > 0 {
            status["gate"] = run.gate_number().into();
        }
        if let Some(why) = why {
            status["reason"] = why.into();
        }
        if run.has_ended() {
            status["endedAt"] = rfc3339(self.objects.time.now()).into();
        }
        status
    }

    /// Forgets the secrets of a run that has ended. That it ended is reported where its status is seen to change.
    async fn finish(&self, run: &ActiveRun) -> Result<(), ApiError> {
        RunSecrets::remove(&self.objects, &run.uuid).await?;
        Ok(())
    }

    /// Deletes old runs, and records of runs that do not exist any more.
    async fn sweep(&self, owned: &mut OwnedRuns) {
        if owned
            .swept
            .is_some_and(|swept| swept.elapsed() < SWEEP_EVERY)
        {
            return;
        }
        owned.swept = Some(Instant::now());
        if let Err(error) = self.sweep_all(&owned.ownership).await {
            tracing::warn!(%error, "old runs cannot be removed");
        }
        match self.sweep_files(&owned.unneeded).await {
            Ok(unneeded) => owned.unneeded = unneeded,
            Err(error) => tracing::warn!(%error, "old files of runs cannot be removed"),
        }
    }

    async fn sweep_all(&self, ownership: &Ownership) -> Result<(), ApiError> {
        let author = Author {
            name: AUTHOR.to_owned(),
            fence: Some(ownership.fence()),
            ..Author::default()
        };
        let mut by_book: BTreeMap<(String, String), Vec<Arc<KindObject>>> = BTreeMap::new();
        for run in self
            .objects_of_runs()
            .into_iter()
            .filter(|run| is_over(run))
        {
            let namespace = run.namespace().unwrap_or_default().to_owned();
            let book = run.spec["book"].as_str().unwrap_or_default().to_owned();
            by_book.entry((namespace, book)).or_default().push(run);
        }
        for mut runs in by_book.into_values() {
            runs.sort_by_key(|run| std::cmp::Reverse(run.metadata.creation_timestamp().to_owned()));
            for run in runs.iter().skip(KEPT_RUNS) {
                let same = crate::objects::Preconditions {
                    uuid: Some(run.metadata.uuid().to_owned()),
                    version: None,
                };
                self.objects
                    .delete(&key_of(run), run.name(), &same, &author)
                    .await?;
            }
        }
        // Records come before their Run, so only those whose Run was not just being made are old.
        let found = self.recorded().await?;
        tokio::time::sleep(Duration::ZERO).await;
        let living: BTreeSet<String> = self
            .objects_of_runs()
            .iter()
            .map(|run| run.metadata.uuid().to_owned())
            .collect();
        for uuid in found.into_iter().filter(|uuid| !living.contains(uuid)) {
            if !self.is_being_made(&uuid).await? {
                delete_run(&self.objects.store, &uuid).await?;
            }
        }
        Ok(())
    }

    /// Removes files that no run has named since the last sweep. Gives those that no run names now.
    async fn sweep_files(
        &self,
        before: &BTreeMap<(String, String), u64>,
    ) -> Result<BTreeMap<(String, String), u64>, ApiError> {
        let store = &self.objects.store;
        let mut unneeded = all_files(store).await?;
        for run in self.objects_of_runs() {
            let record = store.get(keys::book(run.metadata.uuid())).await?;
            let book = record.and_then(|record| serde_json::from_slice(&record.value).ok());
            let book: Option<StoredBook> = book;
            let namespace = run.namespace().unwrap_or_default();
            for digest in book.iter().flat_map(|book| book.files.values()) {
                unneeded.remove(&(namespace.to_owned(), digest.clone()));
            }
        }
        for file in self.kept_files.all() {
            unneeded.remove(&file);
        }
        let mut left = BTreeMap::new();
        for (file, revision) in unneeded {
            // A run that is being made has touched its files; one that is not takes no ten minutes.
            if before.get(&file) == Some(&revision) {
                remove_file(store, &file, revision).await?;
            } else {
                left.insert(file, revision);
            }
        }
        Ok(left)
    }

    async fn recorded(&self) -> Result<BTreeSet<String>, StoreError> {
        let mut found = BTreeSet::new();
        let span = Span::prefix(keys::all());
        self.objects
            .store
            .scan(&span, None, |record| {
                found.extend(keys::uuid_of(&record.key).map(str::to_owned));
                Ok(())
            })
            .await?;
        let blobs = Span::prefix(crate::keys::blobs());
        self.objects
            .store
            .scan(&blobs, None, |record| {
                found.extend(crate::keys::run_of_blob(&record.key).map(str::to_owned));
                Ok(())
            })
            .await?;
        Ok(found)
    }

    /// Whether the plan of a run without a Run is so new that its Run may still come: less than a thousand revisions old.
    async fn is_being_made(&self, uuid: &str) -> Result<bool, StoreError> {
        let Some(plan) = self.objects.store.get(keys::plan(uuid)).await? else {
            return Ok(false);
        };
        Ok(self.cache.revision().saturating_sub(plan.mod_revision) < 1_000)
    }
}

impl OwnedRuns {
    fn new(ownership: Ownership) -> Self {
        Self {
            ownership,
            since: Instant::now(),
            connected: BTreeSet::new(),
            runs: BTreeMap::new(),
            swept: None,
            unneeded: BTreeMap::new(),
        }
    }
}

/// Whether a run has ended.
pub(crate) fn is_over(run: &KindObject) -> bool {
    let phase = run.status["phase"].as_str();
    matches!(phase, Some("succeeded" | "failed" | "cancelled"))
}
