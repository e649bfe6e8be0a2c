//! Clients that read and replace a few keys, and what they and a watch saw.

use std::sync::Arc;
use std::time::Duration;

use portolan_store::conformance::{
    KeyedCall, RegisterAction, RegisterCounters, RegisterHistory, ToldChange,
};
use portolan_store::etcd::Etcd;
use portolan_store::{
    Compare, Event, Record, Resolution, Revision, Span, Store, StoreError, Transaction, Update,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::engine;

const CLIENTS: u64 = 5;
const KEYS: usize = 4;
const PREFIX: &str = "/portolan/v1/fault/";
const END: &str = "/portolan/v1/fault/end";
/// Between two operations of a client, so that a history has thousands of operations and not millions.
const PACE: Duration = Duration::from_millis(8);
const DEADLINE: Duration = Duration::from_secs(8);
/// For everything to be well again on a machine that is busy with other things.
const SOON: Duration = Duration::from_mins(2);
/// The clients at work.
pub(crate) struct Clients {
    shared: Arc<RegisterCounters>,
    admin: Arc<Etcd>,
    store: Store,
    workers: Vec<JoinHandle<Vec<KeyedCall>>>,
    watch: JoinHandle<Vec<ToldChange>>,
}

impl Clients {
    /// Starts them in the runtime that the caller has entered.
    pub(crate) fn start(urls: &[String]) -> Self {
        let shared = Arc::new(RegisterCounters::default());
        let admin = engine(urls);
        let store = Store::new(admin.clone()).with_deadline(DEADLINE);
        let clients = (0..CLIENTS).map(|seed| {
            let client = Client {
                store: Store::new(engine(urls)).with_deadline(DEADLINE),
                shared: Arc::clone(&shared),
                random: StdRng::seed_from_u64(seed),
                done: Vec::new(),
            };
            tokio::spawn(client.work())
        });
        let workers = clients.collect();
        let watcher = Store::new(engine(urls));
        Self {
            shared,
            admin,
            store,
            workers,
            watch: tokio::spawn(follow(watcher)),
        }
    }

    pub(crate) fn admin(&self) -> &Etcd {
        &self.admin
    }

    /// Writes that were acknowledged so far.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.shared.acknowledged()
    }

    /// Waits until clients are told of writes again.
    pub(crate) async fn until_writable(&self) {
        let before = self.acknowledged();
        let start = Instant::now();
        while self.acknowledged() < before + 3 * CLIENTS {
            assert!(start.elapsed() < SOON, "clients do not get on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Writes large values until the members have no room for them.
    pub(crate) async fn write_until_refused(&self) {
        let start = Instant::now();
        for number in 0_u64.. {
            assert!(start.elapsed() < SOON, "the disks do not fill");
            let key = format!("/portolan/v1/bulk/{}-{number}", self.shared.tick());
            let write = Transaction::create(key, vec![b'x'; 256 << 10]);
            if let Err(error) = self.store.commit(write).await {
                eprintln!("  after {number} large values: {error}");
                return;
            }
        }
    }

    /// Ends the clients, and the watch when it has told everything.
    pub(crate) async fn stop(self) -> RegisterHistory {
        self.shared.end();
        let mut calls = Vec::new();
        for worker in self.workers {
            calls.extend(worker.await.expect("a client"));
        }
        let mut last = Vec::new();
        for key in 0..KEYS {
            let record = self.store.get(name(key)).await.expect("an answer");
            last.push(record.as_ref().map(value));
        }
        let end = self.store.commit(Transaction::create(END, "0")).await;
        assert!(end.expect("an answer").succeeded);
        let told = timeout(SOON, self.watch).await;
        let told = told.expect("the watch tells the end").expect("the watch");
        RegisterHistory { calls, told, last }
    }
}

struct Client {
    store: Store,
    shared: Arc<RegisterCounters>,
    random: StdRng,
    done: Vec<KeyedCall>,
}

impl Client {
    async fn work(mut self) -> Vec<KeyedCall> {
        while !self.shared.has_ended() {
            let key = self.random.random_range(0..KEYS);
            if let Some(seen) = self.read(key).await
                && self.random.random_bool(0.7)
            {
                self.swap(key, seen).await;
            }
            tokio::time::sleep(PACE).await;
        }
        self.done
    }

    /// Reads a key; `None` when it cannot be read.
    async fn read(&mut self, key: usize) -> Option<Option<Record>> {
        let start = self.shared.tick();
        let record = self.store.get(name(key)).await.ok()?;
        let seen = record.as_ref().map(value);
        self.note(key, start, RegisterAction::Read(seen), 0);
        Some(record)
    }

    /// Replaces what was seen, and finds out what became of it.
    async fn swap(&mut self, key: usize, seen: Option<Record>) {
        let revision = seen.as_ref().map_or(0, |record| record.mod_revision);
        let expected = seen.as_ref().map(value);
        let is_delete = expected.is_some() && self.random.random_bool(0.2);
        let fresh = self.shared.fresh_value();
        let new = (!is_delete).then_some(fresh);
        let write = Transaction::new().when(Compare::unchanged(name(key), revision));
        let write = match new {
            Some(new) => write.put(name(key), new.to_string()),
            None => write.delete(name(key)),
        };
        let start = self.shared.tick();
        let (done, revision) = match self.store.commit(write).await {
            Ok(outcome) => (Some(outcome.succeeded), outcome.revision),
            Err(StoreError::Unknown { operation, .. }) => {
                let found = match operation {
                    Some(operation) => self.store.resolve(operation).await.ok(),
                    None => None,
                };
                match found {
                    Some(Resolution::Happened(revision)) => (Some(true), revision),
                    // It compared and lost, or it never came; neither has an effect, and both look like nothing.
                    Some(Resolution::Never) => return,
                    None => (None, 0),
                }
            }
            // Nothing happened.
            Err(_) => return,
        };
        if done == Some(true) {
            self.shared.acknowledge();
        }
        let action = RegisterAction::Swap {
            expected,
            new,
            done,
        };
        self.note(key, start, action, revision);
    }

    fn note(&mut self, key: usize, start: u64, action: RegisterAction, revision: Revision) {
        self.done
            .push(self.shared.call(key, start, action, revision));
    }
}

/// Follows all keys until the end is told.
async fn follow(store: Store) -> Vec<ToldChange> {
    let mut watcher = store.watch(Span::prefix(PREFIX), 1).await.expect("a watch");
    let mut told = Vec::new();
    loop {
        let Update::Changes { revision, events } = watcher.next().await.expect("no error") else {
            continue;
        };
        for event in events {
            let (key, seen) = match event {
                Event::Put(record) if record.key == END => return told,
                Event::Put(record) => (record.key.clone(), Some(value(&record))),
                Event::Delete { key, .. } => (key, None),
            };
            told.push(ToldChange {
                revision,
                key: number(&key),
                seen,
            });
        }
    }
}

fn name(key: usize) -> String {
    format!("{PREFIX}{key}")
}

fn number(key: &[u8]) -> usize {
    let text = std::str::from_utf8(key).expect("text");
    text[PREFIX.len()..].parse().expect("a key of ours")
}

fn value(record: &Record) -> u64 {
    let text = std::str::from_utf8(&record.value).expect("text");
    text.parse().expect("a value of ours")
}
