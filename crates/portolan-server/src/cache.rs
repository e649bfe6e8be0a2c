//! The objects of the store in memory, and their last changes: one watch of the store feeds all watches of clients.
//!
//! Objects are kept as the bytes of the store and decoded when somebody asks for them, so that 100,000 of them fit
//! into 300 MB beside everything else. The cache begins some thousand revisions back, where the store still has them, so
//! that a client can resume its watch after a restart of the server.

mod change;
mod feed;
mod packed;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use portolan_kinds::{DecodeError, KINDS, KindDefinition, KindObject};
use portolan_store::{Event, Incarnation, Record, Revision, Span, Store, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) use self::change::{Change, Side};
pub(crate) use self::feed::CacheFeed;
use self::packed::{PackedObject, ShortUuid, StatusChange};
use crate::events::{EventIndex, OldRecord, unpack};
use crate::keys::{ObjectKey, Part, all_events, all_objects, collection, followed};
use crate::record::StoredKind;
use crate::server_clocks::ServerClocks;

/// Changes that are kept for watches to resume.
const MAX_CHANGES: usize = 20_000;
/// The bytes of the objects in these changes.
const MAX_CHANGE_BYTES: usize = 64 << 20;
/// Changes that are kept in every form that watches need; older ones are bytes.
const MAX_OPEN_CHANGES: usize = 512;
/// The bytes of objects that are kept decoded, too; decoded they take some four times as much.
const MAX_DECODED_BYTES: usize = 16 << 20;
/// How many revisions before its start the cache begins.
const LOOK_BACK: u64 = 5_000;
/// A cache that did not see the server's own tick for so long is not to be trusted.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// Kinds that the server itself looks at all the time, so that they are kept decoded.
const LOOKED_AT: [&str; 14] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterVariablesBinding",
    "Config",
    "CronJob",
    "Namespace",
    "Node",
    "NodeGrant",
    "NodeGroup",
    "Repository",
    "Role",
    "RoleBinding",
    "Run",
    "Trigger",
];

/// The objects in memory; clones share them.
#[derive(Clone)]
pub(crate) struct Cache(Arc<Shared>);

struct Shared {
    incarnation: Arc<Incarnation>,
    clocks: ServerClocks,
    state: RwLock<State>,
    /// Rises with every change and with progress.
    revision: watch::Sender<Revision>,
}

struct State {
    objects: Objects,
    events: EventIndex,
    changes: VecDeque<Arc<Change>>,
    /// The bytes of all changes.
    change_bytes: usize,
    /// All changes after this revision are in `changes`.
    complete_after: Revision,
    /// When the server's own tick came back last.
    ticked: Instant,
    /// Rises whenever a role or binding changes.
    rights: u64,
}

/// The objects, and what is asked of all of them.
#[derive(Default)]
struct Objects {
    by_key: BTreeMap<ObjectKey, Arc<PackedObject>>,
    uuids: HashSet<ShortUuid>,
    /// Those that are deleted with others.
    owned: BTreeSet<ObjectKey>,
    /// Those that come from Git.
    sourced: BTreeSet<ObjectKey>,
    /// Variables whose values a step makes.
    produced: BTreeSet<ObjectKey>,
    /// The bytes of those that are kept decoded.
    decoded_bytes: usize,
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
        clocks: ServerClocks,
        newest: Revision,
    ) -> Result<(Self, CacheFeed), StoreError> {
        let cache = Self(Arc::new(Shared {
            incarnation,
            clocks,
            state: RwLock::new(State {
                objects: Objects::default(),
                events: EventIndex::default(),
                changes: VecDeque::new(),
                change_bytes: 0,
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
        let (mut objects, number) = (Objects::default(), self.0.incarnation.number);
        // The status of an object is next to its spec.
        let mut open: Option<(ObjectKey, Record)> = None;
        let span = Span::prefix(all_objects());
        let revision = store
            .scan(&span, at, |record| {
                match ObjectKey::parse(&record.key) {
                    Some((key, Part::Spec)) => {
                        if let Some((before, spec)) = open.replace((key, record)) {
                            objects.load(before, &spec, None, number);
                        }
                    }
                    Some((key, Part::Status)) => {
                        let spec = open.take_if(|(of, _)| *of == key);
                        if let Some((key, spec)) = spec {
                            objects.load(key, &spec, Some(&record), number);
                        }
                    }
                    None => {}
                }
                Ok(())
            })
            .await?;
        if let Some((key, spec)) = open {
            objects.load(key, &spec, None, number);
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
        state.objects = objects;
        state.events = events;
        state.changes.clear();
        state.change_bytes = 0;
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
                self.take_tick(event, &mut state);
                continue;
            };
            let entry = parts.entry(key.clone()).or_insert_with(|| {
                keys.push(key);
                [None, None]
            });
            entry[usize::from(part == Part::Status)] = Some(event);
        }
        for key in keys {
            let Some([spec, status]) = parts.remove(&key) else {
                continue;
            };
            state.change(&key, revision, spec, status, self.incarnation());
        }
        drop(state);
        self.advance(revision);
    }

    fn take_tick(&self, event: &Event, state: &mut State) {
        let clocks = &self.0.clocks;
        match event {
            Event::Put(record) if clocks.is_own(&record.key) => state.ticked = Instant::now(),
            Event::Put(record) => clocks.hear(&record.key, &record.value),
            Event::Delete { key, .. } => clocks.forget(key),
        }
    }

    /// How many milliseconds the clock of another server is ahead of this one's.
    pub(crate) fn clock_ahead(&self, server: &str) -> Option<i64> {
        self.0.clocks.ahead(server)
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

    /// The revision after which all changes are known.
    pub(crate) fn complete_after(&self) -> Revision {
        self.0.state.read().complete_after
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
        let prefix = collection(kind, namespace);
        let packed: Vec<Arc<PackedObject>> = {
            let state = self.0.state.read();
            let found = state.objects.below(&prefix);
            found.map(|(_, packed)| Arc::clone(packed)).collect()
        };
        self.unpacked(&packed)
    }

    /// One object.
    pub(crate) fn object(&self, key: &ObjectKey) -> Option<Arc<KindObject>> {
        let packed = self.0.state.read().objects.by_key.get(key).cloned();
        packed?.unpack(self.incarnation())
    }

    /// The objects in a namespace, in key order, at most so many; and how many there are.
    pub(crate) fn in_namespace(
        &self,
        namespace: &str,
        most: usize,
    ) -> (Vec<Arc<KindObject>>, usize) {
        let (mut packed, mut count) = (Vec::new(), 0);
        {
            let state = self.0.state.read();
            for prefix in collections_in(namespace) {
                for (_, one) in state.objects.below(&prefix) {
                    count += 1;
                    if packed.len() < most {
                        packed.push(Arc::clone(one));
                    }
                }
            }
        }
        (self.unpacked(&packed), count)
    }

    /// The objects that are deleted with others none of which exists any more, at most so many.
    pub(crate) fn orphans(&self, most: usize) -> Vec<Arc<KindObject>> {
        let packed: Vec<Arc<PackedObject>> = {
            let state = self.0.state.read();
            let objects = &state.objects;
            let owned = objects
                .owned
                .iter()
                .filter_map(|key| objects.by_key.get(key));
            let orphans = owned.filter(|object| {
                let mut owners = object.owners.iter();
                !owners.any(|owner| objects.uuids.contains(owner))
            });
            orphans.take(most).cloned().collect()
        };
        self.unpacked(&packed)
    }

    /// How many objects are in a namespace or deleted with an object.
    pub(crate) fn dependents(&self, uuid: &str, namespace: Option<&str>) -> usize {
        let state = self.0.state.read();
        let objects = &state.objects;
        let uuid = ShortUuid::new(uuid);
        let prefixes: Vec<String> = namespace.into_iter().flat_map(collections_in).collect();
        let inside = prefixes.iter().map(|prefix| objects.below(prefix).count());
        let outside = objects.owned.iter().filter(|key| {
            let is_inside = prefixes
                .iter()
                .any(|prefix| key.prefix().starts_with(prefix));
            let object = objects.by_key.get(*key).filter(|_| !is_inside);
            object.is_some_and(|object| object.owners.contains(&uuid))
        });
        inside.sum::<usize>() + outside.count()
    }

    /// The objects that come from Git, in key order.
    pub(crate) fn sourced(&self) -> Vec<Arc<KindObject>> {
        self.of_keys(|objects| &objects.sourced)
    }

    /// The Variables whose values a step makes, in key order. All the others are not even decoded.
    pub(crate) fn produced(&self) -> Vec<Arc<KindObject>> {
        self.of_keys(|objects| &objects.produced)
    }

    fn of_keys(&self, keys: impl Fn(&Objects) -> &BTreeSet<ObjectKey>) -> Vec<Arc<KindObject>> {
        let packed: Vec<Arc<PackedObject>> = {
            let state = self.0.state.read();
            let objects = &state.objects;
            let found = keys(objects)
                .iter()
                .filter_map(|key| objects.by_key.get(key));
            found.cloned().collect()
        };
        self.unpacked(&packed)
    }

    /// The Secrets, each with the name of the key that its values are sealed with.
    pub(crate) fn sealed(&self) -> Vec<(ObjectKey, String)> {
        let Some(kind) = portolan_kinds::find_kind("Secret") else {
            return Vec::new();
        };
        let state = self.0.state.read();
        let prefix = collection(kind, None);
        let secrets = state.objects.below(&prefix);
        let sealed = secrets.filter_map(|(key, packed)| {
            let sealed_with = packed.sealed_with.as_deref()?;
            Some((key.clone(), sealed_with.to_owned()))
        });
        sealed.collect()
    }

    fn unpacked(&self, packed: &[Arc<PackedObject>]) -> Vec<Arc<KindObject>> {
        let number = self.incarnation();
        let objects = packed.iter().filter_map(|one| one.unpack(number));
        objects.collect()
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
        (state.objects.by_key.len(), state.changes.len())
    }

    /// Rises whenever a role or binding changes.
    pub(crate) fn rights_version(&self) -> u64 {
        self.0.state.read().rights
    }
}

impl Objects {
    /// Adds an object that was read from the store.
    fn load(&mut self, key: ObjectKey, spec: &Record, status: Option<&Record>, incarnation: u64) {
        let Some(kind) = key.kind() else {
            return;
        };
        if let Some(packed) = read_packed(&key, PackedObject::new(kind, spec, status)) {
            self.put(key, packed, incarnation);
        }
    }

    fn put(
        &mut self,
        key: ObjectKey,
        mut packed: PackedObject,
        incarnation: u64,
    ) -> Arc<PackedObject> {
        let is_looked_at = LOOKED_AT.contains(&packed.kind.name);
        if is_looked_at && self.decoded_bytes + packed.bytes() <= MAX_DECODED_BYTES {
            packed.keep_decoded(incarnation);
            self.decoded_bytes += packed.bytes();
        }
        let packed = Arc::new(packed);
        self.uuids.insert(packed.uuid);
        if !packed.owners.is_empty() {
            self.owned.insert(key.clone());
        }
        if packed.has_source {
            self.sourced.insert(key.clone());
        }
        if packed.is_produced {
            self.produced.insert(key.clone());
        }
        self.by_key.insert(key, Arc::clone(&packed));
        packed
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<PackedObject>> {
        let packed = self.by_key.remove(key)?;
        self.uuids.remove(&packed.uuid);
        self.owned.remove(key);
        self.sourced.remove(key);
        self.produced.remove(key);
        if packed.is_decoded() {
            self.decoded_bytes -= packed.bytes();
        }
        Some(packed)
    }

    /// The objects whose keys begin with a text, in key order.
    fn below<'o>(
        &'o self,
        prefix: &'o str,
    ) -> impl Iterator<Item = (&'o ObjectKey, &'o Arc<PackedObject>)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = self.by_key.range::<str, _>(from);
        found.take_while(move |(key, _)| key.prefix().starts_with(prefix))
    }
}

impl State {
    fn change(
        &mut self,
        key: &ObjectKey,
        revision: Revision,
        spec: Option<&Event>,
        status: Option<&Event>,
        incarnation: u64,
    ) {
        let Some(kind) = key.kind() else {
            return;
        };
        let old = self.objects.remove(key);
        let status = match status.map(put_record) {
            None => StatusChange::Kept,
            Some(Some(status)) => StatusChange::Set(status),
            Some(None) => StatusChange::Removed,
        };
        let packed = match (spec.map(put_record), &old) {
            (Some(None), _) | (None, None) => None,
            (Some(Some(spec)), None) => Some(PackedObject::new(kind, spec, status.record())),
            (spec, Some(old)) => Some(old.with(spec.flatten(), status)),
        };
        let packed = packed.and_then(|packed| read_packed(key, packed));
        let new = packed.map(|packed| self.objects.put(key.clone(), packed, incarnation));
        if kind.name.ends_with("Role") || kind.name.ends_with("RoleBinding") {
            self.rights += 1;
        }
        if old.is_some() || new.is_some() {
            self.push(Change::new(revision, kind, key.namespace(), old, new));
        }
    }

    /// Takes over a change of a record of events: those that it adds are told.
    fn change_events(&mut self, event: &Event, revision: Revision, incarnation: &Incarnation) {
        let Event::Put(record) = event else {
            self.events.remove(&String::from_utf8_lossy(event.key()));
            return;
        };
        for event in take_events(&mut self.events, record, incarnation) {
            let Ok(packed) = PackedObject::of_event(&event) else {
                continue;
            };
            let (object, packed) = (&event.object, Some(Arc::new(packed)));
            let namespace = object.namespace();
            self.push(Change::new(revision, object.kind, namespace, None, packed));
        }
    }

    fn push(&mut self, change: Change) {
        self.change_bytes += change.bytes();
        self.changes.push_back(Arc::new(change));
        let folded = self.changes.len().checked_sub(MAX_OPEN_CHANGES + 1);
        if let Some(change) = folded.and_then(|index| self.changes.get(index)) {
            change.fold();
        }
        while self.changes.len() > MAX_CHANGES
            || (self.change_bytes > MAX_CHANGE_BYTES && self.changes.len() > 1)
        {
            if let Some(gone) = self.changes.pop_front() {
                self.change_bytes -= gone.bytes();
                self.complete_after = gone.revision;
            }
        }
    }
}

/// The record that an event leaves; `None` for a deletion.
fn put_record(event: &Event) -> Option<&Record> {
    match event {
        Event::Put(record) => Some(record),
        Event::Delete { .. } => None,
    }
}

/// What cannot be read is told in the log, and seen by whoever reads it from the store.
fn read_packed(key: &ObjectKey, packed: Result<PackedObject, DecodeError>) -> Option<PackedObject> {
    packed
        .inspect_err(|error| {
            tracing::error!(%error, key = key.prefix(), "an object cannot be read");
        })
        .ok()
}

/// What the keys of all objects in a namespace begin with, in key order.
fn collections_in(namespace: &str) -> Vec<String> {
    let kinds = KINDS.into_iter().filter(|kind| kind.is_namespaced);
    let mut prefixes: Vec<String> = kinds
        .map(|kind| collection(kind, Some(namespace)))
        .collect();
    prefixes.sort_unstable();
    prefixes
}

/// Takes over a record of events; returns those that are new.
fn take_events(
    index: &mut EventIndex,
    record: &Record,
    incarnation: &Incarnation,
) -> Vec<StoredKind> {
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
    both.filter_map(|(event, is_new)| is_new.then_some(event))
        .collect()
}

#[cfg(test)]
mod tests;
