//! The journals that Skaffold's API is a view of: one for a run, one after the other for a dev loop, in which each turn has a run
//! that builds, one that deploys and one that verifies.

use std::sync::{Arc, Mutex, PoisonError};

use portolan_engine::Journal;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::outline::RunOutline;

/// One run, and what it is about.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) journal: Journal,
    pub(super) outline: RunOutline,
    /// The number of the turn, from 0.
    pub(super) iteration: i32,
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
}

impl SkaffoldTurns {
    /// A session of one run.
    pub(crate) fn of_one(journal: &Journal, outline: RunOutline) -> Self {
        let turns = Self::default();
        turns.next(journal, outline);
        turns.end();
        turns
    }

    /// The runs that follow belong to another turn.
    pub fn begin_turn(&self) {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.newest.is_some() {
            turns.iteration = turns.iteration.saturating_add(1);
        }
    }

    /// Another run begins.
    pub fn next(&self, journal: &Journal, outline: RunOutline) {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = Turn {
            journal: journal.clone(),
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
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.is_over = true;
        turns.readers.clear();
    }

    pub(super) fn read(&self) -> UnboundedReceiver<Turn> {
        let (sender, receiver) = unbounded_channel();
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
