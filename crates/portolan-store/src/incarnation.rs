//! The incarnation of a store: a number that changes when its revisions start again.
//!
//! A store that was restored from a backup, or moved to another engine, counts its revisions from the start. A
//! revision of the previous incarnation must not be confused with one of this: everything that leaves the store with
//! a revision also has the number of the incarnation.

use std::fmt;
use std::str::FromStr;

use crate::keys::META;
use crate::{Compare, Revision, Store, StoreError, Transaction};

/// One life of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    /// 1 for a new store, one more with each restore or move.
    pub number: u64,
    /// A name that no other has.
    pub uuid: u128,
    /// The identity of the etcd cluster that it lives in.
    pub cluster: Option<u64>,
}

impl Incarnation {
    /// Reads the incarnation of a store, and gives a new store its first. A store that says of itself that it lives in another
    /// etcd cluster is refused: somebody copied its data, or we were sent to the wrong cluster.
    pub async fn open(store: &Store) -> Result<Self, StoreError> {
        let cluster = store.status().await?.cluster;
        loop {
            if let Some(record) = store.get(key()).await? {
                let found = Self::parse(&record.value).ok_or_else(|| damaged(&record.value))?;
                return found.refuse_other(cluster);
            }
            let first = Self {
                number: 1,
                uuid: rand::random(),
                cluster,
            };
            if store
                .commit(Transaction::create(key(), first.to_string()))
                .await?
                .succeeded
            {
                return Ok(first);
            }
        }
    }

    /// Begins a new life, after a restore or a move. `before` is the number of the one that the data comes from.
    pub async fn raise(store: &Store, before: u64) -> Result<Self, StoreError> {
        let cluster = store.status().await?.cluster;
        loop {
            let record = store.get(key()).await?;
            let known = record
                .as_ref()
                .and_then(|record| Self::parse(&record.value));
            let number = known.map_or(0, |known| known.number).max(before) + 1;
            let next = Self {
                number,
                uuid: rand::random(),
                cluster,
            };
            let revision = record.map_or(0, |record| record.mod_revision);
            let replace = Transaction::replace(key(), revision, next.to_string());
            if store.commit(replace).await?.succeeded {
                return Ok(next);
            }
        }
    }

    /// Whether nobody has begun another life meanwhile; part of a transaction that must not happen in another one.
    pub fn compare(revision: Revision) -> Compare {
        Compare::unchanged(key(), revision)
    }

    fn refuse_other(self, cluster: Option<u64>) -> Result<Self, StoreError> {
        if self.cluster == cluster {
            return Ok(self);
        }
        let name =
            |cluster: Option<u64>| cluster.map_or("no etcd".to_owned(), |id| format!("{id:016x}"));
        Err(StoreError::Denied {
            detail: format!(
                "the data belongs to cluster {}, this is {}: check the address, or begin a new incarnation by a restore",
                name(self.cluster),
                name(cluster)
            ),
        })
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        let number = words.next()?.parse().ok()?;
        let uuid = u128::from_str_radix(words.next()?, 16).ok()?;
        let cluster = match words.next()? {
            "-" => None,
            id => Some(u64::from_str_radix(id, 16).ok()?),
        };
        words.next().is_none().then_some(Self {
            number,
            uuid,
            cluster,
        })
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {:032x} ", self.number, self.uuid)?;
        match self.cluster {
            Some(cluster) => write!(out, "{cluster:016x}"),
            None => out.write_str("-"),
        }
    }
}

fn key() -> String {
    format!("{META}incarnation")
}

fn damaged(value: &[u8]) -> StoreError {
    StoreError::Damaged {
        detail: format!("`{}` is no incarnation", value.escape_ascii()),
    }
}

/// A revision as it leaves the store: with the life that it belongs to, `3.1042`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The number of the incarnation.
    pub incarnation: u64,
    /// The revision.
    pub revision: Revision,
}

impl Position {
    /// The revision, if the position is of this life; what another one had is gone.
    pub fn revision_in(self, incarnation: &Incarnation) -> Result<Revision, StoreError> {
        if self.incarnation != incarnation.number {
            return Err(StoreError::Compacted {
                asked: self.revision,
                oldest: 0,
            });
        }
        Ok(self.revision)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.incarnation, self.revision)
    }
}

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let (incarnation, revision) = text
            .split_once('.')
            .filter(|_| is_plain)
            .ok_or(NotAPosition)?;
        let number = |text: &str| text.parse().map_err(|_| NotAPosition);
        Ok(Self {
            incarnation: number(incarnation)?,
            revision: number(revision)?,
        })
    }
}

/// A text that is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a position of the form `incarnation.revision`")]
pub struct NotAPosition;
