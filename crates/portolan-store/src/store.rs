//! The store that callers use: an engine with limits, deadlines and operation slots.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::keys::OPERATIONS;
use crate::limits::MAX_LEASE_SECONDS;
use crate::slot::{SlotPool, SlotState, Taken};
use crate::{
    Engine, EngineStatus, LeaseId, LeaseState, OperationId, Outcome, Page, Range, Record, Refusal,
    Revision, Span, StoreError, Transaction, Watcher,
};

/// How long a write looks for its outcome before its caller is told that it is not known.
const WRITE_DEADLINE: Duration = Duration::from_secs(15);
/// Between two attempts to find an outcome out. It does not grow: somebody waits for the answer, and a deadline ends it.
const PAUSE: Duration = Duration::from_millis(50);

/// What became of a write whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It happened, at this revision.
    Happened(Revision),
    /// It did not happen and never will.
    Never,
}

/// Keys with revisions, transactions, watches and leases. Cheap to clone; clones share their operation slots.
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    slots: Arc<SlotPool>,
    deadline: Duration,
}

impl Store {
    /// A store on an engine.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            slots: Arc::new(SlotPool::new(rand::random())),
            deadline: WRITE_DEADLINE,
        }
    }

    /// The same with another limit to how long a write looks for its outcome.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Reads a page.
    pub async fn range(&self, range: Range) -> Result<Page, StoreError> {
        range.check()?;
        self.engine.range(range).await
    }

    /// Reads one key as it is now; `None` if it does not exist.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Record>, StoreError> {
        Ok(self.range(Range::key(key)).await?.records.pop())
    }

    /// Reads all keys of a span at one revision, page by page, and gives each record to `visit`. Returns the revision.
    pub async fn scan(
        &self,
        span: &Span,
        at: Option<Revision>,
        mut visit: impl FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<Revision, StoreError> {
        let mut range = Range::new(span.clone());
        range.at = at;
        loop {
            let page = self.range(range.clone()).await?;
            let revision = *range.at.get_or_insert(page.revision);
            let last = page.records.last().map(|record| record.key.clone());
            page.records.into_iter().try_for_each(&mut visit)?;
            match last {
                Some(last) if page.more => range.span = range.span.after(&last),
                _ => return Ok(revision),
            }
        }
    }

    /// Compares, then writes and reads.
    ///
    /// When an answer is lost, the store finds out what became of the write, and makes it again if it did not happen. Only
    /// when that cannot be found out in time is the error [`StoreError::Unknown`], with a name to
    /// [`resolve`](Self::resolve) later.
    pub async fn commit(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        transaction.check()?;
        if !transaction.writes() || !self.engine.loses_answers() {
            return self.engine.transact(transaction).await;
        }
        let deadline = Instant::now() + self.deadline;
        let mut slot = tokio::time::timeout_at(deadline, self.slots.take())
            .await
            .map_err(|_| all_slots_in_use())?;
        if slot.is_doubtful {
            match self.find_out(&slot.operation, deadline).await {
                Ok((resolution, revision)) => slot.renew(resolution, revision),
                // The slot keeps its doubt; this write has not been sent.
                Err(error) => return Err(unsent(error)),
            }
        }
        self.write(slot, transaction, deadline).await
    }

    async fn write(
        &self,
        mut slot: Taken<'_>,
        transaction: Transaction,
        deadline: Instant,
    ) -> Result<Outcome, StoreError> {
        loop {
            let guarded = slot.operation.guard(transaction.clone());
            let lost = match self.engine.transact(guarded).await {
                Ok(outcome) if outcome.succeeded => {
                    let revision = outcome.revision;
                    slot.settle(Resolution::Happened(revision), revision);
                    return Ok(outcome);
                }
                Ok(outcome) => match compares_failed(slot, outcome) {
                    Attempt::Answer(outcome) => return Ok(outcome),
                    Attempt::Happened(revision) => return self.done(&transaction, revision).await,
                    Attempt::Again(renewed) => {
                        slot = renewed;
                        continue;
                    }
                },
                Err(StoreError::Full { detail }) => {
                    return self.full(slot, transaction, detail).await;
                }
                Err(StoreError::Unknown { detail, .. }) => detail,
                Err(error) => {
                    slot.release();
                    return Err(error);
                }
            };
            match self.find_out(&slot.operation, deadline).await {
                Ok((Resolution::Happened(revision), _)) => {
                    slot.settle(Resolution::Happened(revision), revision);
                    return self.done(&transaction, revision).await;
                }
                Ok((Resolution::Never, revision)) => slot.renew(Resolution::Never, revision),
                Err(_) => return Err(slot.unknown(lost)),
            }
            if Instant::now() >= deadline {
                slot.release();
                return Err(StoreError::Unavailable { detail: lost });
            }
        }
    }

    /// The outcome of a write that is known to have happened, though its answer is lost.
    async fn done(
        &self,
        transaction: &Transaction,
        revision: Revision,
    ) -> Result<Outcome, StoreError> {
        let mut pages = Vec::with_capacity(transaction.reads.len());
        for read in &transaction.reads {
            let read = read.clone();
            let at = read.at.unwrap_or(revision);
            pages.push(self.engine.range(read.at(at)).await?);
        }
        Ok(Outcome {
            succeeded: true,
            revision,
            pages,
        })
    }

    /// What to make of a full store. etcd may answer so though it did the write that reached its limit, and it takes
    /// deletes only without a put beside them.
    async fn full(
        &self,
        slot: Taken<'_>,
        transaction: Transaction,
        detail: String,
    ) -> Result<Outcome, StoreError> {
        let Ok(looked) = self.engine.range(slot.operation.look()).await else {
            return Err(slot.unknown(detail));
        };
        if let SlotState::Happened(revision) = slot.operation.read(&looked) {
            slot.settle(Resolution::Happened(revision), revision);
            return self.done(&transaction, revision).await;
        }
        slot.release();
        if transaction.puts() {
            return Err(StoreError::Full { detail });
        }
        self.engine.transact(transaction).await
    }

    /// Finds out what became of a write: by a fence, again and again until one is answered. Returns the slot's revision too.
    async fn find_out(
        &self,
        operation: &OperationId,
        deadline: Instant,
    ) -> Result<(Resolution, Revision), StoreError> {
        loop {
            let error = match self.engine.transact(operation.fence()).await {
                Ok(outcome) if outcome.succeeded => {
                    return Ok((Resolution::Never, outcome.revision));
                }
                Ok(outcome) => {
                    let looked = outcome.pages.last().cloned().unwrap_or_default();
                    match operation.read(&looked) {
                        SlotState::Happened(revision) => {
                            return Ok((Resolution::Happened(revision), revision));
                        }
                        SlotState::Fenced(revision) => return Ok((Resolution::Never, revision)),
                        SlotState::Untouched => StoreError::Unavailable {
                            detail: "a fence was answered without effect".to_owned(),
                        },
                        SlotState::Gone | SlotState::MovedOn => {
                            return Err(StoreError::Unknown {
                                operation: None,
                                detail: format!("slot of {operation} has been used since"),
                            });
                        }
                    }
                }
                Err(error) => error,
            };
            if Instant::now() + PAUSE >= deadline {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Finds out what became of a write that ended as [`StoreError::Unknown`].
    pub async fn resolve(&self, operation: OperationId) -> Result<Resolution, StoreError> {
        if let Some(resolution) = self.slots.resolution(&operation) {
            return Ok(resolution);
        }
        let deadline = Instant::now() + self.deadline;
        let Some(slot) = self.slots.take_doubtful(operation).await else {
            // Of another process, or one that was resolved too long ago.
            let (resolution, _) = self.find_out(&operation, deadline).await?;
            return Ok(resolution);
        };
        let (resolution, revision) = self.find_out(&operation, deadline).await?;
        slot.settle(resolution, revision);
        Ok(resolution)
    }

    /// Deletes the operation slots of other processes that did not change since `before`. Returns how many.
    ///
    /// A process that is alive after all only has to begin its slots anew; a write of it whose outcome it did not know stays
    /// unknown. So `before` should lie hours back.
    pub async fn clear_slots(&self, before: Revision) -> Result<usize, StoreError> {
        let mut old = Vec::new();
        let own = format!("{OPERATIONS}{:032x}/", self.slots.process());
        self.scan(&Span::prefix(OPERATIONS), None, |record| {
            if record.mod_revision < before && !record.key.starts_with(own.as_bytes()) {
                old.push((record.key, record.mod_revision));
            }
            Ok(())
        })
        .await?;
        let mut cleared = 0;
        for (key, revision) in old {
            let outcome = self.commit(Transaction::remove(key, revision)).await?;
            cleared += usize::from(outcome.succeeded);
        }
        Ok(cleared)
    }

    /// Follows the keys of a span from a revision on, that one included.
    pub async fn watch(&self, span: Span, from: Revision) -> Result<Watcher, StoreError> {
        span.check()?;
        if from == 0 {
            return Err(Refusal::RevisionZero.into());
        }
        self.engine.watch(span, from).await
    }

    /// Forgets what only reads before `revision` need.
    pub async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.engine.compact(revision).await
    }

    /// Grants a lease; returns its name and how long it lives, which is at least `time`.
    pub async fn grant(&self, time: Duration) -> Result<(LeaseId, Duration), StoreError> {
        let seconds = time.as_secs();
        if seconds == 0 || seconds > MAX_LEASE_SECONDS {
            return Err(Refusal::LeaseTime { seconds }.into());
        }
        self.engine.grant(time).await
    }

    /// Starts a lease's time again and returns what it has now.
    pub async fn keep_alive(&self, lease: LeaseId) -> Result<Duration, StoreError> {
        self.engine.keep_alive(lease).await
    }

    /// Ends a lease; its keys go in one revision.
    pub async fn revoke(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.engine.revoke(lease).await
    }

    /// A lease as it stands.
    pub async fn lease(&self, lease: LeaseId) -> Result<LeaseState, StoreError> {
        self.engine.lease(lease).await
    }

    /// The engine as it stands.
    pub async fn status(&self) -> Result<EngineStatus, StoreError> {
        self.engine.status().await
    }
}

/// What an answer with failed compares means for the loop that writes.
enum Attempt<'a> {
    Answer(Outcome),
    Happened(Revision),
    Again(Taken<'a>),
}

/// Tells a failed compare of the caller from one of the slot. The look at the slot is the last page.
fn compares_failed(mut slot: Taken<'_>, mut outcome: Outcome) -> Attempt<'_> {
    let looked = outcome.pages.pop().unwrap_or_default();
    match slot.operation.read(&looked) {
        SlotState::Untouched => {
            slot.release();
            Attempt::Answer(outcome)
        }
        // An earlier copy of this write arrived before the one that was answered.
        SlotState::Happened(revision) => {
            slot.settle(Resolution::Happened(revision), revision);
            Attempt::Happened(revision)
        }
        SlotState::Fenced(revision) => {
            slot.renew(Resolution::Never, revision);
            Attempt::Again(slot)
        }
        // Somebody cleared it away. This attempt compared it, so it did nothing.
        SlotState::Gone => {
            slot.renew(Resolution::Never, 0);
            Attempt::Again(slot)
        }
        SlotState::MovedOn => {
            let revision = looked
                .records
                .first()
                .map_or(0, |record| record.mod_revision);
            slot.renew(Resolution::Never, revision);
            Attempt::Again(slot)
        }
    }
}

fn all_slots_in_use() -> StoreError {
    StoreError::Unavailable {
        detail: "too many writes are under way".to_owned(),
    }
}

/// An error of finding out about an earlier write, told to a write that was not sent.
fn unsent(error: StoreError) -> StoreError {
    match error {
        StoreError::Unknown { detail, .. } => StoreError::Unavailable { detail },
        other => other,
    }
}
