//! Operation slots: how a process finds out whether a write with a lost answer took effect.
//!
//! ```text
//! write:  when slot is unchanged since R, and the caller's compares ──▶ the caller's writes, slot := op 7
//! lost?
//! fence:  when slot is unchanged since R ──▶ slot := fence 7              done: the write never happened and never will
//!         otherwise read the slot ──▶ "op 7", changed at S                the write happened, at revision S
//! ```
//!
//! A slot is a key that only one process writes and that nobody watches. The write and its fence compare the same
//! revision of the slot, so at most one of them can take effect, however late the network delivers them. A mark
//! inside the written value is not enough: another client may have overwritten or deleted the value since, and a
//! delete has no mark.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::keys::OPERATIONS;
use crate::{Compare, Page, Range, Resolution, Revision, StoreError, Transaction};

/// Writes of one process that can be under way at once.
pub(crate) const SLOTS: usize = 64;
/// Resolved operations that a process remembers for callers that ask later.
const REMEMBERED: usize = 1_024;

/// The name of one attempt to write, good for finding out what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperationId {
    process: u128,
    slot: u8,
    /// The slot's revision that the attempt compared.
    known: Revision,
    sequence: u64,
}

impl fmt::Display for OperationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            process,
            slot,
            known,
            sequence,
        } = self;
        write!(out, "{process:032x}/{slot}/{known}/{sequence}")
    }
}

impl OperationId {
    fn key(&self) -> Bytes {
        format!("{OPERATIONS}{:032x}/{}", self.process, self.slot).into()
    }

    fn mark(&self) -> Bytes {
        format!("op {}", self.sequence).into()
    }

    fn fence_mark(&self) -> Bytes {
        format!("fence {}", self.sequence).into()
    }

    /// Adds the slot to a transaction: its compare, its new value, and a look at it when the compares fail.
    pub(crate) fn guard(&self, transaction: Transaction) -> Transaction {
        let key = self.key();
        let compare = Compare::unchanged(key.clone(), self.known);
        transaction
            .when(compare)
            .put(key.clone(), self.mark())
            .otherwise(Range::key(key))
    }

    /// The transaction that keeps the write from happening, if it has not.
    pub(crate) fn fence(&self) -> Transaction {
        let key = self.key();
        Transaction::replace(key.clone(), self.known, self.fence_mark()).otherwise(Range::key(key))
    }

    /// A look at the slot without fencing it.
    pub(crate) fn look(&self) -> Range {
        Range::key(self.key())
    }

    /// What a slot that has changed says of the write.
    pub(crate) fn read(&self, slot: &Page) -> SlotState {
        match slot.records.first() {
            None if self.known == 0 => SlotState::Untouched,
            None => SlotState::Gone,
            Some(record) if record.mod_revision == self.known => SlotState::Untouched,
            Some(record) if record.value == self.mark() => SlotState::Happened(record.mod_revision),
            Some(record) if record.value == self.fence_mark() => {
                SlotState::Fenced(record.mod_revision)
            }
            Some(_) => SlotState::MovedOn,
        }
    }
}

/// What a slot says of a write.
pub(crate) enum SlotState {
    /// The slot is as it was before the write.
    Untouched,
    /// The write did it.
    Happened(Revision),
    /// A fence did it.
    Fenced(Revision),
    /// Somebody removed the slot of a process taken for dead.
    Gone,
    /// Later writes went through it.
    MovedOn,
}

/// The slots of this process.
pub(crate) struct SlotPool {
    process: u128,
    permits: Semaphore,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    sequence: u64,
    free: Vec<Slot>,
    /// Slots of writes whose outcome nobody waited for or could find out.
    doubtful: VecDeque<OperationId>,
    resolved: VecDeque<(OperationId, Resolution)>,
}

#[derive(Clone, Copy)]
struct Slot {
    number: u8,
    known: Revision,
}

impl SlotPool {
    pub(crate) fn new(process: u128) -> Self {
        let free = (0..SLOTS as u8).map(|number| Slot { number, known: 0 });
        Self {
            process,
            permits: Semaphore::new(SLOTS),
            slots: Mutex::new(Slots {
                free: free.collect(),
                ..Slots::default()
            }),
        }
    }

    /// Waits for a slot that no other write uses.
    pub(crate) async fn take(&self) -> Taken<'_> {
        let permit = self.permits.acquire().await.expect("never closed");
        let mut slots = self.slots.lock();
        slots.sequence += 1;
        let sequence = slots.sequence;
        // A clean slot first; with a permit in hand, one of the two lists holds something.
        let (doubt, slot) = match slots.free.pop() {
            Some(slot) => (None, slot),
            None => {
                let doubt = slots
                    .doubtful
                    .pop_front()
                    .expect("as many slots as permits");
                let slot = Slot {
                    number: doubt.slot,
                    known: doubt.known,
                };
                (Some(doubt), slot)
            }
        };
        let operation = OperationId {
            process: self.process,
            slot: slot.number,
            known: slot.known,
            sequence,
        };
        Taken {
            pool: self,
            operation: doubt.unwrap_or(operation),
            is_doubtful: doubt.is_some(),
            is_settled: false,
            _permit: permit,
        }
    }

    /// Takes one particular write whose outcome is not known, to find it out.
    pub(crate) async fn take_doubtful(&self, operation: OperationId) -> Option<Taken<'_>> {
        let permit = self.permits.acquire().await.expect("never closed");
        let mut slots = self.slots.lock();
        let at = slots
            .doubtful
            .iter()
            .position(|doubt| *doubt == operation)?;
        slots.doubtful.remove(at);
        Some(Taken {
            pool: self,
            operation,
            is_doubtful: true,
            is_settled: false,
            _permit: permit,
        })
    }

    /// What became of a write, if that has been found out.
    pub(crate) fn resolution(&self, operation: &OperationId) -> Option<Resolution> {
        let slots = self.slots.lock();
        let mut found = slots.resolved.iter().rev();
        found
            .find(|(id, _)| id == operation)
            .map(|(_, resolution)| *resolution)
    }

    pub(crate) fn process(&self) -> u128 {
        self.process
    }
}

/// A slot in use. Dropped before it is settled, as when a caller stops waiting, it counts as doubtful.
pub(crate) struct Taken<'a> {
    pool: &'a SlotPool,
    pub(crate) operation: OperationId,
    pub(crate) is_doubtful: bool,
    is_settled: bool,
    _permit: SemaphorePermit<'a>,
}

impl Taken<'_> {
    /// The write did not touch the slot, and no copy of it is under way any more.
    pub(crate) fn release(mut self) {
        self.give_back(self.operation.known);
    }

    /// The slot was changed at `revision`, by the write or its fence.
    pub(crate) fn settle(mut self, resolution: Resolution, revision: Revision) {
        self.remember(resolution);
        self.give_back(revision);
    }

    /// Begins a new write in the same slot, after the one before it has been resolved.
    pub(crate) fn renew(&mut self, resolution: Resolution, revision: Revision) {
        self.remember(resolution);
        let mut slots = self.pool.slots.lock();
        slots.sequence += 1;
        self.is_doubtful = false;
        self.operation.known = revision;
        self.operation.sequence = slots.sequence;
    }

    fn remember(&self, resolution: Resolution) {
        let mut slots = self.pool.slots.lock();
        slots.resolved.push_back((self.operation, resolution));
        if slots.resolved.len() > REMEMBERED {
            slots.resolved.pop_front();
        }
    }

    fn give_back(&mut self, known: Revision) {
        self.is_settled = true;
        self.pool.slots.lock().free.push(Slot {
            number: self.operation.slot,
            known,
        });
    }

    /// An error that lets the caller ask again; the slot stays doubtful.
    pub(crate) fn unknown(self, detail: String) -> StoreError {
        StoreError::Unknown {
            operation: Some(self.operation),
            detail,
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.pool.slots.lock().doubtful.push_back(self.operation);
        }
    }
}
