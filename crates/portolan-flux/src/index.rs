//! What a cluster's Kustomizations and releases have emitted so far, by kind and name.
//!
//! The same object may come from several emitters; the one whose name sorts first answers, so that the answer does not
//! depend on which of them was built first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portolan_object::Object;
use portolan_yaml::{Node, Text};

use crate::api::{DataKind, NamespacedName};
use crate::variables::Data;

/// Who emitted an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Emitter {
    /// A Kustomization.
    Kustomization(NamespacedName),
    /// A HelmRelease.
    Release(NamespacedName),
}

/// Which data object is meant.
pub(crate) type DataId = (DataKind, NamespacedName);

/// Everything emitted so far.
#[derive(Debug, Default)]
pub struct Index {
    emitted: BTreeMap<Emitter, Arc<Vec<Object>>>,
    data: HashMap<DataId, BTreeMap<Emitter, Arc<Data>>>,
}

impl Index {
    /// Takes in what an emitter gives, in place of what it gave before.
    pub fn replace(&mut self, emitter: &Emitter, objects: &Arc<Vec<Object>>) {
        if self
            .emitted
            .insert(emitter.clone(), Arc::clone(objects))
            .is_some()
        {
            for by_emitter in self.data.values_mut() {
                by_emitter.remove(emitter);
            }
        }
        for object in objects.iter() {
            if let Some((id, data)) = data_of(object) {
                self.data
                    .entry(id)
                    .or_default()
                    .entry(emitter.clone())
                    .or_insert(data);
            }
        }
    }

    /// The content of a ConfigMap or Secret.
    pub fn data(&self, id: &DataId) -> Option<&Arc<Data>> {
        self.data.get(id)?.values().next()
    }

    /// Every object, by emitter.
    pub fn emitted(&self) -> impl Iterator<Item = (&Emitter, &Arc<Vec<Object>>)> {
        self.emitted.iter()
    }

    /// Every object of a group and kind with who emitted it, emitters in order.
    pub fn of_kind<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a Emitter, &'a Object)> {
        self.emitted.iter().flat_map(move |(emitter, objects)| {
            let of_kind = move |object: &&Object| object.gvk().is(group, kind);
            objects
                .iter()
                .filter(of_kind)
                .map(move |object| (emitter, object))
        })
    }
}

/// The content of an object, if it is a ConfigMap or Secret.
fn data_of(object: &Object) -> Option<(DataId, Arc<Data>)> {
    let kind = match object.kind() {
        "ConfigMap" if object.gvk().group.is_empty() => DataKind::ConfigMap,
        "Secret" if object.gvk().group.is_empty() => DataKind::Secret,
        _ => return None,
    };
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
    let name = NamespacedName::new(object.namespace().to_owned(), object.name().to_owned());
    Some(((kind, name), Arc::new(data)))
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
