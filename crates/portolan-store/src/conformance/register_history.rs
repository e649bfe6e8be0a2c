//! What clients and a watch saw of a few keys while faults were made, and the checks of it.
//!
//! ```text
//! clients ──RegisterCounters──▶ KeyedCall ─┐
//! watch ──▶ ToldChange ────────────────────┼─▶ RegisterHistory ──check──▶ how much was seen, or the first error
//! reads at the end ────────────────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::linear::{HistoryVerdict, RegisterAction, RegisterCall, Seen, judge};
use crate::Revision;

/// More than enough: a history without a mistake takes about as many steps as it has writes.
const STEPS: usize = 2_000_000;

/// What the clients of one history share.
#[derive(Debug, Default)]
pub struct RegisterCounters {
    clock: AtomicU64,
    value: AtomicU64,
    acknowledged: AtomicU64,
    has_ended: AtomicBool,
}

/// An operation of a client.
#[derive(Debug, Clone, Copy)]
pub struct KeyedCall {
    /// The number of the key.
    pub key: usize,
    /// What was done.
    pub call: RegisterCall,
    /// The revision that a done swap was told; 0 for other operations.
    pub revision: Revision,
}

/// A change that the watch told.
#[derive(Debug, Clone, Copy)]
pub struct ToldChange {
    /// Its revision.
    pub revision: Revision,
    /// The number of the key.
    pub key: usize,
    /// What the key is now.
    pub seen: Seen,
}

/// Why a history cannot have happened in a store that keeps its promises.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum HistoryError {
    /// The revisions of a watch do not rise.
    #[error("revisions are told twice or in another order")]
    Order,
    /// The watch told an acknowledged write otherwise, or not at all.
    #[error("the write at revision {revision} is not told as it was made: {told:?}")]
    WriteNotTold {
        /// The revision that the client was told.
        revision: Revision,
        /// The key and what it became at that revision by the watch.
        told: Option<(usize, Seen)>,
    },
    /// The watch told a change that no client asked for.
    #[error("revision {revision}: nobody made {change:?}")]
    NobodyMade {
        /// The revision of the change.
        revision: Revision,
        /// The key and what it became.
        change: (usize, Seen),
    },
    /// The last change that was told is not what was read at the end.
    #[error("key {key}: the watch ends with {told:?}, and {read:?} was read")]
    Last {
        /// The number of the key.
        key: usize,
        /// What the watch told last.
        told: Seen,
        /// What was read.
        read: Seen,
    },
    /// No order of the operations gives the answers that clients got.
    #[error("key {key}: no order explains {call:?}, near {near:#?}")]
    NoOrder {
        /// The number of the key.
        key: usize,
        /// The first operation that fits nowhere.
        call: RegisterCall,
        /// Operations around it.
        near: Vec<RegisterCall>,
    },
    /// The search for an order was given up.
    #[error("key {key}: not found out in {STEPS} steps")]
    TooHard {
        /// The number of the key.
        key: usize,
    },
}

/// What was seen from the beginning to the end.
#[derive(Debug, Default)]
pub struct RegisterHistory {
    /// The operations of all clients.
    pub calls: Vec<KeyedCall>,
    /// What the watch told, in its order.
    pub told: Vec<ToldChange>,
    /// What was read of each key at the end.
    pub last: Vec<Seen>,
}

impl RegisterCounters {
    /// Orders starts and ends as they really were.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// A value that no other operation writes.
    pub fn fresh_value(&self) -> u64 {
        self.value.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Counts a write that was acknowledged.
    pub fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    /// Writes that were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Asks the clients to end.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// Whether they are to end.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// An operation that began at `start` and ends now.
    pub fn call(
        &self,
        key: usize,
        start: u64,
        action: RegisterAction,
        revision: Revision,
    ) -> KeyedCall {
        let end = self.tick();
        KeyedCall {
            key,
            call: RegisterCall { start, end, action },
            revision,
        }
    }
}

impl RegisterHistory {
    /// Checks everything that was seen; returns in words how much that was.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<String, HistoryError> {
        self.check_watch()?;
        for key in 0..self.last.len() {
            self.check_key(key)?;
        }
        let is_unknown =
            |done: &&KeyedCall| matches!(done.call.action, RegisterAction::Swap { done: None, .. });
        Ok(format!(
            "{} operations, {} changes told, {} never found out",
            self.calls.len(),
            self.told.len(),
            self.calls.iter().filter(is_unknown).count()
        ))
    }

    fn check_key(&self, key: usize) -> Result<(), HistoryError> {
        let own = self.calls.iter().filter(|done| done.key == key);
        let calls: Vec<RegisterCall> = own.map(|done| done.call).collect();
        match judge(&calls, STEPS) {
            HistoryVerdict::Linearizable => Ok(()),
            HistoryVerdict::NotLinearizable(at) => Err(HistoryError::NoOrder {
                key,
                call: calls[at],
                near: calls[at.saturating_sub(5)..]
                    .iter()
                    .take(10)
                    .copied()
                    .collect(),
            }),
            HistoryVerdict::TooHard => Err(HistoryError::TooHard { key }),
        }
    }

    /// Every acknowledged write is told once, at its revision; what else is told was never found out; revisions rise.
    fn check_watch(&self) -> Result<(), HistoryError> {
        let mut pairs = self.told.windows(2);
        if !pairs.all(|pair| pair[0].revision < pair[1].revision) {
            return Err(HistoryError::Order);
        }
        let told = self.told.iter();
        let mut told: BTreeMap<Revision, (usize, Seen)> = told
            .map(|change| (change.revision, (change.key, change.seen)))
            .collect();
        let mut open = BTreeSet::new();
        for done in &self.calls {
            let RegisterAction::Swap {
                new, done: is_done, ..
            } = done.call.action
            else {
                continue;
            };
            match is_done {
                Some(true) => {
                    let revision = done.revision;
                    let told = told.remove(&revision);
                    if told != Some((done.key, new)) {
                        return Err(HistoryError::WriteNotTold { revision, told });
                    }
                }
                Some(false) => {}
                None => drop(open.insert((done.key, new))),
            }
        }
        for (revision, change) in told {
            if !open.contains(&change) {
                return Err(HistoryError::NobodyMade { revision, change });
            }
        }
        for (key, last) in self.last.iter().enumerate() {
            let mut own = self.told.iter().rev().filter(|change| change.key == key);
            let told = own.next().and_then(|change| change.seen);
            if told != *last {
                return Err(HistoryError::Last {
                    key,
                    told,
                    read: *last,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One key that is created at revision 1 and read.
    fn history() -> RegisterHistory {
        let counters = RegisterCounters::default();
        let new = Some(counters.fresh_value());
        let create = RegisterAction::Swap {
            expected: None,
            new,
            done: Some(true),
        };
        let start = counters.tick();
        let created = counters.call(0, start, create, 1);
        let start = counters.tick();
        let read = counters.call(0, start, RegisterAction::Read(new), 0);
        RegisterHistory {
            calls: vec![created, read],
            told: vec![ToldChange {
                revision: 1,
                key: 0,
                seen: new,
            }],
            last: vec![new],
        }
    }

    #[test]
    fn a_history_that_could_have_happened_is_accepted() {
        let said = history().check().unwrap();
        assert_eq!(said, "2 operations, 1 changes told, 0 never found out");
    }

    #[test]
    fn a_write_that_the_watch_does_not_tell_is_an_error() {
        let mut history = history();
        history.told.clear();
        let error = history.check().unwrap_err();
        assert!(matches!(
            error,
            HistoryError::WriteNotTold {
                revision: 1,
                told: None
            }
        ));
    }

    #[test]
    fn a_change_that_nobody_made_is_an_error() {
        let mut history = history();
        let mut more = history.told[0];
        more.revision = 2;
        history.told.push(more);
        let error = history.check().unwrap_err();
        assert!(matches!(
            error,
            HistoryError::NobodyMade { revision: 2, .. }
        ));
    }

    #[test]
    fn a_read_of_an_old_value_is_an_error() {
        let mut history = history();
        history.calls[1].call.action = RegisterAction::Read(None);
        let error = history.check().unwrap_err();
        assert!(matches!(error, HistoryError::NoOrder { key: 0, .. }));
    }
}
