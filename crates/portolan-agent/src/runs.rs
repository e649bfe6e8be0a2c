//! The parts that this node takes in runs.
//!
//! ```text
//! RunOrder, RunStop ──▶ NodeRuns ──RunControl──▶ a thread with the steps of the run (worker) ──▶ journal, commands
//! RunReport, until ◀─── numbered ◀────events─────────┘
//! RunAck
//! ```
//!
//! A run belongs to the agent, not to a stream: it goes on while there is no stream as long as the lease is valid, and what
//! it reports is kept until the server says that it has it. An order that comes again only moves the run's barriers.

mod control;
mod files;
mod lock;
mod node;
mod order;
mod side;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_modules::Root;
use tokio::sync::mpsc;

use crate::activity::NodeActivity;
use crate::data::{AgentData, DataError};
use crate::epochs::{Epochs, RunEpoch};
use crate::fact_report::{FactReporter, INTERVAL};
use crate::shares::NodeShares;
use crate::shim::{Jobs, ShimProcesses};
use crate::wire::agent_message::Message;
use crate::wire::run_report::Event;
use crate::wire::{
    Facts, FilePart, RunAck, RunEnded, RunNews, RunOrder, RunReport, RunStop, SideAnswer,
    SideOrder, SideReport, SideRequest,
};
use control::News;
pub(crate) use control::{RunControl, SharedLease, StopReason};
use files::Downloads;
pub(crate) use files::{FileStore, StoredFiles};
use lock::SharedLock;
pub(crate) use order::OrderValues;
use side::SideSteps;
pub(crate) use worker::{Worker, compile_order};

/// Of how many runs the owners are remembered.
const REMEMBERED: usize = 256;

/// What stands for the run in requests for files of books that the node keeps.
const KEPT: &str = "kept";

/// How long runs have to come to the end of a step when the agent ends. Commands go on without it.
const END_TIME: Duration = Duration::from_secs(2);

/// How long after its start an agent finds out what costs something, at least.
const FIRST_FACTS: Duration = Duration::from_secs(3);

/// What all runs of an agent share.
pub(crate) struct RunSettings {
    /// The directory that stands for `/`.
    pub(crate) root: Arc<Root>,
    /// Where journals are.
    pub(crate) journals: Utf8PathBuf,
    /// Starts commands that outlive the agent.
    pub(crate) shim: ShimProcesses,
    /// Ended jobs are forgotten here.
    pub(crate) jobs: Jobs,
    /// Whether single commands are taken.
    allows_exec: AtomicBool,
    /// Whether a `reboot` step changes the boot id below the root directory and starts the agent anew.
    fakes_boot: AtomicBool,
    /// Whether such a step was taken.
    has_rebooted: AtomicBool,
    /// The files of books.
    pub(crate) files: Arc<FileStore>,
    lock: SharedLock,
    /// What nodes give to each other.
    pub(crate) shares: Arc<NodeShares>,
    /// What applying runs are changing.
    pub(crate) activity: Arc<NodeActivity>,
    /// Runs that this node has made itself.
    pub(crate) own_runs: Mutex<BTreeSet<String>>,
}

/// Something that happened on a node, for the server.
pub(crate) enum NodeEvent {
    /// In its part of a run.
    Run(RunEvent),
    /// Other nodes should take a step for this one.
    Ask(SideRequest),
    /// A step that it took by itself has ended.
    Side(SideReport),
    /// What was found out about the machine.
    Facts(Facts),
}

/// Something that happened in a run; `phase` is the one that it works in.
pub(crate) struct RunEvent {
    pub(crate) run: String,
    phase: usize,
    pub(crate) event: Event,
}

/// The runs of an agent.
pub(crate) struct NodeRuns {
    settings: Arc<RunSettings>,
    epochs: Epochs,
    lease: SharedLease,
    active: BTreeMap<String, ActiveRun>,
    side: SideSteps,
    downloads: Downloads,
    events: mpsc::UnboundedReceiver<NodeEvent>,
    sender: mpsc::UnboundedSender<NodeEvent>,
    /// Tells the starts of the agent apart.
    session: u64,
    facts: Option<FactTelling>,
}

/// Tells facts now and then, while there is somebody who listens.
struct FactTelling {
    reporter: Arc<FactReporter>,
    due: tokio::time::Interval,
}

struct ActiveRun {
    control: Arc<RunControl>,
    /// What the server has not acknowledged.
    unacknowledged: Vec<RunReport>,
    last: u64,
    has_ended: bool,
    /// The files that it needs.
    files: BTreeSet<String>,
}

impl RunSettings {
    /// What runs share; `shim` is the program that starts commands.
    pub(crate) fn open(
        data: &AgentData,
        root: Arc<Root>,
        shim: &str,
        (files, activity): (Arc<FileStore>, Arc<NodeActivity>),
        shares: &Arc<NodeShares>,
    ) -> Result<Self, DataError> {
        let journals = data.journals()?;
        let jobs = data.jobs()?;
        Ok(Self {
            shim: ShimProcesses::new(shim, jobs.clone(), Arc::clone(&root)),
            root,
            journals,
            jobs,
            allows_exec: AtomicBool::new(false),
            fakes_boot: AtomicBool::new(false),
            has_rebooted: AtomicBool::new(false),
            files,
            lock: SharedLock::default(),
            shares: Arc::clone(shares),
            activity,
            own_runs: Mutex::default(),
        })
    }

    /// The files of books that the agent has.
    pub(crate) fn open_files(data: &AgentData) -> Result<Arc<FileStore>, DataError> {
        let path = data.directory().join("files");
        match crate::disk::private_directory(&path) {
            Ok(()) => Ok(Arc::new(FileStore::new(path))),
            Err(source) => Err(DataError::File { path, source }),
        }
    }

    /// Takes single commands, too.
    pub(crate) fn allow_exec(&self) {
        self.allows_exec.store(true, Ordering::Relaxed);
    }

    /// Takes `reboot` steps below another root directory: they start the agent anew.
    pub(crate) fn fake_boot(&self) {
        self.fakes_boot.store(true, Ordering::Relaxed);
    }
}

impl NodeRuns {
    pub(crate) fn open(
        data: &AgentData,
        settings: &Arc<RunSettings>,
        lease: SharedLease,
    ) -> Result<Self, DataError> {
        let (sender, events) = mpsc::unbounded_channel();
        Ok(Self {
            settings: Arc::clone(settings),
            epochs: data.epochs()?,
            lease,
            active: BTreeMap::new(),
            side: SideSteps::default(),
            downloads: Downloads::default(),
            events,
            sender,
            session: rand::random(),
            facts: None,
        })
    }

    /// Whether the agent has to start anew because a step would have restarted the machine.
    pub(crate) fn has_rebooted(&self) -> bool {
        self.settings.has_rebooted.load(Ordering::Relaxed)
    }

    /// Tells what the machine is, a while after the agent has connected and then now and then. Many agents that came at the
    /// same time do not find everything out at the same time.
    pub(crate) fn tell_facts(&mut self, reporter: FactReporter) {
        let wait = FIRST_FACTS.mul_f64(1.0 + rand::random::<f64>());
        let mut due = tokio::time::interval_at(tokio::time::Instant::now() + wait, INTERVAL);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let reporter = Arc::new(reporter);
        self.facts = Some(FactTelling { reporter, due });
    }

    /// What costs nothing to find out, for a new stream.
    pub(crate) async fn facts_at_once(&self) -> Facts {
        let Some(telling) = &self.facts else {
            return Facts::default();
        };
        let reporter = Arc::clone(&telling.reporter);
        let found = tokio::task::spawn_blocking(move || reporter.report(false));
        found.await.unwrap_or_default()
    }

    /// The runs that the node takes part in, for a new stream. They start no step until the server orders them again.
    pub(crate) fn held(&self) -> Vec<String> {
        for run in self.active.values() {
            run.control.doubt();
        }
        self.side.doubt();
        let mut runs: BTreeSet<String> = self.active.keys().cloned().collect();
        runs.extend(self.side.runs().cloned());
        runs.into_iter().collect()
    }

    /// Everything that the server may not have.
    pub(crate) fn unacknowledged(&self) -> Vec<Message> {
        let runs = self.active.values();
        let reports = runs.flat_map(|run| run.unacknowledged.iter().cloned());
        let requests = self.downloads.again().into_iter();
        let requests = requests.map(Message::FileRequest);
        reports.map(Message::RunReport).chain(requests).collect()
    }

    /// The next report. Nothing is lost when the future is dropped.
    pub(crate) async fn next_report(&mut self) -> Message {
        loop {
            let event = tokio::select! {
                event = self.events.recv() => event,
                reporter = facts_due(self.facts.as_mut()) => {
                    let sender = self.sender.clone();
                    // Nobody listens when the agent has ended.
                    tokio::task::spawn_blocking(move || {
                        let _ = sender.send(NodeEvent::Facts(reporter.report(true)));
                    });
                    continue;
                }
            };
            // The runs hold a sender as long as this does.
            let Some(event) = event else {
                return std::future::pending().await;
            };
            match event {
                NodeEvent::Facts(facts) => return Message::Facts(facts),
                NodeEvent::Run(event) => {
                    if let Some(report) = self.number(event) {
                        return Message::RunReport(report);
                    }
                }
                NodeEvent::Ask(request) => return Message::SideRequest(request),
                NodeEvent::Side(report) => {
                    self.side.ended(&report);
                    return Message::SideReport(report);
                }
            }
        }
    }

    fn number(&mut self, event: RunEvent) -> Option<RunReport> {
        let run = self.active.get_mut(&event.run)?;
        run.last += 1;
        run.has_ended |= matches!(event.event, Event::Ended(_));
        let report = RunReport {
            run: event.run,
            session: self.session,
            number: run.last,
            phase: u32::try_from(event.phase).unwrap_or(u32::MAX),
            event: Some(event.event),
        };
        run.unacknowledged.push(report.clone());
        Some(report)
    }

    /// Does what a server orders. Gives what the server should be told again.
    pub(crate) fn order(&mut self, order: RunOrder) -> Vec<Message> {
        if let Err(error) = self.epochs.accept(&order.run, order::epoch_of(&order)) {
            tracing::warn!(run = order.name, %error, "an order is refused");
            return Vec::new();
        }
        let phase = order.phase as usize;
        if let Some(run) = self.active.get(&order.run) {
            run.control.open(phase);
            let reports = run.unacknowledged.iter().cloned().map(Message::RunReport);
            let asked = run.control.unanswered().into_iter();
            return reports.chain(asked.map(Message::SideRequest)).collect();
        }
        if order.book.is_empty() {
            // Meant for the agent before this one; the server sends everything when it knows that this one is here.
            return Vec::new();
        }
        let control = Arc::new(RunControl::new(phase, Arc::clone(&self.lease)));
        let run = ActiveRun {
            control: Arc::clone(&control),
            unacknowledged: Vec::new(),
            last: 0,
            has_ended: false,
            files: order.files.values().cloned().collect(),
        };
        let id = order.run.clone();
        let requests = self.fetch(&order);
        self.active.insert(id.clone(), run);
        let worker = Worker {
            settings: Arc::clone(&self.settings),
            control,
            events: self.sender.clone(),
            order,
            journal: None,
        };
        if let Err(error) = worker.spawn() {
            let ended = RunEnded {
                state: "failed".to_owned(),
                owed: Vec::new(),
                stopped: format!("no thread for the run: {error}"),
            };
            let event = Event::Ended(ended);
            let report = self.number(RunEvent {
                run: id,
                phase,
                event,
            });
            return report.into_iter().map(Message::RunReport).collect();
        }
        requests
    }

    /// Asks for files of books that the node keeps and that are not here.
    pub(crate) fn fetch_kept(&mut self, digests: &BTreeSet<String>) -> Vec<Message> {
        let files = &self.settings.files;
        let requests = self.downloads.begin(files, KEPT, digests);
        requests.into_iter().map(Message::FileRequest).collect()
    }

    /// Asks for files of a book that are not here.
    fn fetch(&mut self, order: &RunOrder) -> Vec<Message> {
        let files = &self.settings.files;
        let requests = self
            .downloads
            .begin(files, &order.run, order.files.values());
        requests.into_iter().map(Message::FileRequest).collect()
    }

    /// Takes a part of a file; gives the request for the next one.
    pub(crate) fn file_part(&mut self, part: &FilePart) -> Option<Message> {
        let next = self.downloads.take(&self.settings.files, part);
        if part.part + 1 >= part.parts {
            self.active.values().for_each(|run| run.control.wake());
            self.side.wake();
        }
        next.map(Message::FileRequest)
    }

    /// Takes a step by itself. Gives what the server should be told.
    pub(crate) fn side(&mut self, order: SideOrder) -> Vec<Message> {
        let Some(book) = &order.book else {
            return Vec::new();
        };
        if let Err(error) = self.epochs.accept(&book.run, order::epoch_of(book)) {
            tracing::warn!(run = book.name, %error, "an order is refused");
            return Vec::new();
        }
        let mut messages = self.fetch(book);
        let known = self
            .side
            .order(order, &self.settings, &self.lease, &self.sender);
        messages.extend(known.map(Message::SideReport));
        messages
    }

    /// Hears what other nodes did.
    pub(crate) fn news(&mut self, news: &RunNews) {
        let epoch = RunEpoch {
            incarnation: news.incarnation,
            revision: news.revision,
        };
        if let Some(run) = self.active.get(&news.run)
            && self.epochs.accept(&news.run, epoch).is_ok()
            && let Some(news) = News::read(&news.values)
        {
            run.control.hear(news);
        }
    }

    /// Other nodes took a step for this one.
    pub(crate) fn answer(&self, answer: SideAnswer) {
        if let Some(run) = self.active.get(&answer.run) {
            run.control.answer(answer);
        }
    }

    /// Ends a run.
    pub(crate) fn stop(&mut self, stop: &RunStop) {
        let epoch = RunEpoch {
            incarnation: stop.incarnation,
            revision: stop.revision,
        };
        if self.epochs.accept(&stop.run, epoch).is_err() {
            return;
        }
        if stop.side {
            self.side.stop(&stop.run, stop.now);
        }
        if let Some(run) = self.active.get(&stop.run) {
            run.control.stop(StopReason::Cancelled, stop.now);
        }
    }

    /// The server has reports; a run whose end it has is forgotten.
    pub(crate) fn acknowledge(&mut self, ack: &RunAck) {
        let Some(run) = self.active.get_mut(&ack.run) else {
            return;
        };
        if ack.session != self.session {
            return;
        }
        run.unacknowledged
            .retain(|report| report.number > ack.number);
        if run.has_ended && run.unacknowledged.is_empty() {
            self.active.remove(&ack.run);
            self.tidy();
        }
    }

    /// Forgets commands and owners of runs that are over.
    fn tidy(&mut self) {
        let mut active: BTreeSet<String> = self.active.keys().cloned().collect();
        active.extend(self.side.runs().cloned());
        let own = self.settings.own_runs.lock();
        active.extend(own.unwrap_or_else(PoisonError::into_inner).iter().cloned());
        let runs = self.active.values();
        let needed: BTreeSet<String> = runs.flat_map(|run| run.files.iter().cloned()).collect();
        if self.side.is_idle()
            && let Err(error) = self.settings.files.tidy(&needed)
        {
            tracing::warn!(%error, "old files of books cannot be removed");
        }
        let is_of_active = |job: &str| active.iter().any(|run| job.starts_with(run.as_str()));
        if let Err(error) = self.settings.jobs.forget(is_of_active) {
            tracing::warn!(%error, "old commands cannot be forgotten");
        }
        if let Err(error) = self.epochs.keep_newest(REMEMBERED) {
            tracing::warn!(%error, "old owners of runs cannot be forgotten");
        }
    }

    /// Suspends every run: each stops before its next step, and goes on when the agent is back.
    pub(crate) async fn suspend(&mut self) {
        self.end_threads();
        let ended = async {
            while self
                .active
                .values()
                .any(|run| Arc::strong_count(&run.control) > 1)
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(END_TIME, ended).await;
    }

    fn end_threads(&self) {
        for run in self.active.values() {
            run.control.stop(StopReason::Suspended, false);
        }
        self.side.suspend();
    }
}

/// Waits until everything should be found out again.
async fn facts_due(telling: Option<&mut FactTelling>) -> Arc<FactReporter> {
    match telling {
        Some(telling) => {
            telling.due.tick().await;
            Arc::clone(&telling.reporter)
        }
        None => std::future::pending().await,
    }
}

impl Drop for NodeRuns {
    /// Threads of runs outlive this, and hold the lock of the node: they end before their next steps. Without it they would
    /// wait for a lease that nobody renews any more, and the next agent in the same process for the lock.
    fn drop(&mut self) {
        self.end_threads();
    }
}
