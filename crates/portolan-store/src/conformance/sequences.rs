//! Random sequences of calls: each answer is compared with the model, and at the end everything that watches
//! reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use tokio::runtime::Runtime;

use super::model::Model;
use super::{Extent, next};
use crate::{
    Compare, CompareField, Engine, Event, LeaseId, Range, Revision, Span, StoreError, Transaction,
    Update, Watcher, Write,
};

/// A call, with keys and leases by number.
#[derive(Debug, Clone)]
enum Action {
    Transact {
        compares: Vec<(u8, bool, Guess)>,
        writes: Vec<(u8, Change)>,
        reads: Vec<Read>,
        otherwise: Vec<Read>,
    },
    Range(Read),
    Compact(u8),
    Grant,
    Revoke(u8),
    /// Opens a watch of some keys from some revisions back.
    Watch(u8, u8),
}

/// What a compare takes a revision for.
#[derive(Debug, Clone, Copy)]
enum Guess {
    Right,
    Absent,
    Wrong,
}

#[derive(Debug, Clone)]
enum Change {
    Put(u8),
    PutLeased(u8, u8),
    Delete,
}

#[derive(Debug, Clone)]
struct Read {
    span: u8,
    limit: usize,
    back: Option<i8>,
}

fn read() -> impl Strategy<Value = Read> {
    let back = prop_oneof![3 => Just(None), 2 => (-1_i8..12).prop_map(Some)];
    (0_u8..8, 1_usize..5, back).prop_map(|(span, limit, back)| Read { span, limit, back })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => any::<u8>().prop_map(Change::Put),
        2 => (any::<u8>(), 0_u8..4).prop_map(|(value, lease)| Change::PutLeased(value, lease)),
        3 => Just(Change::Delete),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let guess =
        prop_oneof![6 => Just(Guess::Right), 1 => Just(Guess::Absent), 1 => Just(Guess::Wrong)];
    let compares = prop::collection::vec((0_u8..6, any::<bool>(), guess), 0..4);
    let writes = prop::collection::vec((0_u8..6, change()), 0..5);
    let reads = prop::collection::vec(read(), 0..3);
    let otherwise = prop::collection::vec(read(), 0..2);
    prop_oneof![
        12 => (compares, writes, reads, otherwise)
            .prop_map(|(compares, writes, reads, otherwise)| Action::Transact { compares, writes, reads, otherwise }),
        4 => read().prop_map(Action::Range),
        1 => (0_u8..10).prop_map(Action::Compact),
        2 => Just(Action::Grant),
        1 => (0_u8..4).prop_map(Action::Revoke),
        2 => (0_u8..8, 0_u8..6).prop_map(|(span, back)| Action::Watch(span, back)),
    ]
}

/// Runs random sequences.
pub(super) fn check(runtime: &Runtime, engine: &Arc<dyn Engine>, extent: Extent) {
    let mut config = Config::with_cases(extent.sequences);
    config.rng_seed = RngSeed::Fixed(extent.seed);
    config.failure_persistence = None;
    // A sequence on a real server takes its time; shrinking a failure may take a hundred of them.
    config.max_shrink_iters = 300;
    let number = AtomicU32::new(0);
    let sequences = prop::collection::vec(action(), 1..40);
    let tried = TestRunner::new(config).run(&sequences, |actions| {
        let prefix = format!("/sequence/{}/", number.fetch_add(1, Ordering::Relaxed));
        runtime.block_on(Sequence::run(engine, prefix, &actions))
    });
    if let Err(error) = tried {
        panic!("seed {}: {error}", extent.seed);
    }
}

/// A watch that is read at the end.
struct Watched {
    watcher: Watcher,
    span: Span,
    /// What the model has to tell begins here.
    next: Revision,
    /// Where the watch itself stands: after the last change that it told.
    position: Revision,
}

struct Sequence<'a> {
    engine: &'a Arc<dyn Engine>,
    prefix: String,
    /// The revision at which it began. What was before is other sequences' business.
    base: Revision,
    model: Model,
    leases: Vec<LeaseId>,
    watches: Vec<Watched>,
}

impl<'a> Sequence<'a> {
    async fn run(
        engine: &'a Arc<dyn Engine>,
        prefix: String,
        actions: &[Action],
    ) -> Result<(), TestCaseError> {
        let revision = engine.status().await.expect("a status").revision;
        let mut sequence = Self {
            engine,
            base: revision,
            model: Model::new(revision),
            leases: Vec::new(),
            watches: Vec::new(),
            prefix,
        };
        sequence
            .watch(Span::prefix(sequence.prefix.clone()), revision + 1)
            .await?;
        for action in actions {
            sequence.act(action).await?;
        }
        let told = sequence.check_watches().await;
        for lease in std::mem::take(&mut sequence.leases) {
            drop(engine.revoke(lease).await);
        }
        told
    }

    async fn act(&mut self, action: &Action) -> Result<(), TestCaseError> {
        match action {
            Action::Transact {
                compares,
                writes,
                reads,
                otherwise,
            } => {
                let transaction = self.transaction(compares, writes, reads, otherwise);
                let expected = self.model.transact(&transaction);
                let given = self.engine.transact(transaction.clone()).await;
                same(&given, &expected, &transaction)
            }
            Action::Range(read) => {
                let range = self.range(read);
                same(
                    &self.engine.range(range.clone()).await,
                    &self.model.range(&range),
                    &range,
                )
            }
            Action::Compact(back) => {
                let revision = self.model.revision.saturating_sub(u64::from(*back)).max(1);
                // What other sequences compacted is not known to the model.
                let given = self.engine.compact(revision).await;
                if let Err(StoreError::Compacted { .. }) = given {
                    return Ok(());
                }
                same(&given, &self.model.compact(revision), &revision)
            }
            Action::Grant => {
                let (lease, granted) = self
                    .engine
                    .grant(Duration::from_hours(1))
                    .await
                    .expect("a lease");
                prop_assert!(granted >= Duration::from_hours(1));
                self.model.leases.insert(lease);
                self.leases.push(lease);
                Ok(())
            }
            Action::Revoke(number) => {
                let lease = self.lease(*number);
                same(
                    &self.engine.revoke(lease).await,
                    &self.model.revoke(lease),
                    &lease,
                )
            }
            Action::Watch(span, back) => {
                let from = self.model.revision.saturating_sub(u64::from(*back));
                self.watch(self.span(*span), from.max(self.base + 1)).await
            }
        }
    }

    /// Opens a watch and reads what it has to tell already.
    async fn watch(&mut self, span: Span, mut from: Revision) -> Result<(), TestCaseError> {
        // etcd before 3.4.36 loses a delete at the very revision of a compaction.
        from += u64::from(from == self.model.compacted);
        let mut watcher = self
            .engine
            .watch(span.clone(), from)
            .await
            .expect("a watch");
        if from < self.model.compacted {
            let told = tokio::time::timeout(super::SOON, watcher.next()).await;
            let is_told = matches!(told, Ok(Err(StoreError::Compacted { .. })));
            prop_assert!(is_told, "watch from {from}, which is gone, gives {told:?}");
            return Ok(());
        }
        let mut watched = Watched {
            watcher,
            span,
            next: from,
            position: from,
        };
        self.expect(&mut watched).await?;
        watched.next = from.max(self.model.revision + 1);
        self.watches.push(watched);
        Ok(())
    }

    /// A watch tells what the model expects of it.
    async fn expect(&self, watched: &mut Watched) -> Result<(), TestCaseError> {
        let (span, from) = (&watched.span, watched.next);
        for (revision, events) in self.model.told(span, from) {
            let told = tokio::time::timeout(super::SOON, watched.watcher.next()).await;
            // etcd may take its time to follow a watch from an older revision, and a compaction that overtakes it meanwhile is
            // told, though nothing was lost.
            let is_overtaken = watched.position < self.model.compacted;
            if is_overtaken && matches!(told, Ok(Err(StoreError::Compacted { .. }))) {
                return Ok(());
            }
            let Ok(Ok(update)) = told else {
                return Err(TestCaseError::fail(format!(
                    "watch of {span:?} from {from}: {told:?}"
                )));
            };
            prop_assert_eq!(update, Update::Changes { revision, events });
            watched.position = revision + 1;
        }
        Ok(())
    }

    async fn check_watches(&mut self) -> Result<(), TestCaseError> {
        for mut watched in std::mem::take(&mut self.watches) {
            self.expect(&mut watched).await?;
        }
        Ok(())
    }

    fn transaction(
        &self,
        compares: &[(u8, bool, Guess)],
        writes: &[(u8, Change)],
        reads: &[Read],
        otherwise: &[Read],
    ) -> Transaction {
        let mut transaction = Transaction::new();
        let mut seen = 0_u8;
        for (number, is_create, guess) in compares {
            transaction
                .compares
                .push(self.compare(*number, *is_create, *guess));
        }
        for (number, change) in writes {
            // One write for each key.
            if seen & (1 << number) != 0 {
                continue;
            }
            seen |= 1 << number;
            if !compares.iter().any(|(compared, ..)| compared == number) {
                transaction
                    .compares
                    .push(self.compare(*number, false, Guess::Right));
            }
            let key = self.key(*number);
            transaction.writes.push(match change {
                Change::Put(value) => Write::Put {
                    key,
                    value: value.to_string().into(),
                    lease: None,
                },
                Change::PutLeased(value, lease) => Write::Put {
                    key,
                    value: value.to_string().into(),
                    lease: Some(self.lease(*lease)),
                },
                Change::Delete => Write::Delete { key },
            });
        }
        transaction.reads = reads.iter().map(|read| self.range(read)).collect();
        transaction.otherwise = otherwise.iter().map(|read| self.range(read)).collect();
        transaction
    }

    fn compare(&self, number: u8, is_create: bool, guess: Guess) -> Compare {
        let key = self.key(number);
        let record = self.model.record(&key);
        let revision = match guess {
            Guess::Right if is_create => record.map_or(0, |record| record.create_revision),
            Guess::Right => record.map_or(0, |record| record.mod_revision),
            Guess::Absent => 0,
            Guess::Wrong => record.map_or(1, |record| record.mod_revision - 1),
        };
        let field = if is_create {
            CompareField::Create
        } else {
            CompareField::Mod
        };
        Compare {
            key,
            field,
            revision,
        }
    }

    fn key(&self, number: u8) -> Bytes {
        // Two directories, and a key that is the beginning of another.
        let name = ["a", "a/1", "a/2", "b/1", "b/1\0x", "b/2"][usize::from(number % 6)];
        format!("{}{name}", self.prefix).into()
    }

    fn span(&self, number: u8) -> Span {
        match number {
            0 => Span::prefix(self.prefix.clone()),
            1 => Span::prefix(format!("{}a/", self.prefix)),
            2..8 => Span::key(self.key(number - 2)),
            _ => Span::prefix(format!("{}none/", self.prefix)),
        }
    }

    fn range(&self, read: &Read) -> Range {
        let at = read.back.map(|back| {
            self.model
                .revision
                .saturating_add_signed(-i64::from(back))
                .max(self.base)
        });
        Range {
            span: self.span(read.span),
            limit: read.limit,
            at,
        }
    }

    fn lease(&self, number: u8) -> LeaseId {
        let known = self.leases.get(usize::from(number)).copied();
        known.unwrap_or_else(|| LeaseId::new(i64::from(number) + 1).expect("not 0"))
    }
}

/// Whether two answers are the same. Of errors, the kind counts.
fn same<T: PartialEq + std::fmt::Debug>(
    given: &Result<T, StoreError>,
    expected: &Result<T, StoreError>,
    call: &impl std::fmt::Debug,
) -> Result<(), TestCaseError> {
    let is_same = match (given, expected) {
        (Ok(given), Ok(expected)) => given == expected,
        (Err(given), Err(expected)) => {
            std::mem::discriminant(given) == std::mem::discriminant(expected)
        }
        _ => false,
    };
    prop_assert!(
        is_same,
        "{call:?}\ngives    {given:?}\ninstead of {expected:?}"
    );
    Ok(())
}

/// Reads updates until one is at or after a revision.
pub(super) async fn told_until(
    watcher: &mut Watcher,
    end: Revision,
) -> Vec<(Revision, Vec<Event>)> {
    let mut told = Vec::new();
    loop {
        if let Update::Changes { revision, events } = next(watcher).await {
            told.push((revision, events));
            if revision >= end {
                return told;
            }
        }
    }
}
