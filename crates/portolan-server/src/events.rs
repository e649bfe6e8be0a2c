//! Events: written together, at most one record a second, and kept by age.
//!
//! ```text
//! create ──▶ EventWriter ──▶ Store ──▶ Cache: where each event is, and watches
//! get, list ◀── records of the store, unpacked
//! ```
//!
//! A key of its own for each event would make the store grow with what happens on a thousand servers. So those of a
//! second are one record. An event's name is unique in its namespace; its resource version is its record's. Events are never
//! changed. What is removed, by age or with its namespace, is not told to watches: they tell what happened.

mod index;
mod list;
mod packed;
mod sink;
mod writer;

use std::time::Duration;

use portolan_kinds::KindObject;
use portolan_store::{Compare, Record, Span, Transaction};

pub(crate) use self::index::{EventIndex, OldRecord};
pub(crate) use self::packed::unpack;
pub(crate) use self::sink::{EventSink, NewEvent, SunkEvents};
pub(crate) use self::writer::{EventBatches, EventWriter};

use self::packed::pack;
use crate::cache::Cache;
use crate::error::{ApiError, RefusalReason};
use crate::keys::{all_events, events_from};
use crate::objects::{Author, Deletion, Objects, Preconditions, already_exists, shown};
use crate::page::{ListQuery, ObjectPage};
use crate::record::StoredKind;

/// How far back an event is looked for that the cache does not know yet. The cache is never older than ten seconds; the rest is
/// for clocks of servers that differ.
const RECENT: Duration = Duration::from_mins(1);

/// The most bytes of all events: the oldest go before their time when there are more.
const MAX_BYTES: u64 = 256 << 20;

/// Records that are removed in one round.
const REMOVED_AT_ONCE: usize = 1_000;

/// How often a record is read again that somebody else changed.
const ATTEMPTS: usize = 8;

/// The events of a store.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) objects: Objects,
    pub(crate) cache: Cache,
    pub(crate) writer: EventWriter,
}

impl Events {
    /// Creates an event, which is on the disk within about a second.
    pub(crate) async fn create(
        &self,
        object: KindObject,
        author: &Author,
    ) -> Result<StoredKind, ApiError> {
        let namespace = object.namespace().unwrap_or_default().to_owned();
        if self.cache.event_key(&namespace, object.name()).is_some() {
            return Err(already_exists(&shown(&object)));
        }
        let event = self.objects.new_object(object, author)?;
        if author.is_dry_run {
            self.objects.open_gate(&namespace).await?;
            return Ok(event);
        }
        self.writer.write(event, author.fence.clone()).await
    }

    /// Reads an event.
    pub(crate) async fn get(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<StoredKind>, ApiError> {
        let found = self.find(namespace, name).await?;
        Ok(found.map(|(_, event)| event))
    }

    /// Reads a page of events, in the order in which they were written.
    pub(crate) async fn list(&self, query: &ListQuery) -> Result<ObjectPage, ApiError> {
        list::list(&self.objects, &self.cache, query).await
    }

    /// Removes an event.
    pub(crate) async fn delete(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        author: &Author,
    ) -> Result<Deletion, ApiError> {
        for _ in 0..ATTEMPTS {
            let Some((record, event)) = self.find(namespace, name).await? else {
                return Err(ApiError::not_found(&format!("Event {namespace}/{name}")));
            };
            self.objects.check_preconditions(&event, preconditions)?;
            let is_it = |other: &StoredKind| is_named(other, namespace, name);
            if author.is_dry_run || self.rewrite(&record, author.fence.clone(), is_it).await? {
                return Ok(Deletion {
                    object: event.object,
                    is_done: true,
                });
            }
        }
        let message = format!("Event {namespace}/{name} changes all the time");
        Err(ApiError::conflict(RefusalReason::Conflict, message))
    }

    /// Removes the events of a namespace in which nothing can be created any more.
    pub(crate) async fn remove_namespace(
        &self,
        namespace: &str,
        fence: &Compare,
    ) -> Result<(), ApiError> {
        let (store, incarnation) = (&self.objects.store, &self.objects.incarnation);
        let mut concerned = Vec::new();
        let is_in_it = |event: &StoredKind| event.object.namespace() == Some(namespace);
        store
            .scan(&Span::prefix(all_events()), None, |record| {
                if unpack(&record, incarnation)?.iter().any(is_in_it) {
                    concerned.push(record);
                }
                Ok(())
            })
            .await?;
        for record in concerned {
            // One that somebody else changed is found again in the next round.
            self.rewrite(&record, Some(fence.clone()), is_in_it).await?;
        }
        Ok(())
    }

    /// Removes events by age, and the oldest of too many; at most some records. Returns how many went before their time.
    pub(crate) async fn expire(
        &self,
        retention: Duration,
        fence: &Compare,
    ) -> Result<u64, ApiError> {
        let now = self.objects.time.now();
        let oldest = now.saturating_sub(retention).as_secs();
        let mut early = 0;
        for (record, is_old) in self
            .cache
            .events_to_remove(oldest, MAX_BYTES, REMOVED_AT_ONCE)
        {
            let removed = Transaction::remove(record.key.clone(), record.revision);
            let outcome = self.objects.store.commit(removed.when(fence.clone()));
            if outcome.await?.succeeded && !is_old {
                early += record.count;
            }
        }
        Ok(early)
    }

    /// Writes a record without some of its events; false if somebody else changed it.
    async fn rewrite(
        &self,
        record: &Record,
        fence: Option<Compare>,
        removed: impl Fn(&StoredKind) -> bool,
    ) -> Result<bool, ApiError> {
        let mut events = unpack(record, &self.objects.incarnation)?;
        events.retain(|event| !removed(event));
        let (key, revision) = (record.key.clone(), record.mod_revision);
        let mut transaction = if events.is_empty() {
            Transaction::remove(key, revision)
        } else {
            Transaction::replace(key, revision, pack(events.iter()))
        };
        if let Some(fence) = fence {
            transaction = transaction.when(fence);
        }
        Ok(self.objects.store.commit(transaction).await?.succeeded)
    }

    /// Finds an event and its record: where the cache says, or in the newest records, which it may not know yet.
    async fn find(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<(Record, StoredKind)>, ApiError> {
        let (store, incarnation) = (&self.objects.store, &self.objects.incarnation);
        let of = |record: &Record| -> Result<Option<StoredKind>, ApiError> {
            let mut events = unpack(record, incarnation)?.into_iter();
            Ok(events.find(|event| is_named(event, namespace, name)))
        };
        if let Some(key) = self.cache.event_key(namespace, name) {
            let Some(record) = store.get(key).await? else {
                return Ok(None);
            };
            return Ok(of(&record)?.map(|event| (record, event)));
        }
        let shard = self.writer.shard(namespace);
        let from = self.objects.time.now().saturating_sub(RECENT).as_secs();
        let span = Span::prefix(crate::keys::events(shard));
        let mut found = None;
        store
            .scan(
                &span.after(events_from(shard, from).as_bytes()),
                None,
                |record| {
                    if found.is_none()
                        && let Ok(Some(event)) = of(&record)
                    {
                        found = Some((record, event));
                    }
                    Ok(())
                },
            )
            .await?;
        Ok(found)
    }
}

fn is_named(event: &StoredKind, namespace: &str, name: &str) -> bool {
    event.object.namespace() == Some(namespace) && event.object.name() == name
}
