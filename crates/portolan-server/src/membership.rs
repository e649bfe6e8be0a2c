//! This server among the others: its lease, its entry in the list of servers, and its tick.
//!
//! ```text
//! lease (5 s, renewed every 1.5 s) ──▶ level announcement, entry, tick, and the shard of the controllers
//! tick (every 2 s) ──▶ store ──▶ watch of the cache ──▶ the view of this server is fresh
//! ```
//!
//! Everything under the lease goes at once when the server ends in good order, and when the lease ends otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use portolan_store::level::{self, MIGRATIONS};
use portolan_store::{
    Clock, Compare, LeaseId, Record, Revision, Span, Store, StoreError, Transaction,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::clock::TimeSource;
use crate::keys;

/// How long the lease of a server that died goes on.
pub(crate) const LEASE: Duration = Duration::from_secs(5);
/// How often the lease is renewed.
const RENEW_EVERY: Duration = Duration::from_millis(1_500);
/// How often the tick is written.
const TICK_EVERY: Duration = Duration::from_secs(2);
/// How long a lease is counted on after it was renewed: a second less than it goes on.
const COUNTED_ON: Duration = Duration::from_secs(4);

/// The name of a server and of its process.
#[derive(Debug, Clone)]
pub(crate) struct ServerName {
    /// Stays with the data directory.
    pub(crate) server: String,
    /// New with every start.
    pub(crate) process: String,
}

/// What other servers are told of this one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerEntry {
    pub(crate) server: String,
    /// Where other servers and people reach it.
    pub(crate) address: String,
    pub(crate) version: String,
    /// The highest level that it reads.
    pub(crate) max_level: u64,
    /// The names of its key-encryption keys, the one that seals first.
    pub(crate) secret_keys: Vec<String>,
    /// Its time of day when the entry was written, in seconds since 1970.
    pub(crate) time: u64,
}

/// A lease, and until when it can be counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldLease {
    pub(crate) id: LeaseId,
    until: Duration,
}

/// Keeps this server in the list of servers.
pub(crate) struct Membership {
    pub(crate) store: Store,
    pub(crate) name: ServerName,
    pub(crate) entry: ServerEntry,
    pub(crate) clock: Arc<dyn Clock>,
    /// Its time of day goes with each tick.
    pub(crate) time: Arc<dyn TimeSource>,
    pub(crate) held: watch::Sender<Option<HeldLease>>,
    /// The revision of the newest tick; 0 before the first.
    ticked: AtomicU64,
}

/// Tells whether this server still holds its lease.
#[derive(Clone)]
pub(crate) struct LeaseView {
    held: watch::Receiver<Option<HeldLease>>,
    clock: Arc<dyn Clock>,
}

impl LeaseView {
    /// The lease, as long as nobody else can take it for ended.
    pub(crate) fn current(&self) -> Option<LeaseId> {
        let held = *self.held.borrow();
        held.filter(|held| self.clock.now() < held.until)
            .map(|held| held.id)
    }
}

impl Membership {
    /// A server that is not in the list yet.
    pub(crate) fn new(
        store: Store,
        name: ServerName,
        entry: ServerEntry,
        clock: Arc<dyn Clock>,
        time: Arc<dyn TimeSource>,
    ) -> Self {
        Self {
            store,
            name,
            entry,
            clock,
            time,
            held: watch::Sender::new(None),
            ticked: AtomicU64::new(0),
        }
    }

    /// Whether and which lease is held.
    pub(crate) fn view(&self) -> LeaseView {
        LeaseView {
            held: self.held.subscribe(),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Enters the list of servers, and brings the store to the level that all of them read.
    ///
    /// # Errors
    /// Also when the store has a level that this server does not read.
    pub(crate) async fn join(&self) -> Result<(), StoreError> {
        let started = self.clock.now();
        let (lease, _) = self.store.grant(LEASE).await?;
        level::announce(&self.store, &self.name.server, self.entry.max_level, lease).await?;
        // Only now: from here on the level does not rise above what this server reads.
        if let Err(error) = level::migrate(&self.store, MIGRATIONS, self.entry.max_level).await {
            let _ = self.store.revoke(lease).await;
            return Err(error);
        }
        self.put(
            &keys::server(&self.name.server),
            self.entry.to_json().to_string(),
            lease,
        )
        .await?;
        self.held.send_replace(Some(HeldLease {
            id: lease,
            until: started + COUNTED_ON,
        }));
        Ok(())
    }

    /// Writes a key of this server's own under its lease.
    async fn put(&self, key: &str, value: String, lease: LeaseId) -> Result<(), StoreError> {
        loop {
            let seen = self.store.get(key.to_owned()).await?;
            let seen = seen.map_or(0, |record| record.mod_revision);
            let put = Transaction::new()
                .when(Compare::unchanged(key.to_owned(), seen))
                .put_leased(key.to_owned(), value.clone(), lease);
            if self.store.commit(put).await?.succeeded {
                return Ok(());
            }
        }
    }

    /// Stays in the list until the future is dropped. Returns why it cannot go on.
    pub(crate) async fn run(&self) -> String {
        tokio::select! {
            why = self.renew() => why,
            why = self.tick() => why,
        }
    }

    async fn renew(&self) -> String {
        loop {
            let started = self.clock.now();
            let held = *self.held.borrow();
            let renewed = match held {
                Some(held) => self.store.keep_alive(held.id).await.map(|_| Some(held.id)),
                None => self.join().await.map(|()| None),
            };
            match renewed {
                Ok(Some(id)) => {
                    let until = started + COUNTED_ON;
                    self.held.send_replace(Some(HeldLease { id, until }));
                }
                Ok(None) => {}
                Err(StoreError::NoLease { .. }) => {
                    tracing::warn!("the lease of this server has ended; it gets a new one");
                    self.held.send_replace(None);
                    continue;
                }
                Err(error) if self.is_too_old().await => return error.to_string(),
                Err(error) => tracing::warn!(%error, "the lease cannot be renewed"),
            }
            tokio::time::sleep(RENEW_EVERY).await;
        }
    }

    /// Whether the store was converted to a newer level while this server was away.
    async fn is_too_old(&self) -> bool {
        let level = level::stored_level(&self.store).await;
        level.is_ok_and(|level| level > self.entry.max_level)
    }

    /// Writes the first tick and returns its revision: who follows the store from an earlier revision will see it.
    pub(crate) async fn tick_first(&self) -> Result<Revision, StoreError> {
        loop {
            let Some(held) = *self.held.borrow() else {
                return Err(StoreError::Unavailable {
                    detail: "this server has no lease".to_owned(),
                });
            };
            // Whatever the process before this one left is replaced.
            match self.tick_once(None, held.id).await {
                Ok(Tick::Written(revision)) => {
                    self.ticked.store(revision, Ordering::SeqCst);
                    return Ok(revision);
                }
                Ok(_) => {}
                // A slow start.
                Err(StoreError::NoLease { .. }) => self.join().await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn tick(&self) -> String {
        let mut last = Some(self.ticked.load(Ordering::SeqCst)).filter(|last| *last > 0);
        loop {
            if let Some(lease) = self.view().current() {
                match self.tick_once(last, lease).await {
                    Ok(Tick::Written(revision)) => last = Some(revision),
                    Ok(Tick::Gone) => {
                        last = Some(0);
                        continue;
                    }
                    Ok(Tick::Again) => continue,
                    Ok(Tick::Other) => {
                        return format!(
                            "another process runs as server {}: its data directory was copied",
                            self.name.server
                        );
                    }
                    Err(error) => tracing::warn!(%error, "the tick cannot be written"),
                }
            }
            tokio::time::sleep(TICK_EVERY).await;
        }
    }

    async fn tick_once(&self, last: Option<Revision>, lease: LeaseId) -> Result<Tick, StoreError> {
        let key = keys::tick(&self.name.server);
        let seen = match last {
            Some(last) => last,
            None => {
                let record = self.store.get(key.clone()).await?;
                record.map_or(0, |record| record.mod_revision)
            }
        };
        let put = Transaction::new()
            .when(Compare::unchanged(key.clone(), seen))
            .put_leased(key.clone(), self.tick_value(), lease);
        let outcome = self.store.commit(put).await?;
        if outcome.succeeded {
            return Ok(Tick::Written(outcome.revision));
        }
        Ok(match self.store.get(key.clone()).await? {
            None => Tick::Gone,
            // A write whose outcome was not known has happened after all.
            Some(record) if self.is_own_tick(&record) => Tick::Written(record.mod_revision),
            Some(_) if last.is_none() => Tick::Again,
            Some(_) => Tick::Other,
        })
    }

    fn tick_value(&self) -> String {
        format!("{} {}", self.name.process, self.time.now().as_millis())
    }

    fn is_own_tick(&self, record: &Record) -> bool {
        let process = record.value.split(|byte| *byte == b' ').next();
        process == Some(self.name.process.as_bytes())
    }

    /// Gives everything up at once, so that another server takes over without waiting.
    pub(crate) async fn leave(&self) -> Result<(), StoreError> {
        match self.held.send_replace(None) {
            Some(held) => self.store.revoke(held.id).await,
            None => Ok(()),
        }
    }
}

/// The time of day of the server that wrote a tick, in milliseconds since 1970. `None` for a tick of an older release.
pub(crate) fn ticked_at(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    text.split_once(' ')?.1.parse().ok()
}

/// What became of a tick.
enum Tick {
    Written(Revision),
    /// The one before went with its lease.
    Gone,
    /// The process before this one wrote its last one meanwhile.
    Again,
    /// Another process writes it.
    Other,
}

impl ServerEntry {
    fn to_json(&self) -> Value {
        json!({
            "address": self.address, "version": self.version, "maxLevel": self.max_level,
            "secretKeys": self.secret_keys, "time": self.time,
        })
    }

    fn read(record: &Record) -> Option<Self> {
        let key = std::str::from_utf8(&record.key).ok()?;
        let value: Value = serde_json::from_slice(&record.value).ok()?;
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let secret_keys = value["secretKeys"].as_array().into_iter().flatten();
        Some(Self {
            server: key.rsplit('/').next()?.to_owned(),
            address: text("address"),
            version: text("version"),
            max_level: value["maxLevel"].as_u64()?,
            secret_keys: secret_keys
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            time: value["time"].as_u64().unwrap_or_default(),
        })
    }
}

/// The servers that are alive, by their names.
pub(crate) async fn servers(store: &Store) -> Result<Vec<ServerEntry>, StoreError> {
    let mut found = Vec::new();
    store
        .scan(&Span::prefix(keys::servers()), None, |record| {
            found.extend(ServerEntry::read(&record));
            Ok(())
        })
        .await?;
    Ok(found)
}
