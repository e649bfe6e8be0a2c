//! One run that is not over: its state, and what is written and sent when something happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use portolan_agent::wire::run_report::Event;
use portolan_agent::wire::server_message::Message;
use portolan_agent::wire::{RunAck, RunOrder, RunReport, RunStop, SharedResult};
use portolan_fleet::{
    Arrival, Cancel, NodeEvent, NodeProgress, NodeReport, NodeState, Observed, ReportWindow,
    RunEffect, RunState, Stage, StepReport, advance,
};
use portolan_kinds::KindObject;
use portolan_store::blob::BlobName;
use portolan_store::{Epoch, Ownership, StoreError};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::reason;
use super::keys::{self, SEGMENT_NODES};
use super::record::{
    LargeResult, NodeRecord, RecordWrite, RunRecords, SideRecord, StoredBook, StoredNode,
    StoredPlan, StoredResult, StoredState, read_nodes, read_records,
};
use super::sealed::RunSecrets;
use super::side::SideTable;
use super::step_news::StepNews;
use crate::error::ApiError;
use crate::objects::Objects;

/// The longest diff or output of a step that is kept; the rest is cut, and said to be.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The largest report of one step that is kept, in bytes.
const MAX_STEP_BYTES: usize = 256 << 10;

/// The largest result that a step gives to other nodes, in bytes.
const MAX_RESULT_BYTES: usize = 8 << 10;

/// Bytes of one entry of a node's log.
const MAX_LOG_BYTES: usize = 300 << 10;

/// A run that is not over.
pub(super) struct ActiveRun {
    pub(super) uuid: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) plan: StoredPlan,
    pub(super) book: StoredBook,
    pub(super) nodes: Vec<StoredNode>,
    pub(super) positions: BTreeMap<String, usize>,
    secret: RunSecrets,
    peers: Value,
    pub(super) epoch: Epoch,
    pub(super) state: RunState,
    pub(super) stored: StoredState,
    /// What the store has of each node.
    kept: Vec<NodeRecord>,
    records: RunRecords,
    /// The revision at which the run was read, and how many entries of logs were written since.
    read_at: u64,
    logged: AtomicU64,
    /// When the server began to look after the run, and the time of the run then.
    since: Instant,
    before: Duration,
    pub(super) inbox: Inbox,
    /// Nodes that were sent the book over the stream that they have now.
    pub(super) informed: BTreeSet<String>,
    /// What each node was told of others over that stream.
    pub(super) told: BTreeMap<String, Value>,
    /// What steps gave to other nodes, by step and position of the node.
    pub(super) results: BTreeMap<String, BTreeMap<usize, GivenResult>>,
    /// Steps that nodes take by themselves.
    pub(super) side: SideTable,
    /// Steps that changed something or failed, and are not told yet.
    pub(super) step_news: Vec<StepNews>,
}

/// What happened since the last time.
#[derive(Default)]
pub(super) struct Inbox {
    reports: Vec<NodeReport>,
    /// Entries for the logs of nodes, by position.
    logs: BTreeMap<usize, Vec<Value>>,
    /// The reports of each node that are to be acknowledged.
    windows: BTreeMap<usize, ReportWindow>,
    shared: BTreeMap<String, GivenResult>,
    /// Results for all nodes, by step and position.
    results: BTreeMap<(String, usize), GivenResult>,
    /// Steps that nodes take by themselves, new or ended.
    pub(super) sides: BTreeMap<String, SideRecord>,
}

/// What a step gave to other nodes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GivenResult {
    /// The result.
    Value(Value),
    /// It is stored apart.
    Apart(LargeResult),
}

impl GivenResult {
    /// Reads what an agent reported; `None` if it is something else, or too large.
    fn read(shared: &SharedResult) -> Option<Self> {
        if !shared.digest.is_empty() {
            let name: BlobName = shared.digest.parse().ok()?;
            return Some(Self::Apart(LargeResult {
                digest: name.to_string(),
                sealed: shared.is_sealed,
            }));
        }
        let is_small = shared.result.len() <= MAX_RESULT_BYTES;
        let value = serde_json::from_slice(&shared.result).ok();
        value.filter(|_| is_small).map(Self::Value)
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Value(Value::Null))
    }

    /// The value and the place, as they are stored.
    fn parts(&self) -> (Value, Option<LargeResult>) {
        match self {
            Self::Value(value) => (value.clone(), None),
            Self::Apart(large) => (Value::Null, Some(large.clone())),
        }
    }
}

/// What people ask of a run, as its Run says it.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    cancel: Option<Cancel>,
    resumes: u32,
    approved_gate: u32,
}

impl Wishes {
    pub(super) fn of(run: &KindObject) -> Self {
        let cancel = match run.spec.get("cancel").and_then(Value::as_str) {
            Some("now") => Some(Cancel::Now),
            Some(_) => Some(Cancel::Drain),
            None => None,
        };
        let number = |key: &str| {
            let number = run.spec.get(key).and_then(Value::as_u64);
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.unwrap_or_default()
        };
        Self {
            cancel,
            resumes: number("resumes"),
            approved_gate: number("approvedGate"),
        }
    }
}

/// What others know that a run has to know.
pub(super) struct Surroundings {
    pub(super) connected: BTreeSet<String>,
    /// Nodes that other runs hold, with the run.
    pub(super) held: BTreeMap<String, String>,
    /// Nodes that the namespace of the run may not target any more.
    pub(super) denied: BTreeSet<String>,
}

/// A message for the agent of a node.
pub(super) struct Outgoing {
    pub(super) node: String,
    pub(super) message: Message,
}

impl ActiveRun {
    /// Reads a run from the store; `None` if there is nothing of it.
    pub(super) async fn load(
        objects: &Objects,
        run: &KindObject,
        ownership: &Ownership,
    ) -> Result<Option<Self>, ApiError> {
        let uuid = run.metadata.uuid().to_owned();
        let store = &objects.store;
        let mut records = RunRecords::default();
        let book = records.read(store, keys::book(&uuid)).await?;
        let plan: Option<StoredPlan> = records.read(store, keys::plan(&uuid)).await?;
        let stored: Option<StoredState> = records.read(store, keys::state(&uuid)).await?;
        let (Some(book), Some(plan), Some(stored)) = (book, plan, stored) else {
            return Ok(None);
        };
        let nodes = read_nodes(store, &uuid).await?;
        let mut kept: Vec<NodeRecord> = Vec::new();
        for segment in 0..nodes.len().div_ceil(SEGMENT_NODES) {
            let part: Option<Vec<NodeRecord>> =
                records.read(store, keys::segment(&uuid, segment)).await?;
            kept.extend(part.unwrap_or_default());
        }
        let secret = RunSecrets::read(objects, run).await?;
        let mut sides = Vec::new();
        for (key, side, revision) in read_records(store, keys::sides(&uuid)).await? {
            records.know(key, revision);
            sides.push(side);
        }
        let mut results: BTreeMap<String, BTreeMap<usize, GivenResult>> = BTreeMap::new();
        for (key, result, revision) in read_records(store, keys::results(&uuid)).await? {
            let result: StoredResult = result;
            records.know(key, revision);
            let of_step = results.entry(result.step).or_default();
            let given = match result.large {
                Some(large) => GivenResult::Apart(large),
                None => GivenResult::Value(result.value),
            };
            of_step.insert(result.node, given);
        }
        let mut state = stored.run.clone();
        for (node, record) in nodes.iter().zip(&kept) {
            let mut progress = record.progress.clone();
            if let NodeProgress::Working { heard, .. } = &mut progress {
                // It may have been there until the server ended.
                *heard = stored.elapsed;
            }
            state.nodes.insert(node.uuid.clone(), progress);
        }
        let positions = nodes.iter().enumerate();
        let peers = if plan.wants_peers {
            nodes.iter().map(|node| node.about.clone()).collect()
        } else {
            json!([])
        };
        Ok(Some(Self {
            name: run.name().to_owned(),
            namespace: run.namespace().unwrap_or_default().to_owned(),
            positions: positions
                .map(|(position, node)| (node.uuid.clone(), position))
                .collect(),
            secret,
            peers,
            epoch: ownership.epoch,
            state,
            before: stored.elapsed,
            since: Instant::now(),
            read_at: store.status().await?.revision,
            logged: AtomicU64::new(0),
            stored,
            kept,
            records,
            inbox: Inbox::default(),
            informed: BTreeSet::new(),
            told: BTreeMap::new(),
            results,
            side: SideTable::of(sides),
            step_news: Vec::new(),
            uuid,
            plan,
            book,
            nodes,
        }))
    }

    pub(super) fn is_check(&self) -> bool {
        self.plan.is_check
    }

    /// Nodes that no other run may change.
    pub(super) fn held_nodes(&self) -> impl Iterator<Item = &String> {
        let nodes = self.state.nodes.iter().filter(|_| !self.plan.is_check);
        let is_held = |progress: &NodeProgress| {
            matches!(
                progress,
                NodeProgress::Working { .. } | NodeProgress::Waiting { .. }
            )
        };
        let held: Vec<&String> = nodes
            .filter(move |(_, progress)| is_held(progress))
            .map(|(node, _)| node)
            .collect();
        // Who takes steps for others is held as long as one of them may ask.
        let delegates = self.plan.run.delegates.iter().filter(|_| !held.is_empty());
        let delegates: Vec<&String> = delegates.collect();
        held.into_iter().chain(delegates)
    }

    pub(super) fn has_node(&self, node: &str) -> bool {
        self.stored_node(node).is_some()
    }

    /// Whether a file came with the book.
    pub(super) fn has_file(&self, digest: &str) -> bool {
        self.book.files.values().any(|known| known == digest)
    }

    /// Whether a node has anything to do in the run.
    pub(super) fn needs(&self, node: &str) -> bool {
        self.is_at_work(node) || self.side.is_at_work(node)
    }

    /// Whether a node still has a part to take.
    pub(super) fn is_at_work(&self, node: &str) -> bool {
        let progress = self.state.nodes.get(node);
        matches!(
            progress,
            Some(NodeProgress::Working { .. } | NodeProgress::Waiting { .. })
        )
    }

    pub(super) fn stage(&self) -> &Stage {
        &self.state.stage
    }

    /// The nodes of the run, and those that take steps for them.
    pub(super) fn all_nodes(&self) -> impl Iterator<Item = &String> {
        self.plan.run.nodes.iter().chain(&self.plan.run.delegates)
    }

    /// The gate that the run has come to, from 1; 0 before the first.
    pub(super) fn gate_number(&self) -> u32 {
        self.state.gate.number
    }

    /// What the run waits for, or why it was stopped.
    pub(super) fn reason(&self) -> Option<String> {
        reason(&self.state)
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state.stage, Stage::Ended(_))
    }

    pub(super) fn batch(&self) -> usize {
        self.state.batch
    }

    /// How many nodes ended in each state.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, u32> {
        let mut counts = BTreeMap::new();
        for progress in self.state.nodes.values() {
            if let NodeProgress::Done(end) = progress {
                let word = match end {
                    portolan_fleet::NodeEnd::State(state) => state.word(),
                    portolan_fleet::NodeEnd::NotBegun => "skipped",
                };
                *counts.entry(word).or_default() += 1;
            }
        }
        counts
    }

    pub(super) fn now(&self) -> Duration {
        self.before + self.since.elapsed()
    }

    /// A node whose agent is gone was heard of until now.
    pub(super) fn left(&mut self, node: &str) {
        self.forget_stream(node);
        if let Some(NodeProgress::Working { phase, .. }) = self.state.nodes.get(node) {
            self.inbox.reports.push(NodeReport {
                node: node.to_owned(),
                phase: *phase,
                event: NodeEvent::Alive,
            });
        }
    }

    fn forget_stream(&mut self, node: &str) {
        self.informed.remove(node);
        self.told.remove(node);
        self.side.forget_stream(node);
    }

    /// What a node that has just connected has to know.
    pub(super) fn order_for(&mut self, node: &str) -> Option<Outgoing> {
        self.forget_stream(node);
        match self.state.nodes.get(node)? {
            NodeProgress::Working { phase, .. } => Some(self.order(node, *phase)),
            _ => None,
        }
    }

    /// Takes a report. Gives an acknowledgement of what the store has already.
    pub(super) fn take(&mut self, node: &str, report: RunReport) -> Option<Outgoing> {
        let position = *self.positions.get(node)?;
        let kept = self.kept.get(position)?;
        let kept = kept.window;
        let mut window = self.inbox.windows.get(&position).copied().unwrap_or(kept);
        match window.take(report.session, report.number) {
            Arrival::New => {}
            Arrival::Again if kept.has(report.session, report.number) => {
                return Some(self.acknowledgement(node, kept));
            }
            Arrival::Again | Arrival::Gap => return None,
        }
        self.inbox.windows.insert(position, window);
        let is_late = !matches!(
            self.state.nodes.get(node),
            Some(NodeProgress::Working { .. })
        );
        let event = match report.event? {
            Event::Step(record) => {
                self.keep_step(position, &record, is_late);
                NodeEvent::Alive
            }
            Event::Shared(shared) => {
                if let (false, Some(result)) = (is_late, GivenResult::read(&shared)) {
                    self.keep_result(node, position, shared.step, result);
                }
                NodeEvent::Alive
            }
            Event::Wants(step) if self.plan.run.throttles.contains_key(&step) => {
                NodeEvent::WantsPermit(step)
            }
            Event::Gives(step) => NodeEvent::GivesPermit(step),
            Event::Wants(_) => NodeEvent::Alive,
            Event::AtBarrier(at) => NodeEvent::AtBarrier {
                barrier: at.barrier as usize,
                state: NodeState::read(&at.state).unwrap_or(NodeState::Unknown),
            },
            Event::Ended(ended) => {
                let entry = json!({"ended": {"owed": ended.owed, "stopped": ended.stopped}, "late": is_late});
                self.inbox.logs.entry(position).or_default().push(entry);
                NodeEvent::Ended(NodeState::read(&ended.state).unwrap_or(NodeState::Unknown))
            }
        };
        if event != NodeEvent::Alive {
            self.inbox.reports.push(NodeReport {
                node: node.to_owned(),
                phase: report.phase as usize,
                event,
            });
        }
        None
    }

    /// What a step gave: to all nodes behind a barrier, or from the first node to the others.
    fn keep_result(&mut self, node: &str, position: usize, step: String, result: GivenResult) {
        if self.plan.gathered.contains(&step) && !result.is_null() {
            let key = (step.clone(), position);
            self.inbox.results.insert(key, result.clone());
        }
        if self.state.first.as_deref() == Some(node) {
            self.inbox.shared.insert(step, result);
        }
    }

    fn keep_step(&mut self, position: usize, record: &[u8], is_late: bool) {
        let step = serde_json::from_slice::<Value>(record).ok();
        let Some(mut step) = step.as_ref().and_then(StepReport::read) else {
            tracing::warn!(run = self.name, "a report of a step cannot be read");
            return;
        };
        step.diff = step.diff.map(cut);
        if let Some(error) = &mut step.error {
            error.output = error.output.take().map(cut);
        }
        let mut record = step.to_record();
        if record.to_string().len() > MAX_STEP_BYTES {
            step.changes.clear();
            step.item = None;
            step.notes = vec!["the report of this step was too long to be kept whole".to_owned()];
            record = step.to_record();
        }
        self.note_step(position, &step);
        let mut entry = json!({"step": record});
        if is_late {
            entry["late"] = true.into();
        }
        self.inbox.logs.entry(position).or_default().push(entry);
    }

    /// Goes on as far as possible: writes what changed, then says what to send. `None` when this server does not own the run
    /// any more.
    pub(super) async fn go_on(
        &mut self,
        objects: &Objects,
        ownership: &Ownership,
        around: &Surroundings,
        wishes: &Wishes,
    ) -> Result<Option<Vec<Outgoing>>, StoreError> {
        self.judge_sides(around);
        let observed = Observed {
            now: self.now(),
            reports: self.inbox.reports.clone(),
            held: around.held.clone(),
            connected: around.connected.clone(),
            gate: self.gate_reply(),
            approved_gate: wishes.approved_gate,
            denied: around.denied.clone(),
            cancel: wishes.cancel.filter(|_| self.state.cancel != wishes.cancel),
            resume: wishes.resumes > self.stored.resumes,
        };
        let (state, effects) = advance(&self.plan.run, &self.state, &observed);
        let mut stored = StoredState {
            run: state.clone(),
            elapsed: self.stored.elapsed,
            shared: self.stored.shared.clone(),
            large: self.stored.large.clone(),
            resumes: wishes.resumes,
        };
        stored.run.nodes.clear();
        for (step, given) in &self.inbox.shared {
            let is_known = stored.large.contains_key(step)
                || stored
                    .shared
                    .get(step)
                    .is_some_and(|known| !known.is_null());
            if given.is_null() && is_known {
                // An agent that was restarted may not know any more what it gave.
                continue;
            }
            let (value, large) = given.parts();
            stored.large.remove(step);
            stored.shared.remove(step);
            match large {
                Some(large) => {
                    stored.large.insert(step.clone(), large);
                }
                None => {
                    stored.shared.insert(step.clone(), value);
                }
            }
        }
        for effect in &effects {
            if let RunEffect::Deny(node) = effect {
                self.log_denied(node);
            }
        }
        let (writes, kept) = self.writes(&state, &mut stored)?;
        if !writes.is_empty() {
            portolan_agent::failpoint("server-run-writing");
            let fence = ownership.fence();
            if !self
                .records
                .write(&objects.store, Some(&fence), writes)
                .await?
            {
                return Ok(None);
            }
            portolan_agent::failpoint("server-run-written");
        }
        self.state = state;
        self.stored = stored;
        self.kept = kept;
        self.take_results();
        let news = self.tell_news();
        let mut outgoing = self.outgoing(effects);
        if !self.inbox.sides.is_empty() {
            // The gate was asked just now: its question is written before it is sent.
            if !self.write_sides(objects, ownership).await? {
                return Ok(None);
            }
        }
        // Nodes that have the book hear what others did before they go on.
        outgoing.splice(0..0, news);
        outgoing.extend(self.tell_news());
        outgoing.extend(self.tell_sides(around));
        if self.has_ended() {
            outgoing.extend(self.stop_sides(false));
        }
        Ok(Some(outgoing))
    }

    /// What steps gave is seen by other nodes once it is written.
    fn take_results(&mut self) {
        for ((step, node), value) in std::mem::take(&mut self.inbox.results) {
            self.results.entry(step).or_default().insert(node, value);
        }
    }

    /// Writes steps that nodes take by themselves. What is not written is not sent, and asked for again.
    async fn write_sides(
        &mut self,
        objects: &Objects,
        ownership: &Ownership,
    ) -> Result<bool, StoreError> {
        let sides = std::mem::take(&mut self.inbox.sides);
        let mut writes = Vec::new();
        for (id, side) in &sides {
            writes.push(RecordWrite::new(keys::side(&self.uuid, id), side)?);
        }
        let fence = ownership.fence();
        portolan_agent::failpoint("server-run-writing");
        let store = &objects.store;
        let written = self.records.write(store, Some(&fence), writes).await;
        if !matches!(written, Ok(true)) {
            self.inbox.sides = sides;
        }
        portolan_agent::failpoint("server-run-written");
        written
    }

    /// Says in the log of a node why it was sent nothing.
    fn log_denied(&mut self, node: &str) {
        let Some(position) = self.positions.get(node).copied() else {
            return;
        };
        let reason = "the namespace of the run may not target the node any more";
        let entry = json!({"ended": {"owed": [], "stopped": reason}});
        self.inbox.logs.entry(position).or_default().push(entry);
    }

    /// What has to be written, nodes before the run: a run that goes on from what it finds decides the same again.
    fn writes(
        &self,
        state: &RunState,
        stored: &mut StoredState,
    ) -> Result<(Vec<RecordWrite>, Vec<NodeRecord>), StoreError> {
        let mut kept = self.kept.clone();
        let mut writes = Vec::new();
        for (position, entries) in &self.inbox.logs {
            for part in parts_of(entries) {
                // Counted also if the write fails: the same key is never written twice.
                let number = self.logged.fetch_add(1, Ordering::Relaxed);
                let key = keys::log(&self.uuid, *position, self.read_at, number);
                writes.push(RecordWrite::new(key, &part)?);
            }
        }
        for ((step, node), value) in &self.inbox.results {
            let key = keys::result(&self.uuid, step, *node);
            let (value, large) = value.parts();
            let result = StoredResult {
                step: step.clone(),
                node: *node,
                value,
                large,
            };
            writes.push(RecordWrite::new(key, &result)?);
        }
        for (id, side) in &self.inbox.sides {
            writes.push(RecordWrite::new(keys::side(&self.uuid, id), side)?);
        }
        for (position, window) in &self.inbox.windows {
            if let Some(record) = kept.get_mut(*position) {
                record.window = *window;
            }
        }
        for (node, record) in self.nodes.iter().zip(&mut kept) {
            if let Some(progress) = state.nodes.get(&node.uuid) {
                record.progress = progress.clone();
            }
        }
        let segments = kept
            .chunks(SEGMENT_NODES)
            .zip(self.kept.chunks(SEGMENT_NODES));
        for (segment, (new, old)) in segments.enumerate() {
            if new != old {
                writes.push(RecordWrite::new(keys::segment(&self.uuid, segment), &new)?);
            }
        }
        if *stored != self.stored || !writes.is_empty() {
            stored.elapsed = self.now();
            writes.push(RecordWrite::new(keys::state(&self.uuid), stored)?);
        }
        Ok((writes, kept))
    }

    /// What may be sent now that everything is written: acknowledgements, then orders.
    fn outgoing(&mut self, effects: Vec<RunEffect>) -> Vec<Outgoing> {
        let inbox = std::mem::take(&mut self.inbox);
        let mut outgoing = Vec::new();
        for (position, window) in inbox.windows {
            if let Some(node) = self.nodes.get(position) {
                outgoing.push(self.acknowledgement(&node.uuid, window));
            }
        }
        let mut ends_sides = false;
        for effect in effects {
            match effect {
                RunEffect::Dispatch { node, phase } => outgoing.push(self.order(&node, phase)),
                RunEffect::Stop { node, how } => {
                    // Steps for others are current steps of those: they end if those do.
                    ends_sides |= how == Cancel::Now;
                    let how = if how == Cancel::Now {
                        How::Now
                    } else {
                        How::OwnPart
                    };
                    outgoing.push(stop(&node, &self.uuid, self.epoch, how));
                }
                // A node that waits at a barrier has to be told that it is over; one that reported its end knows.
                RunEffect::Release(node) => {
                    outgoing.push(stop(&node, &self.uuid, self.epoch, How::OwnPart));
                }
                RunEffect::AskGate { question } => self.ask_gate(question),
                // Who holds a node is seen in the states of all runs; permits are part of the news.
                RunEffect::Reserve(_) | RunEffect::Permit { .. } | RunEffect::Deny(_) => {}
            }
        }
        if ends_sides {
            outgoing.extend(self.stop_sides(true));
        }
        outgoing
    }

    fn acknowledgement(&self, node: &str, window: ReportWindow) -> Outgoing {
        Outgoing {
            node: node.to_owned(),
            message: Message::RunAck(RunAck {
                run: self.uuid.clone(),
                session: window.session,
                number: window.number,
            }),
        }
    }

    /// Tells a node to end its part.
    pub(super) fn stop(&self, node: &str, now: bool) -> Outgoing {
        let how = if now { How::Now } else { How::Drain };
        stop(node, &self.uuid, self.epoch, how)
    }

    /// Ends the steps that nodes take for others.
    fn stop_sides(&self, now: bool) -> Vec<Outgoing> {
        let nodes = self.side.nodes();
        nodes.iter().map(|node| self.stop(node, now)).collect()
    }

    /// Lets a node go as far as a phase. Who has the book is not sent it again: nodes in lockstep get an order for each step.
    fn order(&mut self, node: &str, phase: usize) -> Outgoing {
        let mut order = RunOrder {
            run: self.uuid.clone(),
            name: self.name.clone(),
            incarnation: self.epoch.incarnation,
            revision: self.epoch.create_revision,
            phase: u32::try_from(phase).unwrap_or(u32::MAX),
            ..RunOrder::default()
        };
        if self.informed.insert(node.to_owned()) {
            self.add_book(node, &mut order);
        }
        Outgoing {
            node: node.to_owned(),
            message: Message::RunOrder(order),
        }
    }

    pub(super) fn add_book(&self, node: &str, order: &mut RunOrder) {
        let about = self.stored_node(node);
        let mut inputs = self.plan.inputs.clone();
        inputs.extend(self.secret.inputs.clone());
        let mut variables = about.map(|node| node.variables.clone());
        if let (Some(variables), Some(secret)) = (&mut variables, self.secret.variables.get(node)) {
            variables.extend(secret.clone());
        }
        let values = json!({
            "inputs": inputs, "variables": variables, "secretVariables": self.plan.secret_variables, "node": about.map(|node| &node.about),
            "peers": self.peers, "nodes": self.plan.known_nodes, "tags": self.plan.tags, "skipTags": self.plan.skip_tags,
            "isFirst": self.state.first.as_deref() == Some(node), "plan": about.and_then(|node| node.plan.as_ref()),
            "isExec": self.plan.is_exec,
        });
        order.file.clone_from(&self.book.file);
        order.book = self.book.text.clone().into();
        order.digest.clone_from(&self.plan.digest);
        order.is_check = self.plan.is_check;
        order.values = values.to_string().into();
        order.files = self.book.files.clone().into_iter().collect();
    }
}

/// How a node is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Its own part ends after the current step; steps for others go on.
    OwnPart,
    /// Everything ends after the current steps.
    Drain,
    /// Current steps are ended, too.
    Now,
}

/// Tells a node to end its part of a run.
pub(super) fn stop(node: &str, run: &str, epoch: Epoch, how: How) -> Outgoing {
    Outgoing {
        node: node.to_owned(),
        message: Message::RunStop(RunStop {
            run: run.to_owned(),
            incarnation: epoch.incarnation,
            revision: epoch.create_revision,
            now: how == How::Now,
            side: how != How::OwnPart,
        }),
    }
}

/// Cuts entries into parts that fit into a value.
fn parts_of(entries: &[Value]) -> Vec<Vec<&Value>> {
    let mut parts: Vec<Vec<&Value>> = Vec::new();
    let mut bytes = usize::MAX;
    for entry in entries {
        let length = entry.to_string().len();
        if bytes.saturating_add(length) > MAX_LOG_BYTES {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(last) = parts.last_mut() {
            last.push(entry);
        }
    }
    parts
}

fn cut(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    format!(
        "{}\n… {} bytes more",
        text.get(..end).unwrap_or_default(),
        text.len() - end
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_cut_into_parts_that_fit() {
        let large = json!({"text": "x".repeat(MAX_LOG_BYTES / 2)});
        let entries = [large.clone(), json!(1), large.clone(), large];
        let parts = parts_of(&entries);
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
        assert!(parts_of(&[]).is_empty());
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(cut("short".to_owned()), "short");
        let long = cut("ä".repeat(MAX_TEXT_BYTES));
        assert!(long.len() < MAX_TEXT_BYTES + 40 && long.ends_with("bytes more"));
    }
}
