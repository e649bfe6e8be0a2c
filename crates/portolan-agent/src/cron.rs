//! Schedules that the node keeps by itself, with or without a server.
//!
//! ```text
//! server ──CronOrders──▶ jobs.json ──▶ CronMemory::turn(now) ──▶ memory.json ──then──▶ a run of this node alone
//!                                        ▲                                               │ lock, journal
//!                                        └── ended ◀──────────────────────────────────────┘
//! server ◀──events by the spool of the beacons, CronStates──┘
//! ```
//!
//! A slot is on the disk as fired before its run begins, and as ended after the server can hear of it. So it is one run, and
//! one event, wherever the agent is killed. Nothing starts after the certificate of the node has ended.

mod job;
mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_fleet::{NodeState, StepReport, StepState, read_journal};
use portolan_trigger::CronSchedule;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::beacons::{BeaconNotice, NodeBeacons};
use crate::data::{AgentData, DataError};
use crate::disk;
use crate::failpoint::failpoint;
use crate::kept_book::KeptBook;
use crate::runs::{FileStore, NodeEvent, RunControl, RunEvent, RunSettings, StopReason, Worker};
use crate::validity::NodeValidity;
use crate::wire::agent_message::Message;
use crate::wire::run_report::Event;
use crate::wire::{CronOrders, CronSight, CronStates, RunEnded};
use job::KeptJob;
use memory::{CronMemory, CronTurn, SlotEnd, SlotRun};

/// How often schedules are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long a run waits for other runs of the node and for its files.
const QUEUE_TIME: Duration = Duration::from_mins(10);

/// The shortest time between two messages about schedules.
const STATES_EVERY: Duration = Duration::from_secs(1);

/// The most steps that an event names.
const MAX_STEPS: usize = 10;

/// The longest name of a step, and the longest reason, in an event.
const MAX_TEXT: usize = 200;

/// The schedules of a node.
pub(crate) struct NodeCron {
    directory: Utf8PathBuf,
    settings: Arc<RunSettings>,
    validity: Arc<NodeValidity>,
    beacons: Arc<NodeBeacons>,
    inner: Mutex<Inner>,
    /// Told when there is something to send.
    told: Notify,
}

struct Inner {
    jobs: Vec<(KeptJob, CronSchedule)>,
    memory: CronMemory,
    sights: Vec<CronSight>,
    /// Counts the changes of `sights`.
    version: u64,
}

/// What was sent on one stream.
#[derive(Debug, Default)]
pub(crate) struct CronCursor {
    version: u64,
    sent: Option<Instant>,
}

/// The runs that are under way.
struct UnderWay {
    active: BTreeMap<String, ActiveSlot>,
    sender: mpsc::UnboundedSender<NodeEvent>,
}

struct ActiveSlot {
    run: SlotRun,
    control: Arc<RunControl>,
    since: Instant,
    end: SlotEnd,
    has_ended: bool,
}

impl Drop for UnderWay {
    /// Runs stop before their next steps, and are taken up when the agent is back.
    fn drop(&mut self) {
        for slot in self.active.values() {
            slot.control.stop(StopReason::Suspended, false);
        }
    }
}

impl NodeCron {
    /// Goes on where the agent was when it ended.
    pub(crate) fn open(
        data: &AgentData,
        settings: &Arc<RunSettings>,
        validity: &Arc<NodeValidity>,
        beacons: &Arc<NodeBeacons>,
    ) -> Result<Self, DataError> {
        let directory = data.directory().join("cron");
        let failed = |source| DataError::File {
            path: directory.clone(),
            source,
        };
        disk::private_directory(&directory).map_err(failed)?;
        // The server says it again; until then nothing starts that cannot be read.
        let jobs: Vec<KeptJob> = read(&directory.join("jobs.json")).unwrap_or_default();
        // An agent that forgot which slots it fired would fire them again.
        let memory = read(&directory.join("memory.json")).map_err(failed)?;
        keep_files(&settings.files, &jobs);
        Ok(Self {
            settings: Arc::clone(settings),
            validity: Arc::clone(validity),
            beacons: Arc::clone(beacons),
            inner: Mutex::new(Inner {
                jobs: with_schedules(jobs),
                memory,
                sights: Vec::new(),
                version: 0,
            }),
            directory,
            told: Notify::new(),
        })
    }

    /// Nothing starts after this time.
    pub(crate) fn set_expiry(&self, expires: Duration) {
        self.validity.set_expiry(expires);
    }

    /// Takes the schedules that the server wants to be kept. Gives the digests of the files that are needed for them.
    pub(crate) fn order(&self, orders: CronOrders) -> BTreeSet<String> {
        let mut inner = self.inner();
        let known: Vec<KeptJob> = inner.jobs.iter().map(|(job, _)| job.clone()).collect();
        let jobs = KeptJob::read(orders, &known);
        let needed = keep_files(&self.settings.files, &jobs);
        if jobs != known {
            let text = serde_json::to_vec(&jobs).unwrap_or_default();
            // Without the file, the server has to say it again after a restart.
            if let Err(error) = disk::write_durable(&self.directory.join("jobs.json"), &text) {
                tracing::warn!(%error, "the schedules of the node cannot be kept");
            }
            inner.jobs = with_schedules(jobs);
            self.tidy(&inner);
        }
        needed
    }

    /// Removes journals of schedules that are gone.
    fn tidy(&self, inner: &Inner) {
        let Ok(entries) = self.directory.read_dir_utf8() else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_kept = |id: &str| name.starts_with(&journals_of(id));
            let mut jobs = inner.jobs.iter();
            let is_needed = jobs.any(|(job, _)| is_kept(&job.id)) || inner.memory.has_runs(is_kept);
            if name.ends_with(".journal") && !is_needed {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Keeps the schedules until the future is dropped.
    pub(crate) async fn keep(&self) -> Infallible {
        let (sender, mut events) = mpsc::unbounded_channel();
        let mut under_way = UnderWay {
            active: BTreeMap::new(),
            sender,
        };
        while !self.decide(&mut under_way, |inner, now| {
            inner
                .memory
                .resume(&inner.jobs, now, |run| self.has_begun(run))
        }) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        loop {
            self.look(&mut under_way);
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                Some(event) = events.recv() => self.take(event, &mut under_way),
            }
        }
    }

    /// Starts what is due, and ends what may not go on.
    fn look(&self, under_way: &mut UnderWay) {
        self.tell_ended(under_way);
        if self.validity.has_ended() {
            for slot in under_way.active.values_mut() {
                slot.give_up("the certificate of the node has ended");
            }
            return;
        }
        for slot in under_way.active.values_mut() {
            if slot.since.elapsed() > QUEUE_TIME && !slot.control.has_begun() {
                slot.give_up("it could not begin for 10 minutes: another run was at work, or its files did not come");
            }
        }
        self.decide(under_way, |inner, now| inner.memory.turn(&inner.jobs, now));
        self.see();
    }

    /// Decides something, and does it once it is on the disk. False if it could not be written: nothing has happened then.
    fn decide(
        &self,
        under_way: &mut UnderWay,
        decide: impl FnOnce(&mut Inner, jiff::Timestamp) -> CronTurn,
    ) -> bool {
        let mut inner = self.inner();
        let before = inner.memory.clone();
        let turn = decide(&mut inner, self.validity.now());
        // What is told twice has the same name.
        turn.notices
            .iter()
            .for_each(|notice| self.beacons.tell(notice));
        if inner.memory != before {
            failpoint("cron-slot-keeping");
            if let Err(error) = self.write(&inner.memory) {
                tracing::warn!(%error, "the slots of schedules cannot be kept: nothing starts");
                inner.memory = before;
                return false;
            }
            failpoint("cron-slot-kept");
        }
        drop(inner);
        for run in &turn.cancels {
            if let Some(slot) = under_way.active.get_mut(run) {
                slot.give_up("a newer slot has taken its place");
            }
        }
        for run in turn.starts {
            self.start(run, under_way);
        }
        true
    }

    fn write(&self, memory: &CronMemory) -> io::Result<()> {
        let text = serde_json::to_vec(memory).map_err(io::Error::other)?;
        disk::write_durable(&self.directory.join("memory.json"), &text)
    }

    fn journal(&self, run: &SlotRun) -> Utf8PathBuf {
        let name = format!("{}-{}.journal", journals_of(&run.job), run.number);
        self.directory.join(name)
    }

    /// Whether a run has begun its steps before the agent ended.
    fn has_begun(&self, run: &SlotRun) -> bool {
        let content = std::fs::read(self.journal(run)).unwrap_or_default();
        let journal = read_journal(&content);
        // Of a damaged journal nobody knows; the run says so.
        journal.map_or(true, |journal| {
            journal.state.run.as_deref() == Some(run.id.as_str())
        })
    }

    fn start(&self, run: SlotRun, under_way: &mut UnderWay) {
        let control = RunControl::of_node(Arc::clone(&self.validity));
        let control = Arc::new(control);
        let mut order = run.book.order().clone();
        order.run.clone_from(&run.id);
        order.name.clone_from(&run.name);
        self.own_runs().insert(run.id.clone());
        let worker = Worker {
            settings: Arc::clone(&self.settings),
            control: Arc::clone(&control),
            events: under_way.sender.clone(),
            order,
            journal: Some(self.journal(&run)),
        };
        let id = run.id.clone();
        let slot = ActiveSlot {
            run,
            control,
            since: Instant::now(),
            end: SlotEnd::default(),
            has_ended: false,
        };
        under_way.active.insert(id.clone(), slot);
        if let Err(error) = worker.spawn() {
            let ended = RunEnded {
                state: NodeState::Failed.word().to_owned(),
                owed: Vec::new(),
                stopped: format!("no thread for the run: {error}"),
            };
            self.finish(&id, &ended, under_way);
        }
    }

    fn take(&self, event: NodeEvent, under_way: &mut UnderWay) {
        // Books that need others are not kept, so nothing else comes.
        let NodeEvent::Run(RunEvent { run, event, .. }) = event else {
            return;
        };
        match event {
            Event::Step(report) => {
                if let Some(slot) = under_way.active.get_mut(&run) {
                    slot.note(&report);
                }
            }
            Event::Ended(ended) => self.finish(&run, &ended, under_way),
            _ => {}
        }
    }

    fn finish(&self, run: &str, ended: &RunEnded, under_way: &mut UnderWay) {
        if let Some(slot) = under_way.active.get_mut(run) {
            slot.end.state = NodeState::read(&ended.state);
            if slot.end.stopped.is_empty() {
                slot.end.stopped.clone_from(&ended.stopped);
            }
            slot.has_ended = true;
        }
        self.tell_ended(under_way);
    }

    /// Tells how runs ended, and forgets them. What cannot be written is told again later.
    fn tell_ended(&self, under_way: &mut UnderWay) {
        let active = &mut under_way.active;
        let ended: Vec<(String, ActiveSlot)> =
            active.extract_if(.., |_, slot| slot.has_ended).collect();
        for (run, slot) in ended {
            let is_told = self.decide(under_way, |inner, now| {
                let memory = &mut inner.memory;
                let notice = memory.ended(&inner.jobs, &slot.run, &slot.end, now);
                CronTurn {
                    notices: notice.into_iter().collect::<Vec<BeaconNotice>>(),
                    ..CronTurn::default()
                }
            });
            if !is_told {
                under_way.active.insert(run, slot);
                continue;
            }
            self.own_runs().remove(&run);
            let is_other = |job: &str| !job.starts_with(&run);
            if let Err(error) = self.settings.jobs.forget(is_other) {
                tracing::warn!(%error, "old commands cannot be forgotten");
            }
        }
        self.see();
    }

    /// Takes note of what the server should hear.
    fn see(&self) {
        let now = self.validity.now();
        let mut inner = self.inner();
        let sights = inner.memory.sights(&inner.jobs, now);
        if sights != inner.sights {
            inner.sights = sights;
            inner.version += 1;
            self.told.notify_one();
        }
    }

    /// Waits until there is something to send.
    pub(crate) async fn next_message(&self, cursor: &mut CronCursor) -> Message {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            let next = cursor.sent.map(|sent| sent + STATES_EVERY);
            let wait = next.filter(|next| *next > Instant::now());
            {
                let inner = self.inner();
                if wait.is_none() && cursor.version != inner.version {
                    cursor.version = inner.version;
                    cursor.sent = Some(Instant::now());
                    let jobs = inner.sights.clone();
                    return Message::CronStates(CronStates { jobs });
                }
            }
            match wait {
                Some(next) => tokio::time::sleep_until(next).await,
                None => told.await,
            }
        }
    }

    fn own_runs(&self) -> MutexGuard<'_, BTreeSet<String>> {
        let runs = self.settings.own_runs.lock();
        runs.unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveSlot {
    /// Ends it after its current step.
    fn give_up(&mut self, why: &str) {
        if self.end.stopped.is_empty() {
            why.clone_into(&mut self.end.stopped);
        }
        self.control.stop(StopReason::Cancelled, false);
    }

    /// Takes note of a step.
    fn note(&mut self, report: &[u8]) {
        let read = serde_json::from_slice(report).ok();
        let Some(step) = read.as_ref().and_then(StepReport::read) else {
            return;
        };
        let name: String = step.name.chars().take(MAX_TEXT).collect();
        match step.state {
            StepState::Changed => {
                let (names, count) = &mut self.end.changed;
                *count += 1;
                if names.len() < MAX_STEPS {
                    names.push(name);
                }
            }
            StepState::Failed | StepState::Unknown if self.end.failed.is_empty() => {
                let why = step.error.map(|error| error.message).unwrap_or_default();
                let why: String = why.chars().take(MAX_TEXT).collect();
                self.end.failed = format!("step `{name}`: {why}");
            }
            _ => {}
        }
    }
}

/// How the names of the journals of a schedule begin.
fn journals_of(id: &str) -> String {
    let digest = Digest::of(id.as_bytes()).hex();
    digest.get(..32).unwrap_or_default().to_owned()
}

/// Keeps the files of the books; their digests.
fn keep_files(files: &FileStore, jobs: &[KeptJob]) -> BTreeSet<String> {
    let digests = KeptBook::digests(jobs.iter().flat_map(|job| &job.books));
    files.keep_for("cron", digests.clone());
    digests
}

/// Schedules that can be read; the others say so in what the server hears.
fn with_schedules(jobs: Vec<KeptJob>) -> Vec<(KeptJob, CronSchedule)> {
    let jobs = jobs.into_iter();
    jobs.filter_map(|job| match job.schedule() {
        Ok(schedule) => Some((job, schedule)),
        Err(error) => {
            tracing::warn!(error, job = job.name, "a schedule cannot be kept");
            None
        }
    })
    .collect()
}

/// Reads a file that the agent wrote; the default if there is none.
fn read<T: DeserializeOwned + Default>(path: &Utf8Path) -> io::Result<T> {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(error),
    }
}
