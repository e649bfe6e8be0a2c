//! The objects of a kind, kept current by a watch and shared by all readers.
//!
//! ```text
//! kube's watcher (list, watch, 410, lost connections, back-off) ──▶ Cache ──▶ get, group
//!                                                                     └─────▶ a call for each object that changed
//! ```
//!
//! The kind may not be served yet: its CRD can be created later, and deleted again. Until it exists, the cache is
//! empty and says so.

mod kept;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, DynamicResourceScope, PartialObjectMeta, TypeMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use portolan_engine::with_causes;

use self::kept::Kept;
use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::metadata::object_key;
use crate::shallow::ShallowObject;

/// How often it is looked whether a kind is served now.
const LOOK_FOR_DEFINITION: Duration = Duration::from_secs(2);

/// What a cache holds.
#[derive(Clone)]
pub struct CacheOptions {
    /// The only namespace; all of them if left out.
    pub namespace: Option<String>,
    /// A label selector; may be empty.
    pub labels: String,
    /// Whether metadata are enough.
    pub metadata_only: bool,
    /// The group that an object is found by, together with its namespace.
    pub group: fn(&DynamicObject) -> Option<String>,
    /// Takes away what nobody reads, so that a large cluster costs little memory.
    pub trim: fn(&mut DynamicObject),
    /// Whether an object is read so often that it is kept ready for it. Else it is kept as text: a fifth of the memory,
    /// and some microseconds for each read.
    pub read_often: fn(&DynamicObject) -> bool,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            labels: String::new(),
            metadata_only: false,
            group: |_| None,
            trim: |_| {},
            read_often: |_| false,
        }
    }
}

/// How far a cache is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheState {
    /// Nothing is known yet.
    Starting,
    /// The cluster does not serve the kind.
    NotServed,
    /// All objects are known.
    Current,
    /// They were known, or are not yet, and now there is this trouble.
    Failing(String),
}

/// The objects of a kind; clones share them.
#[derive(Clone)]
pub struct Cache(Arc<Shared>);

struct Shared {
    resource: Resource,
    options: CacheOptions,
    contents: RwLock<Contents>,
}

struct Contents {
    objects: Objects,
    /// Objects of a list that is not complete yet.
    listed: Objects,
    /// Names by namespace and group.
    groups: BTreeMap<(String, String), Vec<Arc<Kept>>>,
    state: CacheState,
    /// Whether all objects were known at least once since the kind is served.
    is_filled: bool,
}

type Objects = BTreeMap<String, Entry>;

/// An object, and the group that it is in.
#[derive(Clone)]
struct Entry {
    kept: Arc<Kept>,
    group: Option<(String, String)>,
}

impl Cache {
    /// An empty cache; [`Self::follow`] fills it.
    pub fn new(resource: Resource, options: CacheOptions) -> Self {
        let contents = Contents {
            objects: Objects::new(),
            listed: Objects::new(),
            groups: BTreeMap::new(),
            state: CacheState::Starting,
            is_filled: false,
        };
        Self(Arc::new(Shared {
            resource,
            options,
            contents: RwLock::new(contents),
        }))
    }

    /// The kind.
    pub fn resource(&self) -> &Resource {
        &self.0.resource
    }

    /// How far it is.
    pub fn state(&self) -> CacheState {
        self.read().state.clone()
    }

    /// Whether what it holds can be believed: everything is known, or it is known that the kind is not served.
    pub fn is_filled(&self) -> bool {
        let contents = self.read();
        contents.is_filled || contents.state == CacheState::NotServed
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let key = object_key(namespace, name);
        let kept = Arc::clone(&self.read().objects.get(&key)?.kept);
        kept.object()
    }

    /// Every object.
    pub fn all(&self) -> Vec<Arc<DynamicObject>> {
        let kept: Vec<_> = self.read().objects.values().cloned().collect();
        objects(kept.iter().map(|entry| &entry.kept))
    }

    /// The objects of a group, in order of their names.
    pub fn group(&self, namespace: &str, group: &str) -> Vec<Arc<DynamicObject>> {
        let key = (namespace.to_owned(), group.to_owned());
        let group = self.read().groups.get(&key).cloned().unwrap_or_default();
        objects(&group)
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the cache current for as long as it is polled; calls `changed` with each object that is new, other than
    /// before or gone.
    pub async fn follow(&self, cluster: &Cluster, changed: impl Fn(&DynamicObject)) -> Infallible {
        loop {
            self.wait_until_served(cluster).await;
            self.watch(cluster, &changed).await;
            // The definition is gone, and every object with it.
            self.take(Event::Init, &changed);
            self.take(Event::InitDone, &changed);
            let mut contents = self.write();
            contents.is_filled = false;
            contents.state = CacheState::NotServed;
        }
    }

    async fn wait_until_served(&self, cluster: &Cluster) {
        loop {
            match cluster.serves(&self.0.resource).await {
                Ok(true) => return,
                Ok(false) => self.write().state = CacheState::NotServed,
                Err(error) => self.write().state = CacheState::Failing(with_causes(&error)),
            }
            tokio::time::sleep(LOOK_FOR_DEFINITION).await;
        }
    }

    /// Returns when the kind is not served any more.
    async fn watch(&self, cluster: &Cluster, changed: &impl Fn(&DynamicObject)) {
        let options = &self.0.options;
        let config = watcher::Config::default().labels(&options.labels);
        let events = if options.metadata_only {
            let events = watcher(
                self.api::<PartialObjectMeta<DynamicObject>>(cluster),
                config,
            );
            let events = events.map(|event| event.map(|event| each(event, metadata_alone)));
            events.left_stream()
        } else {
            let events = watcher(self.api::<ShallowObject>(cluster), config);
            let events = events.map(|event| event.map(|event| each(event, |object| object.0)));
            events.right_stream()
        };
        // The watcher of kube's runtime has its own policy, which counts what only the watcher sees.
        let mut events = pin!(events.default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.take(event, changed),
                Err(error) if is_not_served(&error) => return,
                Err(error) => self.write().state = CacheState::Failing(with_causes(&error)),
            }
        }
    }

    fn api<K>(&self, cluster: &Cluster) -> Api<K>
    where
        K: kube::Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        let resource = self.0.resource.api_resource();
        match self.0.options.namespace.as_deref() {
            Some(namespace) if self.0.resource.namespaced => {
                Api::namespaced_with(cluster.client(), namespace, &resource)
            }
            _ => Api::all_with(cluster.client(), &resource),
        }
    }

    fn take(&self, event: Event<DynamicObject>, changed: &impl Fn(&DynamicObject)) {
        let differing = match event {
            Event::Init => {
                self.write().listed.clear();
                return;
            }
            Event::InitApply(object) => {
                let (key, object) = self.trimmed(object);
                let entry = self.entry(&object);
                self.write().listed.insert(key, entry);
                return;
            }
            Event::InitDone => self.replace_all(),
            Event::Apply(object) => {
                let (key, object) = self.trimmed(object);
                let entry = self.entry(&object);
                let mut contents = self.write();
                contents.join_group(&entry);
                if let Some(before) = contents.objects.insert(key, entry) {
                    contents.leave_group(&before);
                }
                contents.state = CacheState::Current;
                vec![object]
            }
            Event::Delete(object) => {
                let (key, object) = self.trimmed(object);
                let mut contents = self.write();
                if let Some(before) = contents.objects.remove(&key) {
                    contents.leave_group(&before);
                }
                vec![object]
            }
        };
        for object in differing {
            changed(&object);
        }
    }

    /// Takes a complete list over; returns what differs from before.
    fn replace_all(&self) -> Vec<Arc<DynamicObject>> {
        let mut contents = self.write();
        let listed = std::mem::take(&mut contents.listed);
        let before = std::mem::replace(&mut contents.objects, listed);
        contents.groups.clear();
        let now: Vec<_> = contents.objects.values().cloned().collect();
        for entry in &now {
            contents.join_group(entry);
        }
        contents.state = CacheState::Current;
        contents.is_filled = true;
        let is_new = |(key, entry): &(&String, &Entry)| {
            let known = before.get(*key);
            known.is_none_or(|known| known.kept.version != entry.kept.version)
        };
        let is_gone = |(key, _): &(&String, &Entry)| !contents.objects.contains_key(*key);
        let new = contents.objects.iter().filter(is_new);
        let gone = before.iter().filter(is_gone);
        objects(new.chain(gone).map(|(_, entry)| &entry.kept))
    }

    fn entry(&self, object: &Arc<DynamicObject>) -> Entry {
        let options = &self.0.options;
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let group = (options.group)(object).map(|group| (namespace.to_owned(), group));
        Entry {
            kept: Arc::new(Kept::new(object, (options.read_often)(object))),
            group,
        }
    }

    fn trimmed(&self, mut object: DynamicObject) -> (String, Arc<DynamicObject>) {
        object.metadata.managed_fields = None;
        // The objects of a list do not say what they are.
        object.types = Some(TypeMeta {
            api_version: self.0.resource.api_version.clone(),
            kind: self.0.resource.kind.clone(),
        });
        (self.0.options.trim)(&mut object);
        (key_of(&object), Arc::new(object))
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        let contents = self.0.contents.read();
        contents.unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        let contents = self.0.contents.write();
        contents.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn join_group(&mut self, entry: &Entry) {
        if let Some(key) = entry.group.clone() {
            let group = self.groups.entry(key).or_default();
            let place = group.partition_point(|other| other.name < entry.kept.name);
            group.insert(place, Arc::clone(&entry.kept));
        }
    }

    fn leave_group(&mut self, entry: &Entry) {
        if let Some(key) = &entry.group
            && let Some(group) = self.groups.get_mut(key)
        {
            group.retain(|other| !Arc::ptr_eq(other, &entry.kept));
            if group.is_empty() {
                self.groups.remove(key);
            }
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("resource", &self.0.resource.id())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

fn objects<'a>(kept: impl IntoIterator<Item = &'a Arc<Kept>>) -> Vec<Arc<DynamicObject>> {
    kept.into_iter().filter_map(|kept| kept.object()).collect()
}

fn key_of(object: &DynamicObject) -> String {
    let metadata = &object.metadata;
    object_key(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// Metadata as an object that has nothing else.
fn metadata_alone(partial: PartialObjectMeta<DynamicObject>) -> DynamicObject {
    DynamicObject {
        types: None,
        metadata: partial.metadata,
        data: serde_json::Value::Null,
    }
}

/// The same event with another form of its object.
fn each<T>(event: Event<T>, form: impl Fn(T) -> DynamicObject) -> Event<DynamicObject> {
    match event {
        Event::Apply(object) => Event::Apply(form(object)),
        Event::Delete(object) => Event::Delete(form(object)),
        Event::InitApply(object) => Event::InitApply(form(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Whether the server does not know the kind any more.
fn is_not_served(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 404,
        _ => false,
    }
}
