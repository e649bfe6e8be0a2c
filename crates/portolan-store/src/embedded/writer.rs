//! The one thread that writes.
//!
//! ```text
//! requests ──▶ queue ──▶ take all that wait ──▶ apply ──▶ one commit, synced ──▶ publish ──▶ answer all
//! ```
//!
//! There is no timer: an idle writer commits immediately, and requests that arrive while it syncs share the next
//! commit. No answer is sent before its batch is on disk, not even for a failed compare, because that compare may
//! have seen an unsynced write of the same batch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::EmbeddedOptions;
use super::batch::Batch;
use super::fault::{Fault, guarded};
use super::hub::{Changes, Hub};
use super::leases::Leases;
use super::newest::NewestState;
use super::open_database::OpenDatabase;
use crate::{LeaseId, Outcome, Revision, StoreError, Transaction};

/// Requests that wait for the writer; further ones wait in their callers.
pub(super) const QUEUE: usize = 4_096;
/// Requests in one commit.
const MAX_BATCH: usize = 1_024;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to be written.
pub(super) enum Request {
    Transact(Transaction, Reply<Outcome>),
    Grant(LeaseId, Duration, Reply<()>),
    Revoke(LeaseId, Reply<()>),
    Compact(Revision, Reply<()>),
}

/// An answer that waits for the commit.
enum Ready {
    Outcome(Reply<Outcome>, Result<Outcome, StoreError>),
    Plain(Reply<()>, Result<(), StoreError>),
}

/// What the writer shares with readers.
pub(super) struct Shared {
    /// Closed before the database is: fields are dropped in this order.
    pub(super) newest: NewestState,
    pub(super) database: OpenDatabase,
    pub(super) hub: Hub,
    pub(super) leases: Leases,
    /// Why nothing is written any more.
    pub(super) failure: watch::Sender<Option<String>>,
    /// Whether old history waits to be taken away.
    pub(super) has_old: watch::Sender<bool>,
}

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) options: EmbeddedOptions,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) revision: Revision,
    pub(super) compacted: Revision,
    /// When which revision was the newest, the oldest first.
    pub(super) marks: VecDeque<(Duration, Revision)>,
    /// Whether old history waits to be taken away.
    pub(super) has_old: bool,
}

impl Writer {
    /// Works until the engine is dropped.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            let is_open = self.wait(&mut batch).await;
            if !is_open {
                return;
            }
            while batch.len() < MAX_BATCH
                && let Ok(request) = self.requests.try_recv()
            {
                batch.push(request);
            }
            if !batch.is_empty() || self.has_old || self.is_due() {
                self.process(&mut batch);
            }
        }
    }

    /// Waits for a request, or until leases or history have to be looked after. Returns false when the engine is gone.
    async fn wait(&mut self, batch: &mut Vec<Request>) -> bool {
        if self.has_old {
            return !(self.requests.is_closed() && self.requests.is_empty());
        }
        let has_timers = !self.shared.leases.is_empty() || self.revision > self.compacted;
        let tick = tokio::time::sleep(self.options.tick);
        tokio::select! {
            biased;
            request = self.requests.recv() => match request {
                Some(request) => batch.push(request),
                None => return false,
            },
            () = tick, if has_timers => {}
        }
        true
    }

    fn process(&mut self, batch: &mut Vec<Request>) {
        if let Some(detail) = self.shared.failure.borrow().clone() {
            refuse(batch, &detail);
            return;
        }
        let mut ready = Vec::with_capacity(batch.len());
        let mut is_committing = false;
        let requests = std::mem::take(batch);
        let done = guarded(|| self.commit(requests, &mut ready, &mut is_committing));
        match done {
            Ok(changes) => {
                self.shared.has_old.send_replace(self.has_old);
                self.shared.hub.publish(changes);
                ready.into_iter().for_each(Ready::send);
            }
            Err(fault) => self.fail(&fault, ready, is_committing),
        }
    }

    /// Applies a batch and makes it durable.
    fn commit(
        &mut self,
        requests: Vec<Request>,
        ready: &mut Vec<Ready>,
        is_committing: &mut bool,
    ) -> Result<Vec<Changes>, Fault> {
        let shared = Arc::clone(&self.shared);
        let mut transaction = shared.database.begin_write()?;
        transaction.set_two_phase_commit(true);
        // The state of the allocator goes with each commit, so that a start after a crash does not walk the whole file.
        transaction.set_quick_repair(self.options.quick_repair);
        let mut batch = Batch::open(&transaction, self.options.max_bytes)?;
        for lease in shared.leases.take_ended() {
            batch.end_lease(lease)?;
        }
        for request in requests {
            self.apply(&mut batch, request, ready)?;
        }
        self.look_after_history(&mut batch)?;
        self.revision = batch.revision();
        let (changes, is_changed) = batch.finish()?;
        if is_changed {
            *is_committing = true;
            shared.newest.begin_commit();
            transaction.commit()?;
            shared.newest.end_commit();
        } else {
            transaction.abort()?;
        }
        Ok(changes)
    }

    fn apply(
        &mut self,
        batch: &mut Batch<'_>,
        request: Request,
        ready: &mut Vec<Ready>,
    ) -> Result<(), Fault> {
        let leases = &self.shared.leases;
        match request {
            Request::Transact(transaction, reply) => {
                // The reply is kept first: an answer must go out also when the disk fails in between.
                ready.push(Ready::Outcome(reply, Err(not_written())));
                let outcome = batch.transact(&transaction, leases)?;
                if let Some(Ready::Outcome(_, answer)) = ready.last_mut() {
                    *answer = outcome;
                }
            }
            Request::Grant(lease, granted, reply) => {
                ready.push(Ready::Plain(reply, Ok(())));
                batch.grant(lease, granted)?;
                leases.start(lease, granted);
            }
            Request::Revoke(lease, reply) => {
                let exists = leases.end(lease);
                let answer = if exists {
                    Ok(())
                } else {
                    Err(StoreError::NoLease { lease })
                };
                ready.push(Ready::Plain(reply, answer));
                if exists {
                    batch.end_lease(lease)?;
                }
            }
            Request::Compact(revision, reply) => {
                ready.push(Ready::Plain(reply, Ok(())));
                let answer = batch.compact(revision)?;
                if answer.is_ok() {
                    self.compacted = revision;
                    self.has_old = true;
                }
                if let Some(Ready::Plain(_, kept)) = ready.last_mut() {
                    *kept = answer;
                }
            }
        }
        Ok(())
    }

    /// Compacts what is older than the options ask for, and takes a slice of it away.
    fn look_after_history(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault> {
        if let Some(target) = self.due(batch.revision())
            && batch.compact(target)?.is_ok()
        {
            self.compacted = target;
            self.has_old = true;
        }
        if self.has_old {
            self.has_old = batch.forget()?;
        }
        Ok(())
    }

    /// Whether there is something to do without a request.
    fn is_due(&self) -> bool {
        self.shared.leases.has_ended() || self.is_mark_due(self.shared.leases.now())
    }

    fn is_mark_due(&self, now: Duration) -> bool {
        let step = self.options.history_time / 10;
        self.marks.back().is_none_or(|(at, _)| now >= *at + step)
    }

    /// The revision up to which history is both old enough and far enough back.
    fn due(&mut self, revision: Revision) -> Option<Revision> {
        let now = self.shared.leases.now();
        if self.is_mark_due(now) {
            self.marks.push_back((now, revision));
        }
        let mut aged = None;
        while let Some((at, marked)) = self.marks.front().copied() {
            if now < at + self.options.history_time {
                break;
            }
            aged = Some(marked);
            self.marks.pop_front();
        }
        let target = aged?.min(revision.saturating_sub(self.options.history_revisions));
        (target > self.compacted).then_some(target)
    }

    /// Tells everybody of the batch, and writes nothing more.
    fn fail(&mut self, fault: &Fault, ready: Vec<Ready>, is_committing: bool) {
        let detail = fault.detail().to_owned();
        tracing::error!(detail, "the store stops: a commit failed");
        self.shared.failure.send_replace(Some(detail.clone()));
        let error = || {
            let detail = detail.clone();
            if is_committing {
                StoreError::Unknown {
                    operation: None,
                    detail,
                }
            } else {
                StoreError::Stopped { detail }
            }
        };
        for answer in ready {
            match answer {
                Ready::Outcome(reply, _) => drop(reply.send(Err(error()))),
                Ready::Plain(reply, _) => drop(reply.send(Err(error()))),
            }
        }
    }
}

impl Ready {
    /// A caller that has stopped waiting gets no answer.
    fn send(self) {
        match self {
            Self::Outcome(reply, answer) => drop(reply.send(answer)),
            Self::Plain(reply, answer) => drop(reply.send(answer)),
        }
    }
}

fn not_written() -> StoreError {
    StoreError::Stopped {
        detail: "the batch of this request was not written".to_owned(),
    }
}

fn refuse(batch: &mut Vec<Request>, detail: &str) {
    let error = || StoreError::Stopped {
        detail: detail.to_owned(),
    };
    for request in batch.drain(..) {
        match request {
            Request::Transact(_, reply) => drop(reply.send(Err(error()))),
            Request::Grant(_, _, reply)
            | Request::Revoke(_, reply)
            | Request::Compact(_, reply) => {
                drop(reply.send(Err(error())));
            }
        }
    }
}
