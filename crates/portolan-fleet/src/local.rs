//! A run on this machine, or on a directory that stands for one, without a server: the same steps, journal and reports.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Hasher;
use portolan_modules::{BookFiles, FileKind, Follow, Host, Root};
use portolan_secret::KnownSecrets;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::book::{Barrier, Book, RunOn, Step, Work};
use crate::decision::{Fleet, NoFleet};
use crate::execute::{NodeHost, NodeOutcome, NodeRequest, NodeRun, NodeStop, RunMode};
use crate::facts::gather_facts;
use crate::journal::{JournalEntry, JournalError, JournalState, StepJournal};
use crate::outcome::StepReport;

/// Where journals are, below the root directory.
const DATA: &str = "/var/lib/portolan/local";

/// How often a pause looks whether the run was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// A run on this machine.
pub struct LocalRun {
    /// The directory that stands for `/`.
    pub root: Arc<Root>,
    /// Whether programs of steps are confined to it.
    pub is_confined: bool,
    /// The files of the book.
    pub files: Arc<dyn BookFiles>,
    /// Whether it changes something.
    pub mode: RunMode,
    /// Values of the book's inputs, checked.
    pub inputs: Map<String, Value>,
    /// Variables of the node, which stand above those of the book.
    pub variables: Map<String, Value>,
    /// The node as books see it: name, address and labels. Without it, the name is that of the machine.
    pub about: Option<Value>,
    /// Its name, if it is not the rest of an interrupted one.
    pub id: String,
    /// Takes in what must not be printed.
    pub secrets: Arc<KnownSecrets>,
    /// Ends the run when it is cancelled.
    pub stop: CancellationToken,
    /// Whether a damaged journal is put aside.
    pub acknowledges_damage: bool,
    /// For tests: the record of the journal at which the process kills itself, and whether it is written before.
    pub kill_at: Option<(usize, bool)>,
}

/// How a local run ended.
#[derive(Debug)]
pub struct LocalOutcome {
    /// The run.
    pub run: String,
    /// The name of the node.
    pub node: String,
    /// Whether it went on with a run that was interrupted.
    pub is_resumed: bool,
    /// What people should know about the journal.
    pub notes: Vec<String>,
    /// How it ended.
    pub outcome: NodeOutcome,
}

/// Why a run was not begun.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Another run is at work here.
    #[error("another run is at work on this node")]
    Busy,
    /// The book is suspended.
    #[error("the book `{0}` is suspended")]
    Suspended(String),
    /// A step runs on other nodes.
    #[error("the step `{step}` runs on other nodes, which a local run does not have")]
    OtherNodes {
        /// The step.
        step: String,
    },
    /// The directory of journals cannot be used.
    #[error("cannot keep a journal in `{path}`: {reason}")]
    Data {
        /// The directory.
        path: Utf8PathBuf,
        /// Why not.
        reason: String,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl LocalError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy => Some("wait until it ends"),
            Self::Suspended(_) => Some("set `suspend: false`"),
            Self::OtherNodes { .. } => Some("`--skip-tags` leaves the step out"),
            Self::Journal(JournalError::Damaged { .. }) => {
                Some("look at the node, then put the journal aside with --acknowledge-damage")
            }
            _ => None,
        }
    }
}

/// Finds a step that a local run cannot take.
///
/// # Errors
/// Such a step.
pub fn check_local(book: &Book) -> Result<(), LocalError> {
    let mut found = None;
    for step in book.steps.iter().chain(&book.handlers) {
        step.visit(&mut |step| {
            if matches!(step.options.run_on, RunOn::Others { .. })
                && !matches!(step.work, Work::Block(_))
            {
                found.get_or_insert_with(|| step.id.clone());
            }
        });
    }
    found.map_or(Ok(()), |step| Err(LocalError::OtherNodes { step }))
}

impl LocalRun {
    /// Takes the steps of a book, and tells what becomes of each.
    ///
    /// # Errors
    /// When nothing was begun.
    pub fn run(
        &self,
        book: &Book,
        report: &mut dyn FnMut(&StepReport),
    ) -> Result<LocalOutcome, LocalError> {
        if book.run.is_suspended {
            return Err(LocalError::Suspended(book.name.clone()));
        }
        check_local(book)?;
        let mut notes = Vec::new();
        // A check writes nothing at all, so it needs neither the lock nor a journal.
        let mut kept = match self.mode {
            RunMode::Check => None,
            RunMode::Apply => Some(self.open_journal(book, &mut notes)?),
        };
        let past = kept.as_mut().map(|kept| std::mem::take(&mut kept.past));
        let run = kept
            .as_ref()
            .map_or_else(|| self.id.clone(), |kept| kept.run.clone());
        let is_resumed = kept.as_ref().is_some_and(|kept| kept.is_resumed);
        let host = Host::local(Arc::clone(&self.root));
        let facts = gather_facts(&host, &book.facts);
        let name = facts["hostname"].as_str().unwrap_or("localhost").to_owned();
        let own = || json!({"name": name, "address": "127.0.0.1", "labels": {}});
        let node = self.about.clone().unwrap_or_else(own);
        let request = NodeRequest {
            run: run.clone(),
            mode: self.mode,
            inputs: self.inputs.clone(),
            variables: self.variables.clone(),
            facts,
            peers: json!([node]),
            node,
        };
        let mut here = LocalNode {
            run: self,
            book: &book.name,
            journal: kept.as_mut().map(|kept| &mut kept.journal),
            report,
            began: Instant::now(),
            records: 0,
        };
        let node_run = NodeRun::new(
            book,
            &mut here,
            past.unwrap_or_default(),
            Arc::clone(&self.secrets),
        );
        let outcome = node_run.run(&request);
        if let Some(kept) = &mut kept
            && outcome.stopped.is_none()
        {
            let entry = JournalEntry::Ended {
                state: outcome.state,
                owed: outcome.owed.clone(),
                steps: Vec::new(),
            };
            kept.journal.end(&entry)?;
        }
        Ok(LocalOutcome {
            run,
            node: name,
            is_resumed,
            notes,
            outcome,
        })
    }

    fn open_journal(
        &self,
        book: &Book,
        notes: &mut Vec<String>,
    ) -> Result<KeptJournal, LocalError> {
        let lock = NodeLock::take(&self.root)?.ok_or(LocalError::Busy)?;
        let directory = data_directory(&self.root)?;
        let failed = |error: io::Error| LocalError::Data {
            path: directory.clone(),
            reason: error.to_string(),
        };
        let path = directory.join(format!("{}.journal", book.name));
        let opened = match StepJournal::open(&path) {
            Err(JournalError::Damaged { .. }) if self.acknowledges_damage => {
                let aside = format!("{path}.damaged-{}", self.id);
                std::fs::rename(&path, &aside).map_err(failed)?;
                notes.push(format!("the damaged journal is kept as `{aside}`"));
                StepJournal::open(&path)
            }
            opened => opened,
        };
        let (mut journal, mut past) = opened?;
        if past.torn_bytes > 0 {
            notes.push(format!(
                "{} bytes of a record that was never finished were cut from the journal",
                past.torn_bytes
            ));
        }
        let digest = self.digest(book);
        let is_resumed = past.run.is_some() && past.ended.is_none() && past.digest == digest;
        if !is_resumed {
            if past.run.is_some() && past.ended.is_none() {
                notes
                    .push("an interrupted run of another state of the book is given up".to_owned());
            }
            let entry = JournalEntry::Received {
                run: self.id.clone(),
                book: book.name.clone(),
                digest,
                owed: past.owed,
            };
            past = journal.begin(entry)?;
        }
        Ok(KeptJournal {
            run: past.run.clone().unwrap_or_default(),
            journal,
            past,
            is_resumed,
            _lock: lock,
        })
    }

    /// What a run is made from: an interrupted one goes on only if this is the same. Secrets are no part of it.
    fn digest(&self, book: &Book) -> String {
        let mut hasher = Hasher::default();
        hasher.update(book.digest.to_string().as_bytes());
        for (name, value) in &self.inputs {
            if book.inputs.get(name).is_some_and(|input| !input.is_secret) {
                hasher.update(name.as_bytes());
                hasher.update(value.to_string().as_bytes());
            }
        }
        hasher.finish().to_string()
    }
}

/// A journal with its lock.
struct KeptJournal {
    run: String,
    journal: StepJournal,
    past: JournalState,
    is_resumed: bool,
    _lock: NodeLock,
}

/// Held by the one run that changes a node, whoever asked for it. Ends with the process, also when that is killed.
pub struct NodeLock(File);

impl NodeLock {
    /// Takes the lock of the node; `None` if another run has it.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn take(root: &Root) -> Result<Option<Self>, LocalError> {
        let path = data_directory(root)?.join("lock");
        let file = File::create(&path).map_err(|error| LocalError::Data {
            path,
            reason: error.to_string(),
        })?;
        Ok(file.try_lock().is_ok().then_some(Self(file)))
    }
}

impl Drop for NodeLock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started still has the file open.
        let _ = self.0.unlock();
    }
}

/// The directory of journals. Below another root directory it must be a real one: a link could lead out.
fn data_directory(root: &Root) -> Result<Utf8PathBuf, LocalError> {
    let mut path = Utf8PathBuf::from("/");
    for name in Utf8Path::new(DATA).components().skip(1) {
        path.push(name.as_str());
        let failed = |reason: String| LocalError::Data {
            path: path.clone(),
            reason,
        };
        match root.status(&path, Follow::No) {
            Ok(None) => {
                let made = root.make_directory(&path, 0o755);
                made.map_err(|error| failed(error.to_string()))?;
            }
            Ok(Some(found)) if found.kind == FileKind::Directory => {}
            Ok(Some(_)) if root.is_machine() => {}
            Ok(Some(_)) => return Err(failed("it is not a directory".to_owned())),
            Err(error) => return Err(failed(error.to_string())),
        }
    }
    Ok(root.machine_path(Utf8Path::new(DATA)))
}

/// This machine, as a run sees it.
struct LocalNode<'a> {
    run: &'a LocalRun,
    book: &'a str,
    journal: Option<&'a mut StepJournal>,
    report: &'a mut dyn FnMut(&StepReport),
    began: Instant,
    records: usize,
}

impl NodeHost for LocalNode<'_> {
    fn host(&self) -> Host {
        let mut host = Host::local(Arc::clone(&self.run.root));
        host.is_confined = self.run.is_confined;
        host.book_files = Arc::clone(&self.run.files);
        self.book.clone_into(&mut host.book);
        host.stop = self.run.stop.clone();
        host
    }

    fn fleet(&self) -> &dyn Fleet {
        &NoFleet
    }

    fn may_start(&mut self, _step: &Step) -> Result<(), NodeStop> {
        if self.run.stop.is_cancelled() {
            Err(NodeStop::Interrupted)
        } else {
            Ok(())
        }
    }

    fn wait_at(&mut self, _step: &Step, _barrier: Barrier) -> Result<(), NodeStop> {
        // A node that stands alone has come as far as all others.
        Ok(())
    }

    fn record(&mut self, entry: &JournalEntry) -> Result<(), NodeStop> {
        let number = self.records;
        self.records += 1;
        if self.run.kill_at == Some((number, false)) {
            kill_this_process();
        }
        if let Some(journal) = &mut self.journal {
            journal.append(entry)?;
        }
        if self.run.kill_at == Some((number, true)) {
            kill_this_process();
        }
        Ok(())
    }

    fn report(&mut self, report: &StepReport) {
        (self.report)(report);
    }

    fn pause(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.run.stop.is_cancelled() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK));
        }
        false
    }

    fn clock(&self) -> Duration {
        self.began.elapsed()
    }
}

/// As `kill -9` would: nothing is written or cleaned up.
fn kill_this_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}
