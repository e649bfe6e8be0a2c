//! What a cluster's Kustomizations and releases have emitted so far, by kind and name.
//!
//! The same object may come from several emitters. The one whose name sorts first is used, so the answer does not
//! depend on which of them was built first.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use portolan_object::{Object, Owner, OwnerKind, Producer, makes, producer_kinds};
use portolan_secret::{KnownSecrets, without_passwords};
use portolan_yaml::{Node, Text};

use crate::api::{DataKind, NamespacedName, Source, SourceRef};
use crate::kustomization::variables::Data;

/// The API group of Flux's sources.
pub(crate) const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";

/// The kinds that values and variables are taken from.
const DATA_KINDS: [(&str, &str); 2] = [("", "Secret"), ("", "ConfigMap")];

/// Who emitted an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Emitter {
    /// A Kustomization.
    Kustomization(NamespacedName),
    /// A HelmRelease.
    Release(NamespacedName),
    /// A ResourceSet.
    ResourceSet(NamespacedName),
    /// A FluxInstance.
    Instance(NamespacedName),
}

impl Emitter {
    /// The emitter's kind, as Kubernetes spells it.
    pub fn kind(&self) -> &'static str {
        self.owner_kind().as_str()
    }

    /// The emitter's kind.
    pub fn owner_kind(&self) -> OwnerKind {
        match self {
            Self::Kustomization(_) => OwnerKind::Kustomization,
            Self::Release(_) => OwnerKind::Release,
            Self::ResourceSet(_) => OwnerKind::ResourceSet,
            Self::Instance(_) => OwnerKind::Instance,
        }
    }

    /// The emitter as the owner of what it emits in a cluster.
    pub fn owner(&self, cluster: &Text) -> Owner {
        let NamespacedName { namespace, name } = self.id().clone();
        Owner::new(self.owner_kind(), namespace, name).in_cluster(cluster.clone())
    }

    /// The emitter's name.
    pub fn id(&self) -> &NamespacedName {
        match self {
            Self::Kustomization(id)
            | Self::Release(id)
            | Self::ResourceSet(id)
            | Self::Instance(id) => id,
        }
    }
}

impl fmt::Display for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.id())
    }
}

/// Which data object is meant.
pub(crate) type DataId = (DataKind, NamespacedName);

/// Everything emitted so far.
#[derive(Debug, Default)]
pub struct Index {
    emitted: BTreeMap<Arc<Emitter>, Arc<Vec<Object>>>,
    kinds: HashMap<Kind, OfKind>,
    /// Hashes the names of objects.
    hasher: RandomState,
    /// The content of ConfigMaps and Secrets, as far as somebody asked for it.
    data: Mutex<HashMap<DataId, Arc<Data>>>,
    /// Learns the values of Secrets that are asked for.
    secrets: Option<Arc<KnownSecrets>>,
    /// What controllers make that the built-in table does not know.
    producers: Arc<[Producer]>,
}

/// A group and kind.
type Kind = (Text, Text);

/// Where an object stands: its emitter and its place among what that emits.
type Spot = (Arc<Emitter>, u32);

/// Where the objects of a kind stand.
#[derive(Debug, Default)]
struct OfKind {
    all: BTreeSet<Spot>,
    /// By the hash of the name: the name stands in the object itself, and there are as many as objects.
    names: HashMap<u64, Spots>,
}

/// Where the objects of one hash stand. There is hardly ever more than one, and a set takes a hundred times the room.
#[derive(Debug)]
enum Spots {
    One(Spot),
    More(BTreeSet<Spot>),
}

impl OfKind {
    fn insert(&mut self, name: u64, spot: &Spot) {
        self.all.insert(spot.clone());
        match self.names.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(Spots::One(spot.clone())),
            Entry::Occupied(mut entry) => entry.get_mut().insert(spot.clone()),
        }
    }

    fn remove(&mut self, name: u64, spot: &Spot) {
        self.all.remove(spot);
        match self.names.get_mut(&name) {
            Some(Spots::One(one)) if one == spot => _ = self.names.remove(&name),
            Some(Spots::More(spots)) => _ = spots.remove(spot),
            Some(Spots::One(_)) | None => {}
        }
    }
}

impl Spots {
    fn insert(&mut self, spot: Spot) {
        match self {
            Self::One(one) => {
                *self = Self::More(BTreeSet::from([one.clone(), spot]));
            }
            Self::More(spots) => _ = spots.insert(spot),
        }
    }

    /// All of them, emitters in order.
    fn iter(&self) -> impl Iterator<Item = &Spot> {
        let (one, more) = match self {
            Self::One(spot) => (Some(spot), None),
            Self::More(spots) => (None, Some(spots.iter())),
        };
        one.into_iter().chain(more.into_iter().flatten())
    }
}

impl Index {
    /// An index that tells which values of Secrets were asked for, and knows what controllers make besides.
    pub(crate) fn telling(secrets: Option<Arc<KnownSecrets>>, producers: &Arc<[Producer]>) -> Self {
        Self {
            secrets,
            producers: Arc::clone(producers),
            ..Self::default()
        }
    }

    /// An object that makes a Secret or ConfigMap of this name in the cluster.
    pub(crate) fn producer(&self, namespace: &str, name: &str) -> Option<&Object> {
        let made = DATA_KINDS.map(|(_, kind)| kind);
        let is_by_table = |object: &Object| {
            let mut made = made.iter();
            made.any(|made| makes(object, namespace, made, name))
        };
        // One that is there already may be copied to other namespaces.
        let mut known = producer_kinds().chain(DATA_KINDS);
        if let Some(object) = known.find_map(|kind| self.find_of_kind(kind, is_by_table)) {
            return Some(object);
        }
        let mut added = self.producers.iter();
        added.find_map(|producer| {
            let makes_it = |object: &Object| {
                let own = match object.namespace() {
                    "" => namespace,
                    own => own,
                };
                let products = producer.products(object, own);
                products
                    .iter()
                    .any(|product| made.iter().any(|kind| product.is(kind, namespace, name)))
            };
            self.find_of_kind(producer.group_and_kind(), makes_it)
        })
    }

    fn find_of_kind(
        &self,
        (group, kind): (&str, &str),
        is_it: impl Fn(&Object) -> bool,
    ) -> Option<&Object> {
        let mut objects = self.of_kind(group, kind).map(|(_, object)| object);
        objects.find(|object| is_it(object))
    }

    /// What controllers make that the built-in table does not know.
    pub(crate) fn added_producers(&self) -> Arc<[Producer]> {
        Arc::clone(&self.producers)
    }

    /// Takes in what an emitter gives, in place of what it gave before.
    pub fn replace(&mut self, emitter: &Emitter, objects: &Arc<Vec<Object>>) {
        let emitter = Arc::new(emitter.clone());
        let before = self
            .emitted
            .insert(Arc::clone(&emitter), Arc::clone(objects));
        if let Some(before) = before {
            self.remove(&emitter, &before);
        }
        for (spot, object) in spots(&emitter, objects) {
            let name = self.hash_of(object.namespace(), object.name());
            let of_kind = self.kinds.entry(kind_of(object)).or_default();
            of_kind.insert(name, &spot);
            self.forget_data(object);
        }
    }

    /// Forgets what an emitter gave, but for some of it, which is packed.
    pub(crate) fn reduce(&mut self, emitter: &Emitter, is_kept: impl Fn(&Object) -> bool) {
        let Some(objects) = self.emitted.get(emitter) else {
            return;
        };
        let kept = objects.iter().filter(|object| is_kept(object)).cloned();
        let kept = kept.collect();
        self.replace_packed(emitter, kept);
    }

    /// Takes in what an emitter gives, packed, in place of what it gave before.
    pub(crate) fn replace_packed(&mut self, emitter: &Emitter, mut objects: Vec<Object>) {
        Object::pack_all(&mut objects);
        objects.shrink_to_fit();
        self.replace(emitter, &Arc::new(objects));
    }

    fn remove(&mut self, emitter: &Arc<Emitter>, objects: &[Object]) {
        for (spot, object) in spots(emitter, objects) {
            let name = self.hash_of(object.namespace(), object.name());
            if let Some(of_kind) = self.kinds.get_mut(&kind_of(object)) {
                of_kind.remove(name, &spot);
            }
            self.forget_data(object);
        }
    }

    /// Has the content of an object read again when somebody asks for it.
    fn forget_data(&mut self, object: &Object) {
        if let Some(id) = data_id(object) {
            self.data.get_mut().remove(&id);
        }
    }

    /// The content of a ConfigMap or Secret. Whoever asks may put it anywhere, so what is secret is made known.
    pub fn data(&self, id: &DataId) -> Option<Arc<Data>> {
        let data = self.read_data(id)?;
        if let (DataKind::Secret, Some(secrets)) = (id.0, &self.secrets) {
            secrets.add_data(
                data.iter()
                    .map(|(key, bytes)| (key.as_str(), bytes.as_slice())),
            );
        }
        Some(data)
    }

    fn read_data(&self, id: &DataId) -> Option<Arc<Data>> {
        let mut known = self.data.lock();
        if let Some(data) = known.get(id) {
            return Some(Arc::clone(data));
        }
        let (_, object) = self.named("", id.0.as_str(), &id.1)?;
        // A clone is read, so that a packed object stays packed.
        let (_, data) = data_of(&object.clone())?;
        known.insert(id.clone(), Arc::clone(&data));
        Some(data)
    }

    /// What learns the values of Secrets that are asked for.
    pub(crate) fn known_secrets(&self) -> Option<&Arc<KnownSecrets>> {
        self.secrets.as_ref()
    }

    /// Hides in a message what is known to be secret, and passwords of addresses, unless secrets are to be shown.
    pub(crate) fn hide_secrets(&self, message: &mut String) {
        if let Some(secrets) = &self.secrets {
            *message = without_passwords(&secrets.mask().text(message)).into_owned();
        }
    }

    /// The source that a reference names; of several objects with this name, the first emitter's.
    pub fn source(&self, reference: &SourceRef) -> Option<Source> {
        let (_, object) = self.named(SOURCE_GROUP, &reference.kind, &reference.id)?;
        Source::read(object.node())?.ok()
    }

    /// An object by name; of several, the first emitter's.
    pub fn named(
        &self,
        group: &str,
        kind: &str,
        id: &NamespacedName,
    ) -> Option<(&Emitter, &Object)> {
        let of_kind = self.kinds.get(&(Text::from(group), Text::from(kind)))?;
        let spots = of_kind.names.get(&self.hash_of(&id.namespace, &id.name))?;
        let mut found = spots.iter().filter_map(|spot| self.at(spot));
        found.find(|(_, object)| id.namespace == object.namespace() && id.name == object.name())
    }

    fn hash_of(&self, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((namespace, name))
    }

    /// Every object, by emitter.
    pub fn emitted(&self) -> impl Iterator<Item = (&Emitter, &Arc<Vec<Object>>)> {
        let emitted = self.shared_emitted();
        emitted.map(|(emitter, objects)| (emitter.as_ref(), objects))
    }

    /// The same, with emitters that can be held without a copy.
    pub(crate) fn shared_emitted(
        &self,
    ) -> impl ExactSizeIterator<Item = (&Arc<Emitter>, &Arc<Vec<Object>>)> {
        self.emitted.iter()
    }

    /// What emitters give that give something else in another index, or nothing; with what they give there.
    pub(crate) fn emitted_otherwise<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a [Object], &'a [Object])> {
        self.emitted.iter().filter_map(|(emitter, objects)| {
            let theirs = other.emitted.get(emitter);
            let is_shared = theirs.is_some_and(|theirs| Arc::ptr_eq(theirs, objects));
            let theirs = theirs.map_or(&[][..], |theirs| theirs.as_slice());
            (!is_shared).then_some((objects.as_slice(), theirs))
        })
    }

    /// Every object of a group and kind with who emitted it, emitters in order.
    pub fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = (&Emitter, &Object)> {
        let of_kind = self.kinds.get(&(Text::from(group), Text::from(kind)));
        let spots = of_kind.into_iter().flat_map(|of_kind| &of_kind.all);
        spots.filter_map(|spot| self.at(spot))
    }

    /// Every object of a group and kind that no earlier emitter gives under the same name, with who emitted it.
    pub fn first_of_kind(
        &self,
        group: &str,
        kind: &str,
    ) -> impl Iterator<Item = (&Emitter, &Object)> {
        let mut seen = HashSet::new();
        self.of_kind(group, kind)
            .filter(move |(_, object)| seen.insert(name_of(object)))
    }

    fn at(&self, (emitter, at): &Spot) -> Option<(&Emitter, &Object)> {
        let (emitter, objects) = self.emitted.get_key_value(emitter)?;
        Some((emitter, objects.get(*at as usize)?))
    }
}

/// The objects of an emitter with where they stand.
fn spots<'a>(
    emitter: &Arc<Emitter>,
    objects: &'a [Object],
) -> impl Iterator<Item = (Spot, &'a Object)> {
    let numbered = (0..).zip(objects);
    numbered.map(|(at, object)| ((Arc::clone(emitter), at), object))
}

fn kind_of(object: &Object) -> Kind {
    let gvk = object.gvk();
    (gvk.group.clone(), gvk.kind.clone())
}

pub(crate) fn name_of(object: &Object) -> NamespacedName {
    let id = object.id();
    NamespacedName {
        namespace: id.namespace.clone(),
        name: id.name.clone(),
    }
}

/// Which data an object holds, if it is a ConfigMap or Secret.
pub(crate) fn data_id(object: &Object) -> Option<DataId> {
    let kind = match object.kind() {
        "ConfigMap" if object.gvk().group.is_empty() => DataKind::ConfigMap,
        "Secret" if object.gvk().group.is_empty() => DataKind::Secret,
        _ => return None,
    };
    Some((kind, name_of(object)))
}

/// The content of an object, if it is a ConfigMap or Secret.
pub(crate) fn data_of(object: &Object) -> Option<(DataId, Arc<Data>)> {
    let id = data_id(object)?;
    let kind = id.0;
    let mut data = Data::new();
    for entry in object
        .node()
        .get("data")
        .and_then(Node::as_map)
        .into_iter()
        .flatten()
    {
        let Some(scalar) = entry.value.as_scalar() else {
            continue;
        };
        let bytes = match kind {
            DataKind::ConfigMap => scalar.text.as_bytes().to_vec(),
            DataKind::Secret => decoded(&scalar.text),
        };
        data.insert(entry.key.scalar.text.clone(), bytes);
    }
    if kind == DataKind::Secret {
        // The API server folds `stringData` into `data`.
        for entry in object
            .node()
            .get("stringData")
            .and_then(Node::as_map)
            .into_iter()
            .flatten()
        {
            if let Some(scalar) = entry.value.as_scalar() {
                data.insert(
                    entry.key.scalar.text.clone(),
                    scalar.text.as_bytes().to_vec(),
                );
            }
        }
    }
    Some((id, Arc::new(data)))
}

/// Base64 decoded; text that is none, such as an encrypted value, stays as it is.
fn decoded(text: &Text) -> Vec<u8> {
    let compact: String = text
        .chars()
        .filter(|letter| !letter.is_ascii_whitespace())
        .collect();
    STANDARD
        .decode(compact)
        .unwrap_or_else(|_| text.as_bytes().to_vec())
}
