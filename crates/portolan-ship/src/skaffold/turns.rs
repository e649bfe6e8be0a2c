//! The journals that Skaffold's API is a view of: one for a run, one after the other for a dev loop, in which each turn has a run
//! that builds, one that deploys and one that verifies.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portolan_engine::{Journal, JournalFiles, ReadError, Reader, Record};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::outline::RunOutline;
use crate::runs::{RunError, ShipRun};

/// How often the files of a run are looked at that another process writes.
const LOOK: Duration = Duration::from_millis(50);

/// One run, and what it is about.
#[derive(Clone)]
pub(super) struct Turn {
    events: Events,
    pub(super) outline: RunOutline,
    /// The number of the turn, from 0.
    pub(super) iteration: i32,
}

/// Where the events of a run are.
#[derive(Clone)]
enum Events {
    /// In this process.
    Journal(Journal),
    /// In the files of a run that has ended or is another process.
    Files(ShipRun),
}

/// Reads the events of a run.
pub(super) enum TurnReader {
    Journal(Box<Reader>),
    Files(Box<JournalFiles>, ShipRun),
}

/// The runs of a session. Who reads gets each of them in order, from the one on that goes on when the reader comes.
#[derive(Clone, Default)]
pub struct SkaffoldTurns(Arc<Mutex<Turns>>);

#[derive(Default)]
struct Turns {
    newest: Option<Turn>,
    iteration: i32,
    readers: Vec<UnboundedSender<Turn>>,
    is_over: bool,
    /// What happens beside the runs of a dev loop: copied files, forwarded ports.
    session: Option<Journal>,
}

impl SkaffoldTurns {
    /// A session of one run.
    pub(crate) fn of_one(journal: &Journal, outline: RunOutline) -> Self {
        let turns = Self::default();
        turns.next(journal, outline);
        turns.end();
        turns
    }

    /// A run of a store, from its files: it may have ended long ago.
    ///
    /// # Errors
    /// When the run did not keep what it was about, or that cannot be read.
    pub fn of_files(run: &ShipRun) -> Result<Self, RunError> {
        let turns = Self::default();
        turns.push(Events::Files(run.clone()), run.outline()?);
        turns.end();
        Ok(turns)
    }

    /// The runs of a dev loop, with the journal of what happens beside them.
    pub fn of_session(journal: &Journal) -> Self {
        let turns = Self::default();
        turns.lock().session = Some(journal.clone());
        turns
    }

    /// What happens beside the runs, from the first event on.
    pub(super) fn session(&self) -> Option<Reader> {
        let turns = self.lock();
        turns.session.as_ref().map(|journal| journal.after(0))
    }

    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runs that follow belong to another turn.
    pub fn begin_turn(&self) {
        let mut turns = self.lock();
        if turns.newest.is_some() {
            turns.iteration = turns.iteration.saturating_add(1);
        }
    }

    /// Another run begins.
    pub fn next(&self, journal: &Journal, outline: RunOutline) {
        self.push(Events::Journal(journal.clone()), outline);
    }

    fn push(&self, events: Events, outline: RunOutline) {
        let mut turns = self.lock();
        let turn = Turn {
            events,
            outline,
            iteration: turns.iteration,
        };
        turns
            .readers
            .retain(|reader| reader.send(turn.clone()).is_ok());
        turns.newest = Some(turn);
    }

    /// There will be no other run: streams end with the last one.
    pub fn end(&self) {
        let mut turns = self.lock();
        turns.is_over = true;
        turns.session = None;
        turns.readers.clear();
    }

    pub(super) fn read(&self) -> UnboundedReceiver<Turn> {
        let (sender, receiver) = unbounded_channel();
        let mut turns = self.lock();
        if let Some(newest) = &turns.newest {
            // The receiver is here.
            let _ = sender.send(newest.clone());
        }
        if !turns.is_over {
            turns.readers.retain(|reader| !reader.is_closed());
            turns.readers.push(sender);
        }
        receiver
    }
}

impl Turn {
    /// A reader from the first event on.
    pub(super) fn reader(&self) -> TurnReader {
        match &self.events {
            Events::Journal(journal) => TurnReader::Journal(Box::new(journal.after(0))),
            Events::Files(run) => TurnReader::Files(Box::new(run.events_after(0)), run.clone()),
        }
    }
}

impl TurnReader {
    /// Waits for more; `None` when the run has ended and all was read.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Record>>, ReadError> {
        loop {
            let (files, run) = match self {
                Self::Journal(reader) => {
                    let batch = reader.next().await?;
                    return Ok(batch.map(|batch| batch.iter().cloned().collect()));
                }
                Self::Files(files, run) => (files, run),
            };
            // Asked before reading: what was written before the end of the process is read after it.
            let was_live = run.is_live().unwrap_or(false);
            let records = files.read()?;
            match records.is_empty() {
                false => return Ok(Some(records)),
                true if was_live => tokio::time::sleep(LOOK).await,
                true => return Ok(None),
            }
        }
    }

    /// What there is now; `None` if all was read.
    pub(super) fn try_next(&mut self) -> Result<Option<Vec<Record>>, ReadError> {
        match self {
            Self::Journal(reader) => {
                let batch = reader.try_next()?;
                Ok(batch.map(|batch| batch.iter().cloned().collect()))
            }
            Self::Files(files, _) => Ok(Some(files.read()?).filter(|records| !records.is_empty())),
        }
    }

    /// Goes on after the given number instead.
    pub(super) fn seek(&mut self, after: u64) {
        match self {
            Self::Journal(reader) => reader.seek(after),
            Self::Files(files, _) => files.seek(after),
        }
    }
}
