//! The thread that takes the steps of one run, and what the run sees of this node.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use camino::Utf8PathBuf;
use portolan_digest::Hasher;
use portolan_fleet::{
    Book, BookSource, JournalEntry, JournalError, JournalState, NodeOutcome, NodeRun, NodeState,
    RunMode, StepJournal, StepReport, compile, plan_differences, plan_refusal,
};
use portolan_modules::BookFiles;
use portolan_secret::KnownSecrets;
use tokio::sync::mpsc;

use super::control::{RunControl, StopReason};
use super::files::StoredFiles;
use super::lock::HeldLock;
use super::node::AgentNode;
use super::order::{OrderValues, mode_of};
use super::{NodeEvent, RunEvent, RunSettings};
use crate::failpoint::failpoint;
use crate::wire::run_report::Event;
use crate::wire::{RunEnded, RunOrder};

/// Takes the steps of one run.
pub(crate) struct Worker {
    pub(crate) settings: Arc<RunSettings>,
    pub(crate) control: Arc<RunControl>,
    pub(crate) events: mpsc::UnboundedSender<NodeEvent>,
    pub(crate) order: RunOrder,
    /// The journal of a run that the node makes itself; without it, that of the book.
    pub(crate) journal: Option<Utf8PathBuf>,
}

impl Worker {
    /// Begins in a thread of its own.
    pub(crate) fn spawn(self) -> io::Result<()> {
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
        if values.is_exec && !self.settings.allows_exec.load(Ordering::Relaxed) {
            return Err(
                "this agent takes no single commands; `--allow-exec` allows them".to_owned(),
            );
        }
        let Some(files) = self.files()? else {
            return Ok((!self.is_suspended()).then(not_begun));
        };
        let book = self.compile(&values, &files)?;
        let mode = mode_of(&self.order);
        // A check writes nothing, so it needs neither the lock nor a journal.
        if mode == RunMode::Check {
            self.control.begin();
            let outcome = self.take_steps(&book, values, files, None, JournalState::default());
            return Ok((!self.is_suspended()).then(|| ended(&outcome)));
        }
        let _lock = match self.lock_node()? {
            Some(lock) => lock,
            None if self.is_suspended() => return Ok(None),
            None => return Ok(Some(not_begun())),
        };
        self.control.begin();
        let _at_work = self.settings.activity.begin(&self.order.run);
        let (mut journal, past) = match self.open_journal(&book) {
            Ok(opened) => opened,
            // Nobody knows what was begun, so nothing more is begun until somebody has looked.
            Err(error @ JournalError::Damaged { .. }) => {
                return Ok(Some(RunEnded {
                    state: NodeState::Unknown.word().to_owned(),
                    owed: Vec::new(),
                    stopped: cannot_open(&error),
                }));
            }
            Err(error) => return Err(cannot_open(&error)),
        };
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
        // A run that has begun its steps has changed what its plan found.
        if let Some(plan) = values.plan.as_ref().filter(|_| past.steps.is_empty()) {
            let differences = self.rehearse(&book, &values, Arc::clone(&files), plan);
            match self.control.stopped() {
                Some(StopReason::Suspended) => return Ok(None),
                Some(StopReason::Cancelled) => return Ok(Some(not_begun())),
                None if differences.is_empty() => {}
                None => return Err(plan_refusal(&differences)),
            }
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
        journal.end(&entry).map_err(|error| error.to_string())?;
        failpoint("agent-run-ended");
        Ok(Some(ended(&outcome)))
    }

    /// The files of the book, once all of them are here. `None` when the run was stopped meanwhile.
    pub(super) fn files(&self) -> Result<Option<Arc<dyn BookFiles>>, String> {
        let mut has_all = Ok(false);
        let waited = self.control.wait_while_not(|| {
            has_all = self.settings.files.has_all(self.order.files.values());
            has_all != Ok(false)
        });
        has_all?;
        let digests = self.order.files.iter();
        let files = StoredFiles {
            store: Arc::clone(&self.settings.files),
            digests: digests
                .map(|(path, digest)| (Utf8PathBuf::from(path), digest.clone()))
                .collect(),
        };
        Ok(waited
            .is_ok()
            .then(|| Arc::new(files) as Arc<dyn BookFiles>))
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.control.stopped() == Some(StopReason::Suspended)
    }

    pub(super) fn compile(
        &self,
        values: &OrderValues,
        files: &Arc<dyn BookFiles>,
    ) -> Result<Book, String> {
        compile_order(&self.order, values, files)
    }

    /// Waits until no other run is at work on the node. `None` when the run was stopped meanwhile.
    pub(super) fn lock_node(&self) -> Result<Option<Arc<HeldLock>>, String> {
        let mut taken = Ok(None);
        let waited = self.control.wait_while_not(|| {
            taken = self
                .settings
                .lock
                .take(&self.settings.root, &self.order.run);
            !matches!(taken, Ok(None))
        });
        match waited {
            Ok(()) => taken.map_err(|error| error.to_string()),
            Err(_) => Ok(None),
        }
    }

    /// The journal of the book. That of another run is replaced; its owed handlers are kept.
    fn open_journal(&self, book: &Book) -> Result<(StepJournal, JournalState), JournalError> {
        let path = self.journal.clone();
        let path = path.unwrap_or_else(|| self.journal_path(book, "journal"));
        self.open_journal_at(&path, book)
    }

    /// The journal at a path. That of another run is replaced; its owed handlers are kept.
    pub(super) fn open_journal_at(
        &self,
        path: &Utf8PathBuf,
        book: &Book,
    ) -> Result<(StepJournal, JournalState), JournalError> {
        let (mut journal, past) = StepJournal::open(path)?;
        if past.run.as_deref() == Some(self.order.run.as_str()) {
            return Ok((journal, past));
        }
        let entry = JournalEntry::Received {
            run: self.order.run.clone(),
            book: book.name.clone(),
            digest: self.order.digest.clone(),
            owed: past.owed,
        };
        failpoint("agent-run-received");
        let begun = journal.begin(entry)?;
        failpoint("agent-run-begun");
        Ok((journal, begun))
    }

    pub(super) fn journal_path(&self, book: &Book, extension: &str) -> Utf8PathBuf {
        let mut hasher = Hasher::default();
        hasher.update(book.namespace.as_deref().unwrap_or_default().as_bytes());
        hasher.update(&[0]);
        hasher.update(book.name.as_bytes());
        let name = hasher.finish().hex();
        self.settings.journals.join(format!("{name}.{extension}"))
    }

    fn take_steps(
        &self,
        book: &Book,
        values: OrderValues,
        files: Arc<dyn BookFiles>,
        journal: Option<&mut StepJournal>,
        past: JournalState,
    ) -> NodeOutcome {
        let mut node = AgentNode::new(self, book, &values, files, journal);
        let request = node.request(values, book);
        let secrets = Arc::new(KnownSecrets::default());
        NodeRun::new(book, &mut node, past, secrets).run(&request)
    }

    /// Looks at all steps and changes nothing: how the node differs from what an approved plan found on it.
    fn rehearse(
        &self,
        book: &Book,
        values: &OrderValues,
        files: Arc<dyn BookFiles>,
        plan: &serde_json::Value,
    ) -> Vec<String> {
        let mut node = AgentNode::new(self, book, values, files, None).in_rehearsal();
        let mut request = node.request(values.clone(), book);
        request.mode = RunMode::Check;
        let secrets = Arc::new(KnownSecrets::default());
        let past = JournalState::default();
        let outcome = NodeRun::new(book, &mut node, past, secrets).run(&request);
        plan_differences(plan, &outcome.steps)
    }

    pub(super) fn send(&self, event: Event) {
        let event = RunEvent {
            run: self.order.run.clone(),
            phase: self.control.phase(),
            event,
        };
        // Nobody listens when the agent has ended; the journal has what counts.
        let _ = self.events.send(NodeEvent::Run(event));
    }
}

/// The book of an order, which must be the one that the server has read.
pub(crate) fn compile_order(
    order: &RunOrder,
    values: &OrderValues,
    files: &Arc<dyn BookFiles>,
) -> Result<Book, String> {
    let text = std::str::from_utf8(&order.book).map_err(|_| "the book is not UTF-8")?;
    let mut source = BookSource::new(&order.file, text, Arc::clone(files));
    source.selection = values.selection.clone();
    source.secret_vars.clone_from(&values.secret_variables);
    let book = compile(&source).map_err(|faults| {
        let first = faults
            .first()
            .map(|fault| format!("{}: {}", fault.place, fault.message));
        format!(
            "this agent cannot read the book: {}",
            first.unwrap_or_default()
        )
    })?;
    if book.digest.to_string() != order.digest {
        return Err(
            "this agent reads another book than the server: update the older of the two".to_owned(),
        );
    }
    Ok(book)
}

/// Why a journal cannot be used, and what to do.
pub(super) fn cannot_open(error: &JournalError) -> String {
    match error {
        JournalError::Damaged { .. } => format!(
            "{error}; look at the node, stop its agent, and run `portolan agent --data DIRECTORY --acknowledge-damage` there"
        ),
        JournalError::Io { source, .. } => format!("{error}: {source}"),
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
    events: mpsc::UnboundedSender<NodeEvent>,
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
            let _ = self.events.send(NodeEvent::Run(RunEvent {
                run: self.run.clone(),
                phase: 0,
                event: Event::Ended(ended),
            }));
        }
    }
}
