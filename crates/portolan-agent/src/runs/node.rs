//! What a run sees of this node: its machine, its journal, and what the server says about the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portolan_digest::Hasher;
use portolan_fleet::{
    Barrier, Barriers, Book, Fleet, FleetQueryError, JournalEntry, NodeHost, NodeRequest,
    NodeState, NodeStop, ResultError, SideOutcome, Step, StepJournal, StepKey, StepReport,
    StepState, Work, gather_facts,
};
use portolan_modules::{BookFiles, BootMode, Change, Host, MachineRestart, ShareError};
use portolan_object::Selector;
use serde_json::{Map, Value};

use super::NodeEvent;
use super::control::{Given, RunControl, StopReason};
use super::order::{OrderValues, mode_of};
use super::worker::Worker;
use crate::failpoint::failpoint;
use crate::shares::{LargeResult, NodeShares, RunShares};
use crate::shim::JobState;
use crate::wire::run_report::Event;
use crate::wire::{AtBarrier, SharedResult, SideRequest};

/// The largest result that is reported to the server; it keeps larger ones apart.
const MAX_SHARED_BYTES: usize = 8 << 10;

/// This node, as a run sees it.
pub(super) struct AgentNode<'a> {
    worker: &'a Worker,
    host: Host,
    barriers: Barriers,
    fleet: FrozenFleet,
    is_first: bool,
    /// Steps whose results other steps read, here or on other nodes.
    read_results: BTreeSet<String>,
    /// Whether one step is taken by itself: what it reports is no part of this node's.
    pub(super) is_side: bool,
    /// Whether the steps are only looked at before a run: nobody is told, and no other node is asked.
    is_rehearsal: bool,
    journal: Option<&'a mut StepJournal>,
    /// Every step, as it was last reported.
    reports: Vec<StepReport>,
    began: Instant,
}

impl<'a> AgentNode<'a> {
    pub(super) fn new(
        worker: &'a Worker,
        book: &Book,
        values: &OrderValues,
        files: Arc<dyn BookFiles>,
        journal: Option<&'a mut StepJournal>,
    ) -> Self {
        let mut host = Host::local(Arc::clone(&worker.settings.root));
        host.book_files = files;
        host.book.clone_from(&book.name);
        host.shares = Arc::new(RunShares {
            shares: Arc::clone(&worker.settings.shares),
            run: worker.order.run.clone(),
        });
        host.stop = worker.control.kill.clone();
        if worker.settings.fakes_boot.load(Ordering::Relaxed) {
            host.boot = BootMode::Fake;
        }
        Self {
            host,
            barriers: Barriers::of(book),
            fleet: FrozenFleet {
                nodes: values.nodes.clone(),
                gathered: book.gathered.clone().into_iter().collect(),
                source: ResultSource {
                    run: worker.order.run.clone(),
                    control: Arc::clone(&worker.control),
                    shares: Arc::clone(&worker.settings.shares),
                    known: Mutex::default(),
                },
                is_check: worker.order.is_check,
            },
            is_first: values.is_first,
            read_results: book
                .gathered
                .values()
                .chain(&book.read_results)
                .cloned()
                .collect(),
            is_side: false,
            is_rehearsal: false,
            journal,
            reports: Vec::new(),
            began: Instant::now(),
            worker,
        }
    }

    /// The node as a check sees it that nobody hears of.
    pub(super) fn in_rehearsal(mut self) -> Self {
        self.is_rehearsal = true;
        self.fleet.is_check = true;
        self
    }

    /// What the run is made from on this node.
    pub(super) fn request(&self, values: OrderValues, book: &Book) -> NodeRequest {
        NodeRequest {
            run: self.worker.order.name.clone(),
            mode: mode_of(&self.worker.order),
            inputs: values.inputs,
            variables: values.variables,
            facts: gather_facts(&self.host, &book.facts),
            node: values.node,
            peers: values.peers,
        }
    }

    fn result_error(&self, error: ShareError) -> ResultError {
        match (error, self.worker.control.stopped()) {
            (ShareError::Stopped, Some(reason)) => ResultError::Stopped(reason.into()),
            (error, _) => ResultError::Refused(error.to_string()),
        }
    }

    fn wait(&self, barrier: usize) -> Result<(), NodeStop> {
        let control = &self.worker.control;
        if control.phase() <= barrier {
            let state = NodeState::of(self.reports.iter().map(|report| report.state));
            self.worker.send(Event::AtBarrier(AtBarrier {
                barrier: u32::try_from(barrier).unwrap_or(u32::MAX),
                state: state.word().to_owned(),
            }));
        }
        control.wait_for_barrier(barrier)
    }

    /// A name for the directory of an attempt's commands.
    fn job(&self, key: &StepKey) -> String {
        let mut hasher = Hasher::default();
        for part in [&key.step, &key.item, &key.attempt.to_string()] {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
        }
        format!("{}-{}", self.worker.order.run, hasher.finish().hex())
    }
}

impl NodeHost for AgentNode<'_> {
    fn host(&self) -> Host {
        self.host.clone()
    }

    fn attempt_host(&self, key: &StepKey) -> Host {
        let mut host = self.host.clone();
        if self.journal.is_some() {
            host.processes = Arc::new(self.worker.settings.shim.step(&self.job(key)));
        }
        host
    }

    fn can_take_up(&self, step: &Step, key: &StepKey) -> bool {
        // Only what a command does is known for sure: its shim has written it down.
        let is_command = matches!(&step.work, Work::Module(call) if call.module.name == "command");
        let state = self.worker.settings.shim.step(&self.job(key)).state();
        is_command && state.is_ok_and(|state| state != JobState::Lost)
    }

    fn is_first(&self) -> bool {
        self.is_first
    }

    fn wait_for_first(&mut self, step: &Step) -> Result<Option<Value>, ResultError> {
        // Who runs a handler was notified; the first node may not have been.
        let Some(passed) = self.barriers.passed_before(step) else {
            return Ok(None);
        };
        let given = self.worker.control.wait_for_first(&step.id, passed)?;
        let result = self.fleet.source.read(&given);
        result.map(Some).map_err(|error| self.result_error(error))
    }

    fn share_result(&mut self, step: &Step, result: &Value) -> Result<(), ResultError> {
        let mut shared = SharedResult {
            step: step.id.clone(),
            ..SharedResult::default()
        };
        let text = result.to_string();
        let is_sensitive = step.options.is_sensitive && !result.is_null();
        if !is_sensitive && text.len() <= MAX_SHARED_BYTES {
            shared.result = text.into();
        } else if self.read_results.contains(&step.id) {
            let control = &self.worker.control;
            let shares = &self.worker.settings.shares;
            let run = &self.worker.order.run;
            let stored = shares.put_result(run, &text, is_sensitive, &|| control.is_stopped());
            let stored = stored.map_err(|error| self.result_error(error))?;
            shared.digest = stored.digest;
            shared.is_sealed = stored.sealed;
        } else {
            // Nobody asks for it.
            shared.result = Value::Null.to_string().into();
        }
        self.worker.send(Event::Shared(shared));
        Ok(())
    }

    fn seal(&self, result: &str) -> Option<String> {
        self.worker.settings.shares.seal_text(result)
    }

    fn unseal(&self, sealed: &str) -> Option<String> {
        self.worker.settings.shares.unseal_text(sealed)
    }

    fn enter(&mut self, step: &Step) -> Result<(), NodeStop> {
        let control = &self.worker.control;
        control.forget_permit(&step.id)?;
        self.worker.send(Event::Wants(step.id.clone()));
        control.wait_for_permit(&step.id)?;
        control.wait_for_lease()
    }

    fn leave(&mut self, step: &Step) {
        self.worker.control.give_back(&step.id);
        self.worker.send(Event::Gives(step.id.clone()));
    }

    fn delegate(
        &mut self,
        step: &Step,
        key: &StepKey,
        values: Map<String, Value>,
    ) -> Result<SideOutcome, NodeStop> {
        if self.is_rehearsal {
            let why = "other nodes are not asked before a run";
            return Ok(SideOutcome {
                report: unknown(step, why, None),
                result: None,
            });
        }
        let request = SideRequest {
            run: self.worker.order.run.clone(),
            step: step.id.clone(),
            item: key.item.clone(),
            values: Value::Object(values).to_string().into(),
        };
        let control = &self.worker.control;
        control.ask(&request);
        // Nobody listens when the agent has ended; the next one asks again.
        let _ = self.worker.events.send(NodeEvent::Ask(request));
        let answer = control.wait_for_answer(&step.id, &key.item)?;
        let report = serde_json::from_slice::<Value>(&answer.report).ok();
        let report = report.as_ref().and_then(StepReport::read);
        Ok(SideOutcome {
            report: report.unwrap_or_else(|| unreadable(step)),
            result: serde_json::from_slice(&answer.result).ok(),
        })
    }

    fn fleet(&self) -> &dyn Fleet {
        &self.fleet
    }

    fn may_start(&mut self, step: &Step) -> Result<(), NodeStop> {
        self.worker.control.wait_for_lease()?;
        // Nodes that take their steps together wait before steps that name no barrier, too.
        if step.options.barrier == Barrier::None
            && self.journal.is_some()
            && let Some(barrier) = self.barriers.before(step)
        {
            self.wait(barrier)?;
            self.worker.control.wait_for_lease()?;
        }
        Ok(())
    }

    fn wait_at(&mut self, step: &Step, _barrier: Barrier) -> Result<(), NodeStop> {
        if let Some(barrier) = self.barriers.before(step) {
            self.wait(barrier)?;
        }
        self.worker.control.wait_for_lease()
    }

    fn record(&mut self, entry: &JournalEntry) -> Result<(), NodeStop> {
        let (before, after) = match entry {
            JournalEntry::Started { .. } => ("agent-step-starting", "agent-step-started"),
            _ => ("agent-step-finishing", "agent-step-finished"),
        };
        failpoint(before);
        if let Some(journal) = &mut self.journal {
            journal.append(entry)?;
        }
        failpoint(after);
        if self.host.boot == BootMode::Fake && restarts(entry) {
            // As with a machine, the run goes on when the agent is back.
            let settings = &self.worker.settings;
            settings.has_rebooted.store(true, Ordering::Relaxed);
            self.worker.control.stop(StopReason::Suspended, false);
            return Err(NodeStop::AgentEnds);
        }
        Ok(())
    }

    fn touches(&mut self, changes: &[Change]) -> Result<(), NodeStop> {
        let activity = &self.worker.settings.activity;
        let touched = activity.touch(&self.worker.order.run, changes);
        touched.map_err(NodeStop::Touched)
    }

    fn report(&mut self, report: &StepReport) {
        if self.is_side || self.is_rehearsal {
            return;
        }
        let is_same =
            |known: &&mut StepReport| known.name == report.name && known.item == report.item;
        match self.reports.iter_mut().find(is_same) {
            Some(known) => known.clone_from(report),
            None => self.reports.push(report.clone()),
        }
        self.worker
            .send(Event::Step(report.to_record().to_string().into()));
    }

    fn pause(&mut self, time: Duration) -> bool {
        self.worker.control.pause(time)
    }

    fn clock(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Whether an entry is the end of a step that restarted the machine.
fn restarts(entry: &JournalEntry) -> bool {
    let JournalEntry::Finished { state, result, .. } = entry else {
        return false;
    };
    let result = result.as_object();
    *state == StepState::Changed && result.and_then(MachineRestart::of_result).is_some()
}

/// An answer of a server that this agent does not understand.
fn unreadable(step: &Step) -> StepReport {
    let hint = "update the older one of agent and server";
    unknown(step, "the answer of the server cannot be read", Some(hint))
}

/// A step that nobody knows the end of.
fn unknown(step: &Step, why: &str, hint: Option<&str>) -> StepReport {
    StepReport {
        name: step.id.clone(),
        item: None,
        state: StepState::Unknown,
        diff: None,
        error: Some(portolan_fleet::StepError {
            message: why.to_owned(),
            hint: hint.map(str::to_owned),
            output: None,
        }),
        notes: Vec::new(),
        reasons: Vec::new(),
        changes: Vec::new(),
        took: Duration::ZERO,
        place: step.place.clone(),
    }
}

/// The nodes that the namespace of a run may know of, as they were when the run was made, and what steps gave there.
struct FrozenFleet {
    nodes: Vec<Value>,
    /// The paths of steps, by the names that the book has for them.
    gathered: Vec<(String, String)>,
    source: ResultSource,
    /// A check does not wait for other nodes.
    is_check: bool,
}

impl Fleet for FrozenFleet {
    fn nodes(&self, selector: &str) -> Result<Vec<Value>, FleetQueryError> {
        let selector: Selector = selector
            .parse()
            .map_err(|error| FleetQueryError::Selector {
                selector: selector.to_owned(),
                error,
            })?;
        let matches = |node: &&Value| selector.matches(|key| node["labels"][key].as_str());
        Ok(self.nodes.iter().filter(matches).cloned().collect())
    }

    fn results(&self, step: &str) -> Result<Map<String, Value>, FleetQueryError> {
        let named = self.gathered.iter().find(|(name, _)| name == step);
        let named = named.filter(|_| !self.is_check);
        let Some((_, id)) = named else {
            return Err(FleetQueryError::NoResults);
        };
        let unreadable = |reason: String| FleetQueryError::UnreadableResults {
            step: step.to_owned(),
            reason,
        };
        let all = self.source.control.results(id);
        let all = all.ok_or_else(|| unreadable("they are too large together".to_owned()))?;
        let mut results = Map::new();
        for (node, given) in all {
            let result = self.source.read(&given);
            let result = result.map_err(|error| unreadable(format!("node {node}: {error}")))?;
            results.insert(node, result);
        }
        Ok(results)
    }
}

/// Reads results that other nodes gave; those that are stored apart once each.
struct ResultSource {
    run: String,
    control: Arc<RunControl>,
    shares: Arc<NodeShares>,
    /// By digest.
    known: Mutex<BTreeMap<String, Value>>,
}

impl ResultSource {
    fn read(&self, given: &Given) -> Result<Value, ShareError> {
        match given {
            Given::Value(value) => Ok(value.clone()),
            Given::Apart(stored) => self.read_apart(stored),
        }
    }

    fn read_apart(&self, stored: &LargeResult) -> Result<Value, ShareError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.get(&stored.digest) {
            return Ok(value.clone());
        }
        drop(known);
        let is_stopped = || self.control.is_stopped();
        let value = self.shares.result(&self.run, stored, &is_stopped)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(stored.digest.clone(), value.clone());
        Ok(value)
    }
}
