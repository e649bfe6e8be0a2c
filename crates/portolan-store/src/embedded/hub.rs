//! The newest changes in memory, and the watches that follow them.
//!
//! ```text
//! writer ──publish──▶ ring: revisions 91 … 140 ◀──look── cursor at 120: served from the ring
//!                     log:  revisions  7 … 140 ◀──read── cursor at  30: reads the log until it has caught up
//!                                                        cursor at   5: Compacted
//! ```
//!
//! A watch is only a cursor without its own queue, so a slow reader uses no memory and delays nobody. If it falls
//! behind the ring, it reads the log; if it falls behind the log, it gets an error.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::view::event_bytes;
use crate::{Event, Revision, Span, Update};

/// Revisions that the ring holds.
const RING_REVISIONS: usize = 4_096;
/// Bytes of keys and values that the ring holds.
const RING_BYTES: usize = 16 << 20;

/// What one revision changed.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) revision: Revision,
    pub(super) events: Vec<Event>,
}

/// The newest changes, and a signal for each new one.
pub(super) struct Hub {
    ring: RwLock<Ring>,
    published: watch::Sender<Revision>,
}

struct Ring {
    /// The revision of the first entry, or the next one to come.
    first: Revision,
    changes: VecDeque<Arc<Changes>>,
    bytes: usize,
    revisions: usize,
}

/// Where a watch finds what it waits for.
#[derive(Debug)]
pub(super) enum Look {
    /// Here.
    Update(Update),
    /// In the log.
    Behind,
    /// Nowhere yet. All revisions before this one have been looked at.
    Wait(Revision),
}

impl Hub {
    /// A hub for a store at a revision.
    pub(super) fn new(revision: Revision) -> Self {
        Self::with_size(revision, RING_REVISIONS)
    }

    fn with_size(revision: Revision, revisions: usize) -> Self {
        Self {
            ring: RwLock::new(Ring {
                first: revision + 1,
                changes: VecDeque::new(),
                bytes: 0,
                revisions,
            }),
            published: watch::Sender::new(revision),
        }
    }

    /// Tells what was committed, in the order of revisions.
    pub(super) fn publish(&self, changes: Vec<Changes>) {
        let Some(newest) = changes.last().map(|changes| changes.revision) else {
            return;
        };
        let mut ring = self.ring.write();
        for changes in changes {
            ring.push(changes);
        }
        drop(ring);
        self.published.send_replace(newest);
    }

    /// The newest revision that was told, and a signal for the next.
    pub(super) fn subscribe(&self) -> watch::Receiver<Revision> {
        self.published.subscribe()
    }

    /// Looks for the first changes of a span's keys, from a revision on.
    pub(super) fn look(&self, span: &Span, next: Revision) -> Look {
        let ring = self.ring.read();
        if next < ring.first {
            return Look::Behind;
        }
        let skipped = usize::try_from(next - ring.first).unwrap_or(usize::MAX);
        for changes in ring.changes.iter().skip(skipped) {
            if let Some(update) = select(changes, span) {
                return Look::Update(update);
            }
        }
        Look::Wait(next.max(ring.first + ring.changes.len() as u64))
    }
}

impl Ring {
    fn push(&mut self, changes: Changes) {
        self.bytes += bytes(&changes);
        self.changes.push_back(Arc::new(changes));
        // The newest stays, however large it is.
        while self.changes.len() > self.revisions
            || (self.bytes > RING_BYTES && self.changes.len() > 1)
        {
            let Some(gone) = self.changes.pop_front() else {
                return;
            };
            self.bytes -= bytes(&gone);
            self.first = gone.revision + 1;
        }
    }
}

fn bytes(changes: &Changes) -> usize {
    changes.events.iter().map(event_bytes).sum()
}

fn select(changes: &Changes, span: &Span) -> Option<Update> {
    let events = changes
        .events
        .iter()
        .filter(|event| span.contains(event.key()));
    let events: Vec<Event> = events.cloned().collect();
    let revision = changes.revision;
    (!events.is_empty()).then_some(Update::Changes { revision, events })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changes(revision: Revision, key: &'static str) -> Changes {
        let key = key.into();
        Changes {
            revision,
            events: vec![Event::Delete {
                key,
                mod_revision: revision,
            }],
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        /// Whatever the order of publishing and looking, a cursor in the ring tells each of its changes once, and one that
        /// fell out of it is told so before it misses any.
        #[test]
        fn a_cursor_misses_nothing_without_being_told(steps in prop::collection::vec((any::<bool>(), 1_usize..6), 1..80)) {
            let hub = Hub::with_size(1, 4);
            let span = Span::prefix("/a/");
            let (mut newest, mut next, mut told) = (1, 2, Vec::new());
            for (is_publish, count) in steps {
                if is_publish {
                    let first = newest + 1;
                    newest += count as u64;
                    let key = |revision: u64| if revision.is_multiple_of(3) { "/b/x" } else { "/a/x" };
                    hub.publish((first..=newest).map(|revision| changes(revision, key(revision))).collect());
                    continue;
                }
                for _ in 0..count {
                    match hub.look(&span, next) {
                        Look::Update(update) => {
                            next = update.revision() + 1;
                            told.push(update.revision());
                        }
                        Look::Wait(to) => {
                            prop_assert_eq!(to, newest + 1);
                            next = to;
                        }
                        // What the log would give: everything between.
                        Look::Behind => {
                            told.extend((next..=newest).filter(|revision| !revision.is_multiple_of(3)));
                            next = newest + 1;
                        }
                    }
                }
            }
            let expected: Vec<u64> = (2..next).filter(|revision| !revision.is_multiple_of(3)).collect();
            prop_assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_cursor_of_the_future_waits_for_its_revision() {
        let hub = Hub::new(1);
        hub.publish(vec![changes(2, "/a/x"), changes(3, "/a/x")]);
        assert!(matches!(hub.look(&Span::all(), 9), Look::Wait(9)));
    }
}
