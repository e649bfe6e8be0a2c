//! A running unit's handle to the run: other units, progress and log lines, cancellation.

use std::any::type_name;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use serde::Serialize;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::executor::Executor;
use crate::graph::{Asked, UnitId};
use crate::life::Active;
use crate::publish;
use crate::unit::Output;
use crate::unit_log::{UnitLog, Written};
use crate::wire::Progress;
use crate::{Failure, Key, MAX_PUBLISHED_BYTES, Unit, WaitError};

/// A running unit's handle to the run. It is useless after the unit's end, but harmless.
#[derive(Clone)]
pub struct Context {
    executor: Arc<Executor>,
    id: UnitId,
    unit_log: Arc<UnitLog>,
    token: CancellationToken,
    attempt: u32,
}

/// The wait for another unit's end.
struct Wait<'a> {
    cx: &'a Context,
    key: Key,
    registered: Option<(UnitId, u64)>,
}

// === impl Context ===

impl Context {
    pub(crate) fn new(
        executor: &Arc<Executor>,
        id: UnitId,
        active: &Active,
        token: &CancellationToken,
    ) -> Self {
        Self {
            executor: Arc::clone(executor),
            id,
            unit_log: Arc::clone(active.unit_log()),
            token: token.clone(),
            attempt: active.attempt(),
        }
    }

    /// The unit's own key.
    pub fn key(&self) -> &Key {
        self.unit_log.key()
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Waits for another unit and returns what it made; starts it if it is lazy.
    ///
    /// The unit's place is given to others in the meantime. The other unit need not have been added yet: the wait fails
    /// with [`WaitError::Missing`] when nobody is left who could add it. Passing a [`WaitError`] on with `?` makes this
    /// unit skipped or cancelled like the one it asked for.
    pub async fn output<T: Send + Sync + 'static>(
        &self,
        key: &Key<T>,
    ) -> Result<Arc<T>, WaitError> {
        let wait = Wait {
            cx: self,
            key: key.untyped(),
            registered: None,
        };
        typed(key, &wait.await?)
    }

    /// What a unit named in this unit's needs made, without waiting; for synchronous units.
    pub fn need<T: Send + Sync + 'static>(&self, key: &Key<T>) -> Result<Arc<T>, WaitError> {
        let found = self.executor.peek(key.as_str());
        let key_of = || key.untyped();
        let output = found.unwrap_or_else(|| Err(WaitError::NotReady { key: key_of() }))?;
        typed(key, &output)
    }

    /// Adds a unit to the run; returns whether the key is new. Cancelling this unit while it runs cancels that one.
    pub fn add<T>(&self, key: impl Into<Key<T>>, needs: &[Key], unit: Unit<T>) -> bool {
        let key = key.into().untyped();
        self.executor.add(&key, needs, unit.task, &self.token)
    }

    /// Runs a closure that computes under the `cpu` limit, and waits for it.
    ///
    /// A panic of the closure is a panic of this unit.
    pub async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (give, take) = oneshot::channel();
        self.executor.compute(Box::new(move || {
            // Nobody takes it when the unit was cancelled meanwhile.
            let _ = give.send(catch_unwind(AssertUnwindSafe(work)));
        }));
        match take.await {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => resume_unwind(panic),
            // The runtime shuts down and drops the closure; this unit is dropped next.
            Err(_) => std::future::pending().await,
        }
    }

    /// Says how far the unit is. In quick succession only the last report is kept.
    pub fn progress(&self, done: u64, total: Option<u64>, text: impl Into<String>) {
        let written = self.unit_log.progress(Progress {
            done,
            total,
            text: text.into(),
        });
        self.remember(&written);
    }

    /// Says a line. Beyond the journal's budget, lines are counted instead of kept.
    pub fn log(&self, line: impl Into<String>) {
        let written = self.unit_log.log(line.into());
        self.remember(&written);
    }

    /// Says in short what the unit makes: a digest, a size, a number of objects. It is part of the unit's last event if
    /// that is a good one; a second call replaces the first.
    ///
    /// # Errors
    /// When it cannot be written as JSON, or is longer than [`MAX_PUBLISHED_BYTES`].
    pub fn summary(&self, summary: &impl Serialize) -> Result<(), Failure> {
        let json = publish::json(summary)?;
        if json.len() > MAX_PUBLISHED_BYTES {
            let bytes = json.len();
            return Err(Failure::message(format!(
                "the summary of a unit has {bytes} bytes; the most is {MAX_PUBLISHED_BYTES}"
            )));
        }
        self.unit_log.summary(json);
        Ok(())
    }

    /// Waits until the unit is called off.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Whether the unit is called off; long computations look now and then.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The unit's token, for code that takes one.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    fn remember(&self, written: &Written) {
        if *written == Written::Later {
            self.executor.write_later(&self.unit_log);
        }
    }
}

fn typed<T: Send + Sync + 'static>(key: &Key<T>, output: &Output) -> Result<Arc<T>, WaitError> {
    output.get().ok_or_else(|| WaitError::Type {
        key: key.untyped(),
        wanted: type_name::<T>(),
        found: output.type_name(),
    })
}

// === impl Wait ===

impl Wait<'_> {
    fn poll_with(&mut self, waker: &Waker) -> Option<Result<Output, WaitError>> {
        let from = self.cx.id;
        if let Some((on, ticket)) = self.registered {
            return self
                .cx
                .executor
                .change(|graph, effects| graph.look(from, on, ticket, waker, effects));
        }
        match self
            .cx
            .executor
            .change(|graph, effects| graph.ask(from, &self.key, waker, effects))
        {
            Asked::Settled(settled) => Some(settled),
            Asked::Waiting { on, ticket } => {
                self.registered = Some((on, ticket));
                None
            }
        }
    }
}

impl Future for Wait<'_> {
    type Output = Result<Output, WaitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        match self.poll_with(cx.waker()) {
            Some(settled) => {
                self.registered = None;
                Poll::Ready(settled)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some((on, ticket)) = self.registered {
            self.cx
                .executor
                .change(|graph, effects| graph.stop_waiting(self.cx.id, on, ticket, effects));
        }
    }
}
