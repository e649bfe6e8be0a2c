//! The objects of the store in memory, and their last changes: one watch of the store feeds all watches of clients.
//!
//! The cache begins some thousand revisions back, where the store still has them, so that a client can resume its
//! watch after a restart of the server.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::RwLock;
use portolan_kinds::{KindDefinition, KindObject};
use portolan_store::{
    Event, Incarnation, Position, Record, Revision, Span, Store, StoreError, Update, Watcher,
};
use prost::Message as _;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::events::{EventIndex, OldRecord, unpack};
use crate::keys::{ObjectKey, all_events, all_objects, followed, tick};
use crate::object_message::object_message;
use crate::record::StoredKind;

/// Changes that are kept for watches to resume.
const MAX_CHANGES: usize = 20_000;
/// How many revisions before its start the cache begins.
const LOOK_BACK: u64 = 5_000;
/// A watch of the store that tells nothing for so long, not even ticks, is made anew.
const SILENCE: Duration = Duration::from_secs(5);
/// A cache that did not see the server's own tick for so long is not to be trusted.
const STALE_AFTER: Duration = Duration::from_secs(10);
/// Between two attempts to watch a store that cannot be reached.
const RETRY: Duration = Duration::from_millis(500);

/// The objects in memory; clones share them.
#[derive(Clone)]
pub(crate) struct Cache(Arc<Shared>);

struct Shared {
    incarnation: Arc<Incarnation>,
    /// The key of the server's own tick.
    tick: String,
    state: RwLock<State>,
    /// Rises with every change and with progress.
    revision: watch::Sender<Revision>,
}

struct State {
    objects: BTreeMap<ObjectKey, Arc<Held>>,
    events: EventIndex,
    changes: VecDeque<Arc<Change>>,
    /// All changes after this revision are in `changes`.
    complete_after: Revision,
    /// When the server's own tick came back last.
    ticked: Instant,
    /// Rises whenever a role or binding changes.
    rights: u64,
}

/// An object and the records that it is made of.
struct Held {
    object: Arc<KindObject>,
    spec: Record,
    status: Option<Record>,
    /// The key that the values of a Secret are sealed with.
    sealed_with: Option<String>,
}

/// A change of one object, made by one revision.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: Revision,
    pub(crate) kind: &'static KindDefinition,
    pub(crate) old: Option<Arc<KindObject>>,
    /// `None` when it was deleted.
    pub(crate) new: Option<Arc<KindObject>>,
    /// The JSON of the object, made once for all watches.
    json: OnceLock<Bytes>,
    /// The bytes of its message, made once for all watches.
    message: OnceLock<Bytes>,
}

impl Change {
    /// The JSON of the object: the new one, or the last one of a deleted object with the revision of its deletion.
    pub(crate) fn json(&self, incarnation: u64) -> &Bytes {
        self.json.get_or_init(|| {
            let told = self.told(incarnation);
            told.map_or_else(Bytes::new, |object| object.to_json().to_string().into())
        })
    }

    /// The same object as the bytes of its message.
    pub(crate) fn message(&self, incarnation: u64) -> &Bytes {
        self.message.get_or_init(|| {
            let told = self.told(incarnation);
            told.map_or_else(Bytes::new, |object| {
                object_message(&object).encode_to_vec().into()
            })
        })
    }

    fn told(&self, incarnation: u64) -> Option<Cow<'_, KindObject>> {
        if let Some(new) = &self.new {
            return Some(Cow::Borrowed(new));
        }
        let mut last = KindObject::clone(self.old.as_ref()?);
        let position = Position {
            incarnation,
            revision: self.revision,
        };
        last.metadata.resource_version = Some(position.to_string());
        Some(Cow::Owned(last))
    }
}

/// What a watch finds after a revision.
pub(crate) enum Found {
    /// These changes, in order; everything up to the revision is told.
    Changes(Vec<Arc<Change>>, Revision),
    /// The history is gone.
    Expired,
}

impl Cache {
    /// Reads all objects and begins to follow their changes. Something followed was changed at revision `newest`, so the
    /// watch will come to it.
    pub(crate) async fn start(
        store: &Store,
        incarnation: Arc<Incarnation>,
        server: &str,
        newest: Revision,
    ) -> Result<(Self, CacheFeed), StoreError> {
        let cache = Self(Arc::new(Shared {
            incarnation,
            tick: tick(server),
            state: RwLock::new(State {
                objects: BTreeMap::new(),
                events: EventIndex::default(),
                changes: VecDeque::new(),
                complete_after: 0,
                ticked: Instant::now(),
                rights: 0,
            }),
            revision: watch::Sender::new(0),
        }));
        let back = newest.saturating_sub(LOOK_BACK).max(1);
        let from = match cache.load(store, Some(back)).await {
            Err(StoreError::Compacted { .. } | StoreError::Future { .. }) => {
                cache.load(store, None).await?
            }
            loaded => loaded?,
        };
        let mut feed = CacheFeed {
            cache: cache.clone(),
            store: store.clone(),
            watcher: store.watch(Span::prefix(followed()), from + 1).await?,
        };
        feed.catch_up(newest).await?;
        Ok((cache, feed))
    }

    async fn load(&self, store: &Store, at: Option<Revision>) -> Result<Revision, StoreError> {
        let mut objects: BTreeMap<ObjectKey, (Option<Record>, Option<Record>)> = BTreeMap::new();
        let span = Span::prefix(all_objects());
        let revision = store
            .scan(&span, at, |record| {
                if let Some((key, part)) = ObjectKey::parse(&record.key) {
                    let parts = objects.entry(key).or_default();
                    match part {
                        crate::keys::Part::Spec => parts.0 = Some(record),
                        crate::keys::Part::Status => parts.1 = Some(record),
                    }
                }
                Ok(())
            })
            .await?;
        let mut held = BTreeMap::new();
        for (key, (spec, status)) in objects {
            if let Some(one) = spec.and_then(|spec| hold(spec, status, &self.0.incarnation)) {
                held.insert(key, Arc::new(one));
            }
        }
        let mut events = EventIndex::default();
        let of_events = Span::prefix(all_events());
        let incarnation = &self.0.incarnation;
        store
            .scan(&of_events, Some(revision), |record| {
                take_events(&mut events, &record, incarnation);
                Ok(())
            })
            .await?;
        let mut state = self.0.state.write();
        state.objects = held;
        state.events = events;
        state.changes.clear();
        state.complete_after = revision;
        state.rights += 1;
        drop(state);
        self.advance(revision);
        Ok(revision)
    }

    fn advance(&self, revision: Revision) {
        self.0.revision.send_if_modified(|known| {
            let is_new = revision > *known;
            *known = revision.max(*known);
            is_new
        });
    }

    /// Takes over what one revision changed: at most one change for each object.
    fn take(&self, revision: Revision, events: &[Event]) {
        let mut state = self.0.state.write();
        let mut keys: Vec<ObjectKey> = Vec::new();
        let mut parts: BTreeMap<ObjectKey, [Option<&Event>; 2]> = BTreeMap::new();
        for event in events {
            if event.key().starts_with(all_events().as_bytes()) {
                state.change_events(event, revision, &self.0.incarnation);
                continue;
            }
            let Some((key, part)) = ObjectKey::parse(event.key()) else {
                let is_put = matches!(event, Event::Put(_));
                if is_put && event.key() == self.0.tick.as_bytes() {
                    state.ticked = Instant::now();
                }
                continue;
            };
            let entry = parts.entry(key.clone()).or_insert_with(|| {
                keys.push(key);
                [None, None]
            });
            entry[usize::from(part == crate::keys::Part::Status)] = Some(event);
        }
        for key in keys {
            let Some([spec, status]) = parts.remove(&key) else {
                continue;
            };
            state.change(&key, revision, spec, status, &self.0.incarnation);
        }
        drop(state);
        self.advance(revision);
    }

    /// The newest revision that the cache knows.
    pub(crate) fn revision(&self) -> Revision {
        *self.0.revision.borrow()
    }

    /// Waits until the cache has come to a revision, for a time at most.
    pub(crate) async fn wait_for(&self, revision: Revision, most: Duration) {
        let mut revisions = self.subscribe();
        let reached = revisions.wait_for(|known| *known >= revision);
        // Who waits for nothing goes on: the write is done in any case.
        let _ = tokio::time::timeout(most, reached).await;
    }

    /// Told of every new revision.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Revision> {
        self.0.revision.subscribe()
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.0.incarnation.number
    }

    /// How long the server's own tick has not come back, if that is too long to trust the cache.
    pub(crate) fn stale(&self) -> Option<Duration> {
        let silent = self.0.state.read().ticked.elapsed();
        (silent > STALE_AFTER).then_some(silent)
    }

    /// Changes after a revision that `wanted` says yes to, at most so many at a time.
    pub(crate) fn changes_after(
        &self,
        revision: Revision,
        most: usize,
        wanted: impl Fn(&Change) -> bool,
    ) -> Found {
        let newest = self.revision();
        let state = self.0.state.read();
        if revision < state.complete_after {
            return Found::Expired;
        }
        let start = state
            .changes
            .partition_point(|change| change.revision <= revision);
        let mut found: Vec<Arc<Change>> = Vec::new();
        for change in state.changes.iter().skip(start) {
            // A revision is told whole.
            if found.len() >= most
                && found
                    .last()
                    .is_some_and(|last| last.revision != change.revision)
            {
                let told = found.last().map_or(revision, |last| last.revision);
                return Found::Changes(found, told);
            }
            if wanted(change) {
                found.push(Arc::clone(change));
            }
        }
        let told = state.changes.back().map_or(revision, |last| last.revision);
        Found::Changes(found, told.max(newest).max(revision))
    }

    /// The objects of a kind, in key order.
    pub(crate) fn objects(
        &self,
        kind: &KindDefinition,
        namespace: Option<&str>,
    ) -> Vec<Arc<KindObject>> {
        let prefix = crate::keys::collection(kind, namespace);
        let state = self.0.state.read();
        let all = state.objects.iter();
        let held = all.filter(|(key, _)| key.prefix().starts_with(&prefix));
        held.map(|(_, held)| Arc::clone(&held.object)).collect()
    }

    /// One object.
    pub(crate) fn object(&self, key: &ObjectKey) -> Option<Arc<KindObject>> {
        let state = self.0.state.read();
        state.objects.get(key).map(|held| Arc::clone(&held.object))
    }

    /// The Secrets, each with the name of the key that its values are sealed with.
    pub(crate) fn sealed(&self) -> Vec<(ObjectKey, String)> {
        let state = self.0.state.read();
        let sealed = state.objects.iter().filter_map(|(key, held)| {
            let sealed_with = held.sealed_with.clone()?;
            Some((key.clone(), sealed_with))
        });
        sealed.collect()
    }

    /// Every object, in key order.
    pub(crate) fn all(&self) -> Vec<Arc<KindObject>> {
        let state = self.0.state.read();
        state
            .objects
            .values()
            .map(|held| Arc::clone(&held.object))
            .collect()
    }

    /// The key of the record that has an event.
    pub(crate) fn event_key(&self, namespace: &str, name: &str) -> Option<String> {
        let state = self.0.state.read();
        state.events.key(namespace, name).map(str::to_owned)
    }

    /// Records of events that were written before a second, and the oldest of too many; each with whether it is one of the first
    /// sort.
    pub(crate) fn events_to_remove(
        &self,
        before: u64,
        max_bytes: u64,
        most: usize,
    ) -> Vec<(OldRecord, bool)> {
        let state = self.0.state.read();
        state.events.to_remove(before, max_bytes, most)
    }

    /// How many events there are, and their bytes.
    pub(crate) fn event_counts(&self) -> (usize, u64) {
        self.0.state.read().events.counts()
    }

    /// How many objects there are, and how many changes are kept.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.0.state.read();
        (state.objects.len(), state.changes.len())
    }

    /// Rises whenever a role or binding changes.
    pub(crate) fn rights_version(&self) -> u64 {
        self.0.state.read().rights
    }
}

impl State {
    fn change(
        &mut self,
        key: &ObjectKey,
        revision: Revision,
        spec: Option<&Event>,
        status: Option<&Event>,
        incarnation: &Incarnation,
    ) {
        let old = self.objects.remove(key);
        let spec = match spec {
            Some(Event::Put(record)) => Some(record.clone()),
            Some(Event::Delete { .. }) => None,
            None => old.as_ref().map(|old| old.spec.clone()),
        };
        let status = match status {
            Some(Event::Put(record)) => Some(record.clone()),
            Some(Event::Delete { .. }) => None,
            None => old.as_ref().and_then(|old| old.status.clone()),
        };
        let new = spec
            .and_then(|spec| hold(spec, status, incarnation))
            .map(Arc::new);
        let Some(kind) = key.kind() else {
            return;
        };
        if matches!(
            kind.name,
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding"
        ) {
            self.rights += 1;
        }
        if old.is_some() || new.is_some() {
            let old = old.as_ref().map(|old| Arc::clone(&old.object));
            let new = new.as_ref().map(|new| Arc::clone(&new.object));
            self.push(revision, kind, old, new);
        }
        if let Some(new) = new {
            self.objects.insert(key.clone(), new);
        }
    }

    /// Takes over a change of a record of events: those that it adds are told.
    fn change_events(&mut self, event: &Event, revision: Revision, incarnation: &Incarnation) {
        let Event::Put(record) = event else {
            self.events.remove(&String::from_utf8_lossy(event.key()));
            return;
        };
        for object in take_events(&mut self.events, record, incarnation) {
            self.push(revision, object.kind, None, Some(Arc::new(object)));
        }
    }

    fn push(
        &mut self,
        revision: Revision,
        kind: &'static KindDefinition,
        old: Option<Arc<KindObject>>,
        new: Option<Arc<KindObject>>,
    ) {
        self.changes.push_back(Arc::new(Change {
            revision,
            kind,
            old,
            new,
            json: OnceLock::new(),
            message: OnceLock::new(),
        }));
        while self.changes.len() > MAX_CHANGES {
            if let Some(gone) = self.changes.pop_front() {
                self.complete_after = gone.revision;
            }
        }
    }
}

/// Takes over a record of events; returns those that are new.
fn take_events(
    index: &mut EventIndex,
    record: &Record,
    incarnation: &Incarnation,
) -> Vec<KindObject> {
    let events = match unpack(record, incarnation) {
        Ok(events) => events,
        Err(error) => {
            tracing::error!(%error, "events cannot be read");
            return Vec::new();
        }
    };
    let key = String::from_utf8_lossy(&record.key);
    let names = events.iter().map(|event| {
        let object = &event.object;
        (object.namespace().unwrap_or_default(), object.name())
    });
    let are_new = index.put(&key, record.mod_revision, record.value.len(), names);
    let both = events.into_iter().zip(are_new);
    both.filter_map(|(event, is_new)| is_new.then_some(event.object))
        .collect()
}

/// An object of its records. What cannot be read is told in the log, and seen by whoever reads it from the store.
fn hold(spec: Record, status: Option<Record>, incarnation: &Incarnation) -> Option<Held> {
    let records: Vec<Record> = [Some(spec.clone()), status.clone()]
        .into_iter()
        .flatten()
        .collect();
    match StoredKind::read(&records, incarnation) {
        Ok(Some(stored)) => Some(Held {
            object: Arc::new(stored.object),
            spec,
            status,
            sealed_with: stored.sealed.map(|sealed| sealed.key_id),
        }),
        Ok(None) => None,
        Err(error) => {
            tracing::error!(%error, "an object cannot be read");
            None
        }
    }
}

/// Follows the store for a cache.
pub(crate) struct CacheFeed {
    cache: Cache,
    store: Store,
    watcher: Watcher,
}

impl CacheFeed {
    /// Takes everything up to a revision, so that the cache starts complete.
    async fn catch_up(&mut self, revision: Revision) -> Result<(), StoreError> {
        while self.cache.revision() < revision {
            self.step().await?;
        }
        Ok(())
    }

    /// Follows the store until the future is dropped. A store that cannot be watched is tried again; compacted history is
    /// read anew.
    pub(crate) async fn run(mut self) {
        loop {
            let error = match tokio::time::timeout(SILENCE, self.step()).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(_) => StoreError::Unavailable {
                    detail: format!("it told nothing for {} s", SILENCE.as_secs()),
                },
            };
            self.recover(&error).await;
        }
    }

    async fn step(&mut self) -> Result<(), StoreError> {
        match self.watcher.next().await? {
            Update::Changes { revision, events } => self.cache.take(revision, &events),
            // Ticks tell how far the watch is. A revision that only a header names says nothing of the events before it.
            Update::Progress { .. } => {}
        }
        Ok(())
    }

    async fn recover(&mut self, error: &StoreError) {
        tracing::warn!(%error, "the watch of the store has ended");
        loop {
            let from = match error {
                StoreError::Compacted { .. } => self.cache.load(&self.store, None).await,
                _ => Ok(self.cache.revision()),
            };
            let watched = match from {
                Ok(from) => self.store.watch(Span::prefix(followed()), from + 1).await,
                Err(error) => Err(error),
            };
            match watched {
                Ok(watcher) => {
                    self.watcher = watcher;
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "the store cannot be watched");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
