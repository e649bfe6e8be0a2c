//! Runs units: synchronous ones on threads, asynchronous ones in tasks.
//!
//! ```text
//! change graph (lock) ──▶ effects (no lock): wake waits, spawn tasks, hire threads
//!        ▲                                          │
//!        └────────── end of an attempt ◀────────────┘
//! ```

mod task;
mod thread;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::graph::{Effects, Graph, Launch, UnitId};
use crate::journal::RunJournal;
use crate::life::{Active, Life, Over};
use crate::unit::{Attempt, Output, Task, Work};
use crate::unit_log::UnitLog;
use crate::{Failure, Key, Limits, Outcome, Retry, WaitError};

/// The graph of a run with the threads and tasks that work on it.
pub(crate) struct Executor {
    graph: Mutex<Graph>,
    runtime: OnceLock<Handle>,
    tasks: TaskTracker,
    over: Notify,
    /// Logs of units with something left to write.
    unwritten: Mutex<Vec<Weak<UnitLog>>>,
    unwritten_news: Notify,
    write_every: Duration,
    seed: OnceLock<u64>,
}

/// A unit while an attempt runs, and what another attempt would need.
struct Attempting {
    id: UnitId,
    active: Active,
    token: CancellationToken,
    again: Option<(Work, Retry)>,
    is_graceful: bool,
    weight: usize,
}

/// What follows an attempt.
enum Next {
    End(Over),
    Rest {
        delay: Duration,
        unit: Task,
        life: Life,
    },
}

// === impl Executor ===

impl Executor {
    pub(crate) fn new(journal: RunJournal, limits: &Limits) -> Self {
        let write_every = journal.options().progress_every;
        Self {
            graph: Mutex::new(Graph::new(journal, limits)),
            runtime: OnceLock::new(),
            tasks: TaskTracker::new(),
            over: Notify::new(),
            unwritten: Mutex::default(),
            unwritten_news: Notify::new(),
            write_every,
            seed: OnceLock::new(),
        }
    }

    pub(crate) fn add(
        self: &Arc<Self>,
        key: &Key,
        needs: &[Key],
        unit: Task,
        parent: &CancellationToken,
    ) -> bool {
        self.change(|graph, effects| {
            if graph.is_open() {
                graph.add(key, needs, unit, parent, effects)
            } else {
                effects.discard.push(unit);
                false
            }
        })
    }

    pub(crate) fn peek(&self, key: &str) -> Option<Result<Output, WaitError>> {
        self.graph.lock().peek(key)
    }

    pub(crate) fn compute(self: &Arc<Self>, work: Box<dyn FnOnce() + Send>) {
        self.change(|graph, _| graph.compute(work));
    }

    /// Cancels one unit and those it added.
    pub(crate) fn cancel(self: &Arc<Self>, key: &Key) {
        let token = self.graph.lock().token(key);
        if let Some(token) = token {
            token.cancel();
            self.change(Graph::sweep_cancelled);
        }
    }

    /// Queues a unit again that did not end well; returns it and those that were skipped because of it.
    pub(crate) fn repeat(self: &Arc<Self>, key: &Key) -> Vec<Key> {
        self.change(|graph, effects| {
            if graph.is_open() {
                graph.repeat(key, effects)
            } else {
                Vec::new()
            }
        })
    }

    /// Runs everything to its end, on the runtime that polls this. What is cancelled above cancels the run.
    pub(crate) async fn work(
        self: &Arc<Self>,
        token: &CancellationToken,
        above: &CancellationToken,
        seed: u64,
    ) {
        let _ = self.runtime.set(Handle::current());
        let _ = self.seed.set(seed);
        if above.is_cancelled() {
            token.cancel();
        }
        self.change(|graph, _| graph.start());
        let meanwhile = async {
            tokio::join!(
                self.await_cancellation(token, above),
                self.write_unwritten()
            )
        };
        tokio::select! {
            () = self.over.notified() => {}
            ((), ()) = meanwhile => {}
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The ends of all units, and how many units nobody asked for.
    pub(crate) fn take_ends(&self) -> (Vec<(Key, Over)>, usize) {
        let (ends, unasked) = self.graph.lock().take_ends();
        let count = unasked.len();
        unasked.into_iter().for_each(discard);
        (ends, count)
    }

    /// Changes the graph, lets it advance, and does what follows outside of the lock.
    pub(crate) fn change<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Graph, &mut Effects) -> T,
    ) -> T {
        let mut effects = Effects::default();
        let mut graph = self.graph.lock();
        let value = change(&mut graph, &mut effects);
        graph.advance(&mut effects);
        drop(graph);
        self.apply(effects);
        value
    }

    fn apply(self: &Arc<Self>, effects: Effects) {
        effects.wake.into_iter().for_each(std::task::Waker::wake);
        if let Some(runtime) = self.runtime.get() {
            for launch in effects.spawn {
                self.tasks
                    .spawn_on(task::run(Arc::clone(self), launch), runtime);
            }
            for _ in 0..effects.drainers {
                let executor = Arc::clone(self);
                self.tasks
                    .spawn_blocking_on(move || thread::drain(&executor), runtime);
            }
        }
        effects.discard.into_iter().for_each(discard);
        effects.released.into_iter().for_each(discard);
        if effects.is_over {
            self.over.notify_one();
        }
    }

    /// Waits for the run to be cancelled, and ends what has not started.
    async fn await_cancellation(
        self: &Arc<Self>,
        token: &CancellationToken,
        above: &CancellationToken,
    ) {
        tokio::select! {
            () = token.cancelled() => {}
            () = above.cancelled() => token.cancel(),
        }
        self.change(Graph::sweep_cancelled);
    }

    /// Remembers a unit that has something left to write.
    pub(crate) fn write_later(&self, unit_log: &Arc<UnitLog>) {
        self.unwritten.lock().push(Arc::downgrade(unit_log));
        self.unwritten_news.notify_one();
    }

    async fn write_unwritten(&self) {
        loop {
            self.unwritten_news.notified().await;
            tokio::time::sleep(self.write_every).await;
            let unwritten = std::mem::take(&mut *self.unwritten.lock());
            unwritten
                .iter()
                .filter_map(Weak::upgrade)
                .for_each(|unit_log| unit_log.sweep());
        }
    }

    /// Draws the consequence of an attempt; nothing means that it was cancelled.
    fn judge(&self, attempting: Attempting, attempt: Option<Attempt>) -> Next {
        let Attempting {
            active,
            token,
            again,
            is_graceful,
            weight,
            ..
        } = attempting;
        let failure = match attempt {
            Some(Ok(output)) => return Next::End(active.end(Outcome::Done(output))),
            Some(Err(failure)) if !token.is_cancelled() => failure,
            Some(Err(_)) | None => return Next::End(active.end(Outcome::Cancelled)),
        };
        if let Some((work, retry)) = again
            && failure.may_retry()
            && let Some(delay) = retry.after(active.attempt(), active.unit_log().key(), self.seed())
        {
            active.rest(&failure, delay);
            let unit = Task {
                work,
                retry: Some(retry),
                is_lazy: false,
                is_graceful,
                // The graph took note of these when the unit was added.
                is_transient: false,
                is_repeatable: false,
                weight,
            };
            return Next::Rest {
                delay,
                unit,
                life: Life::Resting(active),
            };
        }
        Next::End(active.end(outcome_of(failure)))
    }

    fn seed(&self) -> u64 {
        self.seed.get().copied().unwrap_or_default()
    }

    /// Lets a unit rest and try again.
    fn rest(
        self: &Arc<Self>,
        id: UnitId,
        token: CancellationToken,
        delay: Duration,
        unit: Task,
        life: Life,
    ) {
        let Some(runtime) = self.runtime.get() else {
            return;
        };
        let executor = Arc::clone(self);
        let rest = async move {
            tokio::select! {
                () = token.cancelled() => executor.change(|graph, effects| {
                    graph.close(id, life.end(Outcome::Cancelled), effects);
                }),
                () = tokio::time::sleep(delay) => executor.change(|graph, _| {
                    graph.wake_rested(id, unit, life);
                }),
            }
        };
        self.tasks.spawn_on(rest, runtime);
    }
}

/// Ends a unit that was called off before it got its place.
fn decline(launch: Launch) -> Over {
    discard(launch.unit);
    launch.life.end(Outcome::Cancelled)
}

/// A failure that only passes on that another unit was not done is not this unit's own.
fn outcome_of(failure: Failure) -> Outcome {
    match failure.wait_error() {
        Some(WaitError::Unavailable { because, .. }) => Outcome::Skipped {
            because: because.clone(),
        },
        Some(WaitError::Cancelled { .. }) => Outcome::Cancelled,
        _ => Outcome::Failed(failure),
    }
}

/// Drops foreign values; a panic while doing so must not take the executor down.
fn discard<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
