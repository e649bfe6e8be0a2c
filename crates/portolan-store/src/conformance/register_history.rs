//! What clients and a watch saw of a few keys while faults were made, and the checks of it.
//!
//! ```text
//! clients ──RegisterCounters──▶ KeyedCall ─┐
//! watch ──▶ ToldChange ────────────────────┼─▶ RegisterHistory ──check──▶ nothing, or a panic that names the first error
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
    /// # Panics
    /// At the first error.
    pub fn check(&self) -> String {
        self.check_watch();
        for key in 0..self.last.len() {
            self.check_key(key);
        }
        let is_unknown =
            |done: &&KeyedCall| matches!(done.call.action, RegisterAction::Swap { done: None, .. });
        format!(
            "{} operations, {} changes told, {} never found out",
            self.calls.len(),
            self.told.len(),
            self.calls.iter().filter(is_unknown).count()
        )
    }

    fn check_key(&self, key: usize) {
        let own = self.calls.iter().filter(|done| done.key == key);
        let calls: Vec<RegisterCall> = own.map(|done| done.call).collect();
        match judge(&calls, STEPS) {
            HistoryVerdict::Linearizable => {}
            HistoryVerdict::NotLinearizable(at) => {
                let near: Vec<_> = calls[at.saturating_sub(5)..].iter().take(10).collect();
                panic!(
                    "key {key}: no order explains {:?}, near {near:#?}",
                    calls[at]
                );
            }
            HistoryVerdict::TooHard => panic!("key {key}: not found out in {STEPS} steps"),
        }
    }

    /// Every acknowledged write is told once, at its revision; what else is told was never found out; revisions rise.
    fn check_watch(&self) {
        let mut pairs = self.told.windows(2);
        let is_ordered = pairs.all(|pair| pair[0].revision < pair[1].revision);
        assert!(is_ordered, "revisions are told twice or in another order");
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
                Some(true) => assert_eq!(
                    told.remove(&done.revision),
                    Some((done.key, new)),
                    "the write at revision {} is not told as it was made",
                    done.revision
                ),
                Some(false) => {}
                None => drop(open.insert((done.key, new))),
            }
        }
        for (revision, change) in told {
            assert!(
                open.contains(&change),
                "revision {revision}: nobody made {change:?}"
            );
        }
        for (key, last) in self.last.iter().enumerate() {
            let mut own = self.told.iter().rev().filter(|change| change.key == key);
            let seen = own.next().and_then(|change| change.seen);
            assert_eq!(seen, *last, "key {key}");
        }
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
        history().check();
    }

    #[test]
    #[should_panic(expected = "is not told as it was made")]
    fn a_write_that_the_watch_does_not_tell_is_an_error() {
        let mut history = history();
        history.told.clear();
        history.check();
    }

    #[test]
    #[should_panic(expected = "nobody made")]
    fn a_change_that_nobody_made_is_an_error() {
        let mut history = history();
        let mut more = history.told[0];
        more.revision = 2;
        history.told.push(more);
        history.check();
    }

    #[test]
    #[should_panic(expected = "no order explains")]
    fn a_read_of_an_old_value_is_an_error() {
        let mut history = history();
        history.calls[1].call.action = RegisterAction::Read(None);
        history.check();
    }
}
