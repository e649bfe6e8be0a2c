//! The incarnation of a store: a number that changes when its revisions start again.
//!
//! A store that was restored from a backup, or moved to another engine, counts its revisions from the start. A
//! revision of the previous incarnation must not be confused with one of this: everything that leaves the store with
//! a revision also has the number of the incarnation.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::keys::META;
use crate::{Compare, Record, Revision, Store, StoreError, Transaction, level};

/// One life of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    /// 1 for a new store, one more with each restore or move.
    pub number: u64,
    /// A name that no other has.
    pub uuid: u128,
    /// The identity of the etcd cluster that it lives in.
    pub cluster: Option<u64>,
    /// What it was restored or moved from; `None` for a new store, and for one that level 1 began.
    pub origin: Option<Position>,
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
                origin: None,
            };
            let text = first.at_level(level::stored_level(store).await?);
            if store
                .commit(Transaction::create(key(), text))
                .await?
                .succeeded
            {
                return Ok(first);
            }
        }
    }

    /// Begins a new life, after a restore or a move of the data of `origin`.
    pub async fn raise(store: &Store, origin: Position) -> Result<Self, StoreError> {
        let cluster = store.status().await?.cluster;
        loop {
            let record = store.get(key()).await?;
            let known = record
                .as_ref()
                .and_then(|record| Self::parse(&record.value));
            let number = known.map_or(0, |known| known.number);
            let number = number.max(origin.incarnation) + 1;
            let next = Self {
                number,
                uuid: rand::random(),
                cluster,
                origin: Some(origin),
            };
            let text = next.at_level(level::stored_level(store).await?);
            let revision = record.map_or(0, |record| record.mod_revision);
            let replace = Transaction::replace(key(), revision, text.clone());
            if store.commit(replace).await?.succeeded {
                return Ok(Self::parse(text.as_bytes()).unwrap_or(next));
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

    /// The stored text at a level: level 2 added the origin.
    fn at_level(&self, level: u64) -> String {
        let text = self.to_string();
        match text.rsplit_once(' ') {
            Some((first, _)) if level < 2 => first.to_owned(),
            _ => text,
        }
    }

    /// The stored text at level 2, made of that at level 1; `None` when it has the new form already.
    pub(crate) fn to_level_2(record: &Record) -> Result<Option<Bytes>, String> {
        let known = Self::parse(&record.value).ok_or("it is no incarnation")?;
        let text = known.to_string();
        Ok((text.as_bytes() != record.value).then(|| text.into()))
    }

    /// Reads a stored text of any level.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        let number = words.next()?.parse().ok()?;
        let uuid = u128::from_str_radix(words.next()?, 16).ok()?;
        let cluster = match words.next()? {
            "-" => None,
            id => Some(u64::from_str_radix(id, 16).ok()?),
        };
        let origin = match words.next() {
            None | Some("-") => None,
            Some(position) => Some(position.parse().ok()?),
        };
        words.next().is_none().then_some(Self {
            number,
            uuid,
            cluster,
            origin,
        })
    }
}

impl fmt::Display for Incarnation {
    /// As it is stored at the newest level: `3 UUID CLUSTER ORIGIN`, with `-` for what there is not.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {:032x} ", self.number, self.uuid)?;
        match self.cluster {
            Some(cluster) => write!(out, "{cluster:016x} ")?,
            None => out.write_str("- ")?,
        }
        match self.origin {
            Some(origin) => write!(out, "{origin}"),
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
