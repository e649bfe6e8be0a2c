//! The resources of a build in order, with an index by identity.
//!
//! The index is made when first needed, updated for single changes, and dropped when all resources change.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::resource::id::ResourceId;
use crate::resource::index::Index;
use crate::resource::{Behavior, ORIGIN, Resource};
use crate::schema::Schema;
use crate::value::field::{distinct_map, metadata_pairs, set_metadata, set_metadata_map};

/// Resources in the order of accumulation, no two with the same identity.
#[derive(Debug, Clone, Default)]
pub struct ResourceSet {
    resources: Vec<Resource>,
    /// `None` while it is not known to be right.
    index: Option<Index>,
    /// Whether a resource may be there of which nothing is left.
    may_have_empty: bool,
    doubts: Doubts,
}

/// Whose identity may be that of another resource.
#[derive(Debug, Clone)]
enum Doubts {
    /// Any resource's.
    All,
    /// That of the resources at these positions, often none.
    Some(Vec<usize>),
}

impl Default for Doubts {
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl ResourceSet {
    /// The resources in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Resource> {
        self.resources.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.resources.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// The resources themselves.
    pub fn into_resources(self) -> Vec<Resource> {
        self.resources
    }

    /// The resources, to change; identities are looked up anew afterwards.
    pub(crate) fn resources_mut(&mut self) -> &mut Vec<Resource> {
        self.renamed();
        &mut self.resources
    }

    /// One resource, to change in a way that keeps its identities, or to be followed by [`Self::changed`].
    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut Resource> {
        self.resources.get_mut(position)
    }

    pub(crate) fn get(&self, position: usize) -> Option<&Resource> {
        self.resources.get(position)
    }

    /// Says that any identity may have changed, and any resource may be empty.
    pub(crate) fn renamed(&mut self) {
        self.index = None;
        self.may_have_empty = true;
        self.doubts = Doubts::All;
    }

    /// Says that one resource has another identity, or nothing left.
    pub(crate) fn changed(&mut self, position: usize, schema: &Schema) {
        let Some(resource) = self.resources.get(position) else {
            return;
        };
        self.may_have_empty |= resource.is_empty();
        if let Some(index) = &mut self.index {
            index.note(position, resource, schema);
        }
        if let Doubts::Some(positions) = &mut self.doubts {
            positions.push(position);
        }
    }

    /// Adds a resource whose identity must be new.
    pub(crate) fn append(&mut self, resource: Resource, schema: &Schema) -> Result<()> {
        let id = resource.comparable_id(schema);
        if self.has_current(&id, schema) {
            return Err(Error::DuplicateId(Box::new(resource.id())));
        }
        if let Some(index) = &mut self.index {
            index.note(self.resources.len(), &resource, schema);
        }
        self.resources.push(resource);
        Ok(())
    }

    pub(crate) fn append_all(&mut self, mut other: Self, schema: &Schema) -> Result<()> {
        if self.is_empty() {
            other.check_unique(schema)?;
            *self = other;
            return Ok(());
        }
        other
            .resources
            .into_iter()
            .try_for_each(|resource| self.append(resource, schema))
    }

    /// Adds generated resources: new ones at the end, others into the one of the same identity.
    pub(crate) fn absorb_all(&mut self, other: Self, schema: &Schema) -> Result<()> {
        other
            .resources
            .into_iter()
            .try_for_each(|resource| self.absorb(resource, schema))
    }

    fn absorb(&mut self, mut resource: Resource, schema: &Schema) -> Result<()> {
        let id = resource.comparable_id(schema);
        let behavior = resource.history.behavior;
        let takes_over = matches!(behavior, Behavior::Merge | Behavior::Replace);
        let position = match self.positions(&id, schema).as_slice() {
            [] if takes_over => {
                return Err(Error::refused(format!(
                    "id {} does not exist; cannot merge or replace",
                    resource.id()
                )));
            }
            [] => return self.append(resource, schema),
            [position] if takes_over => *position,
            [_] => {
                return Err(Error::refused(format!(
                    "id {} exists; can not use behavior: '{}', behavior must be merge or replace",
                    resource.id(),
                    behavior.as_str()
                )));
            }
            _ => return Err(Error::ManyMatches(Box::new(resource.id()))),
        };
        let Some(old) = self.resources.get(position) else {
            return Ok(());
        };
        inherit_metadata(&mut resource, old)?;
        if behavior == Behavior::Merge {
            merge_data(&mut resource, old, "data");
            merge_data(&mut resource, old, "binaryData");
            if let Some(origin) = old.annotation(ORIGIN) {
                resource.set_annotation(ORIGIN, origin)?;
            }
        }
        if resource.comparable_id(schema) != old.comparable_id(schema) {
            return Err(Error::NoMatch(Box::new(resource.id())));
        }
        if let Some(old) = self.resources.get_mut(position) {
            *old = resource;
        }
        self.changed(position, schema);
        Ok(())
    }

    /// The one resource that has, or once had, an identity.
    pub(crate) fn find_one(&mut self, id: &ResourceId, schema: &Schema) -> Result<usize> {
        match self.positions(id, schema).as_slice() {
            [position] => Ok(*position),
            [] => Err(Error::NoMatch(Box::new(id.clone()))),
            _ => Err(Error::ManyMatches(Box::new(id.clone()))),
        }
    }

    /// The resources that have, or once had, an identity; the id in its form for comparisons.
    fn positions(&mut self, id: &ResourceId, schema: &Schema) -> Vec<usize> {
        let (resources, index) = self.indexed(schema);
        let had = |resource: &Resource| {
            !resource.is_empty() && resource.all_ids(schema).iter().any(|known| known == id)
        };
        let candidates = index.with_id(id).iter().copied();
        candidates
            .filter(|position| resources.get(*position).is_some_and(had))
            .collect()
    }

    /// The resources that may have, or once have had, a name; the caller looks closer.
    pub(crate) fn candidates(&mut self, name: &str, schema: &Schema) -> Vec<usize> {
        self.indexed(schema).1.with_name(name).to_vec()
    }

    /// Whether a resource has an identity now.
    fn has_current(&mut self, id: &ResourceId, schema: &Schema) -> bool {
        let (resources, index) = self.indexed(schema);
        index.with_id(id).iter().any(|position| {
            let resource = resources.get(*position);
            resource.is_some_and(|resource| resource.comparable_id(schema) == *id)
        })
    }

    fn indexed(&mut self, schema: &Schema) -> (&[Resource], &Index) {
        let resources = self.resources.as_slice();
        let index = self
            .index
            .get_or_insert_with(|| Index::of(resources, schema));
        (resources, index)
    }

    /// Fails where two resources have the same identity now.
    pub(crate) fn check_unique(&mut self, schema: &Schema) -> Result<()> {
        let doubtful = match std::mem::take(&mut self.doubts) {
            Doubts::All => return self.check_all_unique(schema),
            Doubts::Some(positions) if positions.is_empty() => return Ok(()),
            Doubts::Some(positions) => positions,
        };
        let (resources, index) = self.indexed(schema);
        for position in doubtful {
            let Some(resource) = resources.get(position).filter(|one| !one.is_empty()) else {
                continue;
            };
            let id = resource.comparable_id(schema);
            let is_other = |other: &usize| {
                let other = resources.get(*other).filter(|_| *other != position);
                other.is_some_and(|other| other.comparable_id(schema) == id)
            };
            if index.with_id(&id).iter().any(is_other) {
                return Err(Error::DuplicateId(Box::new(resource.id())));
            }
        }
        Ok(())
    }

    /// Looks at what resources are called now only: after many renamings the index is long.
    fn check_all_unique(&self, schema: &Schema) -> Result<()> {
        let mut known = HashSet::with_capacity(self.len());
        for resource in self.iter().filter(|one| !one.is_empty()) {
            if !known.insert(resource.comparable_id(schema)) {
                return Err(Error::DuplicateId(Box::new(resource.id())));
            }
        }
        Ok(())
    }

    /// Drops resources of which nothing is left.
    pub(crate) fn drop_empty(&mut self) {
        if self.may_have_empty && self.resources.iter().any(Resource::is_empty) {
            self.resources_mut().retain(|resource| !resource.is_empty());
        }
        self.may_have_empty = false;
    }
}

impl<'a> IntoIterator for &'a ResourceSet {
    type Item = &'a Resource;
    type IntoIter = std::slice::Iter<'a, Resource>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A generated resource takes the name, namespace and history of the one it replaces, and adds to its labels and
/// annotations.
fn inherit_metadata(resource: &mut Resource, old: &Resource) -> Result<()> {
    for name in ["labels", "annotations"] {
        let mut pairs = metadata_pairs(&old.node, name);
        for (key, value) in metadata_pairs(&resource.node, name) {
            pairs.retain(|(known, _)| *known != key);
            pairs.push((key, value));
        }
        set_metadata_map(&mut resource.node, name, pairs)?;
    }
    let needs_hash = resource.history.needs_hash && old.history.needs_hash;
    resource.history = old.history.clone();
    resource.history.needs_hash = needs_hash;
    set_metadata(&mut resource.node, "name", old.name())?;
    let namespace = old.namespace();
    if namespace.is_empty() {
        if let Some(metadata) = resource
            .node
            .get_mut("metadata")
            .and_then(|node| node.as_map_mut())
        {
            metadata.remove("namespace");
        }
    } else {
        set_metadata(&mut resource.node, "namespace", namespace)?;
    }
    resource.variables.clone_from(&old.variables);
    resource.transformations.clone_from(&old.transformations);
    Ok(())
}

/// The old entries with the new ones over them, each a string.
fn merge_data(resource: &mut Resource, old: &Resource, field: &str) {
    use portolan_yaml::Node;
    let entries = |node: &Node| -> Vec<(portolan_yaml::Text, portolan_yaml::Text)> {
        let map = node.get(field).and_then(Node::as_map);
        map.into_iter()
            .flatten()
            .map(|entry| {
                (
                    entry.key.scalar.text.clone(),
                    crate::value::field::text(&entry.value),
                )
            })
            .collect()
    };
    let new = entries(&resource.node);
    let taken: HashSet<&str> = new.iter().map(|(key, _)| key.as_str()).collect();
    let mut merged = entries(&old.node);
    merged.retain(|(key, _)| !taken.contains(key.as_str()));
    merged.extend(new);
    let Some(object) = resource.node.as_map_mut() else {
        return;
    };
    object.remove(field);
    if !merged.is_empty() {
        let texts = merged
            .into_iter()
            .map(|(key, value)| (key, Node::string(value)));
        object.insert(field, distinct_map(texts));
    }
}
