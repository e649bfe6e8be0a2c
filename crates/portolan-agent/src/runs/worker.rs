//! The thread that takes the steps of one run, and what the run sees of this node.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use portolan_digest::Hasher;
use portolan_fleet::{
    Barrier, Barriers, Book, BookSource, Fleet, FleetQueryError, JournalEntry, JournalState,
    MemoryFiles, NodeHost, NodeLock, NodeOutcome, NodeRequest, NodeRun, NodeState, NodeStop,
    RunMode, Step, StepJournal, StepKey, StepReport, Work, compile, gather_facts,
};
use portolan_modules::{BookFiles, Host};
use portolan_object::Selector;
use portolan_secret::KnownSecrets;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::control::{RunControl, StopReason};
use super::order::{OrderValues, mode_of};
use super::{RunEvent, RunSettings};
use crate::failpoint::failpoint;
use crate::shim::JobState;
use crate::wire::run_report::Event;
use crate::wire::{AtBarrier, RunEnded, RunOrder, SharedResult};

/// The largest result that a step on the first node gives to the others.
const MAX_SHARED_BYTES: usize = 8 << 10;

/// Takes the steps of one run.
pub(super) struct Worker {
    pub(super) settings: Arc<RunSettings>,
    pub(super) control: Arc<RunControl>,
    pub(super) events: mpsc::UnboundedSender<RunEvent>,
    pub(super) order: RunOrder,
}

impl Worker {
    /// Begins in a thread of its own.
    pub(super) fn spawn(self) -> io::Result<()> {
        let thread = thread::Builder::new().name("run".to_owned());
        thread.spawn(move || {
            let mut end = EndOnPanic {
                events: self.events.clone(),
                run: self.order.run.clone(),
                is_armed: true,
            };
            self.run();
            end.is_armed = false;
        })?;
        Ok(())
    }

    fn run(&self) {
        let ended = match self.take_part() {
            Ok(Some(ended)) => ended,
            // The agent ends; the run goes on when it is back.
            Ok(None) => return,
            Err(reason) => RunEnded {
                state: NodeState::Failed.word().to_owned(),
                owed: Vec::new(),
                stopped: reason,
            },
        };
        self.send(Event::Ended(ended));
    }

    /// Takes the steps. `None` if the agent ends meanwhile.
    fn take_part(&self) -> Result<Option<RunEnded>, String> {
        let values =
            OrderValues::read(&self.order).ok_or("the order of the server cannot be read")?;
        let files = self.order.files.iter();
        let files =
            MemoryFiles::of_bytes(files.map(|(path, content)| (path.as_str(), &content[..])));
        let files: Arc<dyn BookFiles> = Arc::new(files);
        let book = self.compile(&values, &files)?;
        let mode = mode_of(&self.order);
        // A check writes nothing, so it needs neither the lock nor a journal.
        if mode == RunMode::Check {
            let outcome = self.take_steps(&book, values, files, None, JournalState::default());
            return Ok((!self.is_suspended()).then(|| ended(&outcome)));
        }
        let _lock = match self.lock_node()? {
            Some(lock) => lock,
            None if self.is_suspended() => return Ok(None),
            None => return Ok(Some(not_begun())),
        };
        let (mut journal, past) = self.open_journal(&book)?;
        if let Some(state) = past.ended {
            // It ended before the server was told.
            for report in &past.reports {
                self.send(Event::Step(report.to_string().into()));
            }
            return Ok(Some(RunEnded {
                state: state.word().to_owned(),
                owed: past.owed,
                stopped: String::new(),
            }));
        }
        let outcome = self.take_steps(&book, values, files, Some(&mut journal), past);
        if self.is_suspended() {
            return Ok(None);
        }
        failpoint("agent-run-ending");
        let entry = JournalEntry::Ended {
            state: outcome.state,
            owed: outcome.owed.clone(),
            steps: outcome.steps.iter().map(StepReport::to_record).collect(),
        };
        journal.append(&entry).map_err(|error| error.to_string())?;
        failpoint("agent-run-ended");
        Ok(Some(ended(&outcome)))
    }

    fn is_suspended(&self) -> bool {
        self.control.stopped() == Some(StopReason::Suspended)
    }

    fn compile(&self, values: &OrderValues, files: &Arc<dyn BookFiles>) -> Result<Book, String> {
        let text = std::str::from_utf8(&self.order.book).map_err(|_| "the book is not UTF-8")?;
        let mut source = BookSource::new(&self.order.file, text, Arc::clone(files));
        source.selection = values.selection.clone();
        let book = compile(&source).map_err(|faults| {
            let first = faults
                .first()
                .map(|fault| format!("{}: {}", fault.place, fault.message));
            format!(
                "this agent cannot read the book: {}",
                first.unwrap_or_default()
            )
        })?;
        if book.digest.to_string() != self.order.digest {
            return Err(
                "this agent reads another book than the server: update the older of the two"
                    .to_owned(),
            );
        }
        Ok(book)
    }

    /// Waits until no other run is at work on the node. `None` when the run was stopped meanwhile.
    fn lock_node(&self) -> Result<Option<NodeLock>, String> {
        let mut taken = Ok(None);
        let waited = self.control.wait_while_not(|| {
            taken = NodeLock::take(&self.settings.root);
            !matches!(taken, Ok(None))
        });
        match waited {
            Ok(()) => taken.map_err(|error| error.to_string()),
            Err(_) => Ok(None),
        }
    }

    /// The journal of the book. That of another run is replaced; its owed handlers are kept.
    fn open_journal(&self, book: &Book) -> Result<(StepJournal, JournalState), String> {
        let path = self.journal_path(book);
        let (mut journal, mut past) =
            StepJournal::open(&path).map_err(|error| error.to_string())?;
        if past.run.as_deref() == Some(self.order.run.as_str()) {
            return Ok((journal, past));
        }
        let entry = JournalEntry::Received {
            run: self.order.run.clone(),
            book: book.name.clone(),
            digest: self.order.digest.clone(),
            owed: past.owed.clone(),
        };
        failpoint("agent-run-received");
        journal.begin(&entry).map_err(|error| error.to_string())?;
        failpoint("agent-run-begun");
        past = JournalState {
            run: Some(self.order.run.clone()),
            owed: past.owed,
            ..JournalState::default()
        };
        Ok((journal, past))
    }

    fn journal_path(&self, book: &Book) -> Utf8PathBuf {
        let mut hasher = Hasher::default();
        hasher.update(book.namespace.as_deref().unwrap_or_default().as_bytes());
        hasher.update(&[0]);
        hasher.update(book.name.as_bytes());
        let name = hasher.finish().hex();
        self.settings.journals.join(format!("{name}.journal"))
    }

    fn take_steps(
        &self,
        book: &Book,
        values: OrderValues,
        files: Arc<dyn BookFiles>,
        journal: Option<&mut StepJournal>,
        past: JournalState,
    ) -> NodeOutcome {
        let mut host = Host::local(Arc::clone(&self.settings.root));
        host.book_files = files;
        host.book.clone_from(&book.name);
        host.stop = self.control.kill.clone();
        let request = NodeRequest {
            run: self.order.name.clone(),
            mode: mode_of(&self.order),
            inputs: values.inputs,
            variables: values.variables,
            facts: gather_facts(&host, &book.facts),
            node: values.node,
            peers: values.peers,
        };
        let mut node = AgentNode {
            worker: self,
            host,
            barriers: Barriers::of(book),
            fleet: FrozenFleet(values.nodes),
            is_first: values.is_first,
            shared: values.shared,
            journal,
            reports: Vec::new(),
            began: Instant::now(),
        };
        let secrets = Arc::new(KnownSecrets::default());
        NodeRun::new(book, &mut node, past, secrets).run(&request)
    }

    fn send(&self, event: Event) {
        let event = RunEvent {
            run: self.order.run.clone(),
            phase: self.control.phase(),
            event,
        };
        // Nobody listens when the agent has ended; the journal has what counts.
        let _ = self.events.send(event);
    }
}

fn ended(outcome: &NodeOutcome) -> RunEnded {
    RunEnded {
        state: outcome.state.word().to_owned(),
        owed: outcome.owed.clone(),
        stopped: outcome.stopped.clone().unwrap_or_default(),
    }
}

fn not_begun() -> RunEnded {
    RunEnded {
        state: NodeState::Skipped.word().to_owned(),
        owed: Vec::new(),
        stopped: "cancelled".to_owned(),
    }
}

/// Tells the server when the thread of a run dies of a defect, so that the run does not wait for ever.
struct EndOnPanic {
    events: mpsc::UnboundedSender<RunEvent>,
    run: String,
    is_armed: bool,
}

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if self.is_armed {
            let ended = RunEnded {
                state: NodeState::Unknown.word().to_owned(),
                owed: Vec::new(),
                stopped: "the agent failed; its log says why".to_owned(),
            };
            let _ = self.events.send(RunEvent {
                run: self.run.clone(),
                phase: 0,
                event: Event::Ended(ended),
            });
        }
    }
}

/// This node, as a run sees it.
struct AgentNode<'a> {
    worker: &'a Worker,
    host: Host,
    barriers: Barriers,
    fleet: FrozenFleet,
    is_first: bool,
    shared: Map<String, Value>,
    journal: Option<&'a mut StepJournal>,
    /// Every step, as it was last reported.
    reports: Vec<StepReport>,
    began: Instant,
}

impl AgentNode<'_> {
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

    fn shared_result(&self, step: &Step) -> Option<Value> {
        self.shared.get(&step.id).cloned()
    }

    fn share_result(&mut self, step: &Step, result: &Value) {
        let result = result.to_string();
        if result.len() <= MAX_SHARED_BYTES {
            let step = step.id.clone();
            let result = result.into();
            self.worker
                .send(Event::Shared(SharedResult { step, result }));
        }
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
        Ok(())
    }

    fn report(&mut self, report: &StepReport) {
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

/// The nodes that the namespace of a run may know of, as they were when the run was made.
struct FrozenFleet(Vec<Value>);

impl Fleet for FrozenFleet {
    fn nodes(&self, selector: &str) -> Result<Vec<Value>, FleetQueryError> {
        let selector: Selector = selector
            .parse()
            .map_err(|error| FleetQueryError::Selector {
                selector: selector.to_owned(),
                error,
            })?;
        let matches = |node: &&Value| selector.matches(|key| node["labels"][key].as_str());
        Ok(self.0.iter().filter(matches).cloned().collect())
    }

    fn results(&self, _step: &str) -> Result<Map<String, Value>, FleetQueryError> {
        Err(FleetQueryError::NoResults)
    }
}
