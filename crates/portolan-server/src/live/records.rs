//! What controllers remember in the store, written under the fence of their shard.
//!
//! ```text
//! /portolan/v1/live/cron/<uuid>                    which slots of a CronJob are done
//! /portolan/v1/live/book/<uuid>                    what `reconcile` of a TaskBook has dealt with
//! /portolan/v1/live/trigger/<uuid>/ledger          how often a Trigger fired, whether it is switched off
//! /portolan/v1/live/trigger/<uuid>/group/<digest>  the events that count in a group
//! /portolan/v1/live/variables                       changes with every write that can close a circle of variables
//! /portolan/v1/live/cursor                         up to where events were observed
//! ```

use std::collections::BTreeMap;

use portolan_digest::Digest;
use portolan_store::keys::ROOT;
use portolan_store::{Compare, Revision, Span, Store, StoreError, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes of one transaction, with room for the fence and for the writes of a Run.
pub(super) const MAX_WRITES: usize = 50;

/// Records that a controller writes, and the revision of each.
#[derive(Debug, Default)]
pub(super) struct LiveRecords {
    revisions: BTreeMap<String, Revision>,
}

/// A write of a record.
#[derive(Debug, Clone)]
pub(super) struct LiveWrite {
    key: String,
    /// `None` to delete it.
    value: Option<Vec<u8>>,
}

pub(super) fn cron_jobs() -> String {
    format!("{ROOT}live/cron/")
}

pub(super) fn cron_job(uuid: &str) -> String {
    format!("{ROOT}live/cron/{uuid}")
}

pub(super) fn books() -> String {
    format!("{ROOT}live/book/")
}

pub(super) fn book(uuid: &str) -> String {
    format!("{ROOT}live/book/{uuid}")
}

pub(super) fn triggers() -> String {
    format!("{ROOT}live/trigger/")
}

pub(super) fn trigger(uuid: &str) -> String {
    format!("{ROOT}live/trigger/{uuid}/")
}

pub(super) fn ledger(uuid: &str) -> String {
    format!("{ROOT}live/trigger/{uuid}/ledger")
}

pub(super) fn groups(uuid: &str) -> String {
    format!("{ROOT}live/trigger/{uuid}/group/")
}

/// A group of a trigger. Its name is a digest: it may be long.
pub(super) fn group(uuid: &str, name: &str) -> String {
    format!("{}{}", groups(uuid), Digest::of(name.as_bytes()).hex())
}

pub(super) fn cursor() -> String {
    format!("{ROOT}live/cursor")
}

/// The uuid in a key below a prefix.
pub(super) fn uuid_below<'k>(prefix: &str, key: &'k str) -> Option<&'k str> {
    key.strip_prefix(prefix)?.split('/').next()
}

impl LiveWrite {
    pub(super) fn put(key: String, value: &impl Serialize) -> Result<Self, StoreError> {
        let value = serde_json::to_vec(value).map_err(|error| damaged(&key, &error))?;
        let value = Some(value);
        Ok(Self { key, value })
    }

    pub(super) fn delete(key: String) -> Self {
        Self { key, value: None }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

impl LiveRecords {
    /// Reads a record, and remembers its revision.
    pub(super) async fn read<T: DeserializeOwned>(
        &mut self,
        store: &Store,
        key: String,
    ) -> Result<Option<T>, StoreError> {
        let Some(record) = store.get(key.clone()).await? else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&record.value).map_err(|error| damaged(&key, &error))?;
        self.revisions.insert(key, record.mod_revision);
        Ok(Some(value))
    }

    /// Reads all records below a prefix, and remembers their revisions.
    pub(super) async fn read_all<T: DeserializeOwned>(
        &mut self,
        store: &Store,
        prefix: String,
    ) -> Result<Vec<(String, T)>, StoreError> {
        let mut all = Vec::new();
        store
            .scan(&Span::prefix(prefix), None, |record| {
                let key = String::from_utf8_lossy(&record.key).into_owned();
                let value =
                    serde_json::from_slice(&record.value).map_err(|error| damaged(&key, &error))?;
                self.revisions.insert(key.clone(), record.mod_revision);
                all.push((key, value));
                Ok(())
            })
            .await?;
        Ok(all)
    }

    /// The writes as a part of a transaction. When it is committed, [`Self::written`] has to be told.
    pub(super) fn part(&self, writes: &[LiveWrite]) -> Transaction {
        let mut part = Transaction::new();
        for write in writes {
            let seen = self.revisions.get(&write.key).copied().unwrap_or_default();
            match &write.value {
                // Nothing is there to be deleted.
                None if seen == 0 => {}
                None => {
                    part = part
                        .when(Compare::unchanged(write.key.clone(), seen))
                        .delete(write.key.clone());
                }
                Some(value) => {
                    part = part
                        .when(Compare::unchanged(write.key.clone(), seen))
                        .put(write.key.clone(), value.clone());
                }
            }
        }
        part
    }

    /// Remembers what was committed.
    pub(super) fn written(&mut self, writes: &[LiveWrite], revision: Revision) {
        for write in writes {
            match write.value {
                None => self.revisions.remove(&write.key),
                Some(_) => self.revisions.insert(write.key.clone(), revision),
            };
        }
    }

    /// Writes records in order, as many in a transaction as fit. `false` when the fence did not hold, or somebody else has
    /// written: this server does not own the shard any more.
    pub(super) async fn write(
        &mut self,
        store: &Store,
        fence: &Compare,
        writes: &[LiveWrite],
    ) -> Result<bool, StoreError> {
        for chunk in writes.chunks(MAX_WRITES) {
            let part = self.part(chunk).when(fence.clone());
            let outcome = store.commit(part).await?;
            if !outcome.succeeded {
                return Ok(false);
            }
            self.written(chunk, outcome.revision);
        }
        Ok(true)
    }
}

fn damaged(key: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        detail: format!("`{key}`: {error}"),
    }
}
