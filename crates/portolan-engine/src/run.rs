//! The entry point: add units, run them to the end, get the report.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::executor::Executor;
use crate::journal::RunJournal;
use crate::{Journal, Key, Limits, Report, RunId, Unit};

/// A set of units to be run together.
pub struct Run {
    journal: RunJournal,
    executor: Arc<Executor>,
    token: CancellationToken,
    above: CancellationToken,
    seed: u64,
}

/// Calls a run or one of its units off, or has a unit tried again, from anywhere.
#[derive(Clone)]
pub struct Canceller {
    executor: Arc<Executor>,
    token: CancellationToken,
}

// === impl Run ===

impl Run {
    /// A run without units whose events go to the given journal.
    pub fn new(limits: Limits, journal: Journal) -> Self {
        let journal = RunJournal::begin(journal);
        let executor = Arc::new(Executor::new(journal.clone(), &limits));
        Self {
            journal,
            executor,
            token: CancellationToken::new(),
            above: CancellationToken::new(),
            seed: 0,
        }
    }

    /// The run's name in its journal.
    pub fn id(&self) -> RunId {
        self.journal.id()
    }

    /// Makes the run end when the given token is cancelled, for example by Ctrl-C.
    #[must_use]
    pub fn under(self, token: &CancellationToken) -> Self {
        Self {
            above: token.clone(),
            ..self
        }
    }

    /// Sets what the jitter of retries is drawn from; two runs with the same seed rest equally long.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Adds a unit; returns whether the key is new. A key that was added before keeps its first unit.
    pub fn add<T>(&self, key: impl Into<Key<T>>, needs: &[Key], unit: Unit<T>) -> bool {
        let key = key.into().untyped();
        self.executor.add(&key, needs, unit.task, &self.token)
    }

    /// A handle to call the run off while it goes on.
    pub fn canceller(&self) -> Canceller {
        Canceller {
            executor: Arc::clone(&self.executor),
            token: self.token.clone(),
        }
    }

    /// Runs every unit that is wanted to its end.
    ///
    /// Needs a tokio runtime with a timer. When the future is dropped, the run is cancelled: waiting units are dropped
    /// and computing units end after what they are at.
    pub async fn finish(self) -> Report {
        let _cancel_when_dropped = self.token.clone().drop_guard();
        let began = Instant::now();
        self.executor
            .work(&self.token, &self.above, self.seed)
            .await;
        let (ends, unasked) = self.executor.take_ends();
        let report = Report::new(ends, unasked, began.elapsed());
        let took_us = report.took().as_micros() as u64;
        self.journal.end(report.counts(), took_us);
        report
    }
}

// === impl Canceller ===

impl Canceller {
    /// Calls the whole run off: what runs is cancelled, what has not started never will.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Calls one unit off, and those that it added, unless it has ended.
    pub fn cancel_unit(&self, key: &Key) {
        self.executor.cancel(key);
    }

    /// Queues a [repeatable](Unit::repeatable) unit again that failed or was called off, with all units that were
    /// skipped because of it. Returns their keys, that unit's first; none if it has not ended, is done, or the run is over.
    pub fn retry_unit(&self, key: &Key) -> Vec<Key> {
        self.executor.repeat(key)
    }
}
