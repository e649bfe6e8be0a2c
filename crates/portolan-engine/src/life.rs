//! The states of a unit in the journal, as types: queued, then active, then over.
//!
//! Each state consumes the one before, so a second start or a second end does not compile.

use std::sync::Arc;

use tokio::time::Instant;

use crate::journal::RunJournal;
use crate::unit_log::UnitLog;
use crate::wire::Event;
use crate::{Failure, Key, Outcome};

/// A unit that was queued and has not started.
#[derive(Debug)]
pub(crate) struct Queued {
    unit_log: Arc<UnitLog>,
}

/// A unit between its first start and its end.
#[derive(Debug)]
pub(crate) struct Active {
    unit_log: Arc<UnitLog>,
    since: Instant,
    attempt: u32,
}

/// A unit that has not ended.
#[derive(Debug)]
pub(crate) enum Life {
    Queued(Queued),
    Resting(Active),
}

/// A unit's end, for the report.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) outcome: Outcome,
    pub(crate) attempts: u32,
    pub(crate) took_us: u64,
}

impl Life {
    /// Begins the first or the next attempt.
    pub(crate) fn start(self) -> Active {
        match self {
            Self::Queued(life) => life.start(),
            Self::Resting(life) => life.again(),
        }
    }

    pub(crate) fn end(self, outcome: Outcome) -> Over {
        match self {
            Self::Queued(life) => life.end(outcome),
            Self::Resting(life) => life.end(outcome),
        }
    }
}

impl Queued {
    pub(crate) fn new(journal: &RunJournal, key: &Key) -> Self {
        journal.append(key, Event::Queued);
        Self {
            unit_log: Arc::new(UnitLog::new(journal.clone(), key.clone())),
        }
    }

    fn start(self) -> Active {
        self.unit_log.open(1);
        Active {
            unit_log: self.unit_log,
            since: Instant::now(),
            attempt: 1,
        }
    }

    /// Ends without ever having started.
    pub(crate) fn end(self, outcome: Outcome) -> Over {
        self.unit_log.close(end_event(&outcome, 0));
        Over {
            outcome,
            attempts: 0,
            took_us: 0,
        }
    }
}

impl Active {
    pub(crate) fn unit_log(&self) -> &Arc<UnitLog> {
        &self.unit_log
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Ends the attempt, with another one to follow.
    pub(crate) fn rest(&self, failure: &Failure, delay: std::time::Duration) {
        self.unit_log.close(Event::Retrying {
            attempt: self.attempt,
            error: failure.to_string(),
            delay_ms: delay.as_millis() as u64,
        });
    }

    fn again(self) -> Self {
        let attempt = self.attempt.saturating_add(1);
        self.unit_log.open(attempt);
        Self { attempt, ..self }
    }

    pub(crate) fn end(self, outcome: Outcome) -> Over {
        let took_us = self.since.elapsed().as_micros() as u64;
        self.unit_log.close(end_event(&outcome, took_us));
        Over {
            outcome,
            attempts: self.attempt,
            took_us,
        }
    }
}

fn end_event(outcome: &Outcome, took_us: u64) -> Event {
    match outcome {
        Outcome::Done(_) => Event::Done {
            took_us,
            summary: None,
        },
        Outcome::Failed(failure) => Event::Failed {
            error: failure.to_string(),
            took_us,
        },
        Outcome::Skipped { because } => Event::Skipped {
            because: because.clone(),
            took_us,
        },
        Outcome::Cancelled => Event::Cancelled { took_us },
    }
}
