//! Where resources are by identity and by name, kept while a build changes them one by one.
//!
//! ```text
//! by_id:   every identity a resource has or had ─▶ positions
//! by_name: every name a resource has or had     ─▶ positions
//! ```
//!
//! Entries are only ever added: after a change of one resource, what it is called now comes in, and what it is no longer
//! called stays. Whoever asks therefore looks at the few resources that an entry names, never at all of them.

use std::collections::HashMap;
use std::hash::Hash;

use portolan_yaml::Text;

use crate::id::ResourceId;
use crate::resource::Resource;
use crate::schema::Schema;

/// Candidates by identity and by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    by_id: HashMap<ResourceId, Vec<usize>>,
    by_name: HashMap<Text, Vec<usize>>,
}

impl Index {
    /// The index of resources as they are.
    pub(crate) fn of(resources: &[Resource], schema: &Schema) -> Self {
        let mut index = Self {
            by_id: HashMap::with_capacity(resources.len()),
            by_name: HashMap::with_capacity(resources.len()),
        };
        for (position, resource) in resources.iter().enumerate() {
            index.note(position, resource, schema);
        }
        index
    }

    /// Adds what a resource is and was called.
    pub(crate) fn note(&mut self, position: usize, resource: &Resource, schema: &Schema) {
        if resource.is_empty() {
            return;
        }
        for id in resource.all_ids(schema) {
            add(&mut self.by_name, id.name.clone(), position);
            add(&mut self.by_id, id, position);
        }
    }

    /// Where a resource with this identity can be, in order; the id in its form for comparisons.
    pub(crate) fn with_id(&self, id: &ResourceId) -> &[usize] {
        self.by_id.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// Where a resource with this name can be, in order.
    pub(crate) fn with_name(&self, name: &str) -> &[usize] {
        self.by_name
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}

fn add<K: Eq + Hash>(index: &mut HashMap<K, Vec<usize>>, key: K, position: usize) {
    let positions = index.entry(key).or_default();
    if let Err(place) = positions.binary_search(&position) {
        positions.insert(place, position);
    }
}
