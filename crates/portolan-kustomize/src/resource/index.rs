//! Finds resources by identity and by name while a build changes them one by one.
//!
//! ```text
//! by_id:   hash of every identity a resource has or had ─▶ positions
//! by_name: hash of every name a resource has or had     ─▶ positions
//! ```
//!
//! Hashes are stored instead of texts, because five texts for each of thousands of resources take more memory than
//! the resources themselves.
//!
//! Entries are only added: after a resource changes, its new name is added and its old name stays. So a lookup checks
//! the few resources that an entry names, never all of them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::resource::Resource;
use crate::resource::id::ResourceId;
use crate::schema::Schema;

/// Candidates by identity and by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    hasher: RandomState,
    by_id: HashMap<u64, Vec<usize>>,
    by_name: HashMap<u64, Vec<usize>>,
}

impl Index {
    /// The index of resources as they are.
    pub(crate) fn of(resources: &[Resource], schema: &Schema) -> Self {
        let mut index = Self {
            hasher: RandomState::new(),
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
            let name = self.hasher.hash_one(id.name.as_str());
            add(&mut self.by_name, name, position);
            add(&mut self.by_id, self.hasher.hash_one(&id), position);
        }
    }

    /// Where a resource with this identity can be, in order; the id in its form for comparisons. Others can be there too.
    pub(crate) fn with_id(&self, id: &ResourceId) -> &[usize] {
        let hash = self.hasher.hash_one(id);
        self.by_id.get(&hash).map(Vec::as_slice).unwrap_or_default()
    }

    /// Where a resource with this name can be, in order. Others can be there too.
    pub(crate) fn with_name(&self, name: &str) -> &[usize] {
        self.by_name
            .get(&self.hasher.hash_one(name))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}

fn add(index: &mut HashMap<u64, Vec<usize>>, hash: u64, position: usize) {
    let positions = index.entry(hash).or_default();
    if let Err(place) = positions.binary_search(&position) {
        if positions.is_empty() {
            // Nearly all names are those of one resource.
            positions.reserve_exact(1);
        }
        positions.insert(place, position);
    }
}
