//! The compiled-in schema: static tables with binary search.

use super::table::{CLUSTER, DEFINITIONS, KINDS, SHAPES};

/// One node of the schema.
pub(super) enum Shape {
    /// Fields that lead to lists that merge, sorted by name.
    Object(&'static [(&'static str, u16)]),
    /// A list that merges by these keys, and what its items are.
    List(&'static [&'static str], Option<u16>),
}

/// Where the objects of a type start.
pub(super) struct Kind {
    pub(super) version: &'static str,
    pub(super) name: &'static str,
    pub(super) node: u16,
}

pub(super) fn root(api_version: &str, kind: &str) -> Option<u16> {
    let order = |row: &Kind| (row.version, row.name).cmp(&(api_version, kind));
    KINDS
        .binary_search_by(order)
        .ok()
        .and_then(|index| KINDS.get(index))
        .map(|row| row.node)
}

/// Where a definition starts, by its name in the document.
pub(super) fn definition(name: &str) -> Option<u16> {
    let index = DEFINITIONS
        .binary_search_by(|(row, _)| (*row).cmp(name))
        .ok()?;
    DEFINITIONS.get(index).map(|(_, node)| *node)
}

pub(super) fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    CLUSTER
        .binary_search_by(|row| row.cmp(&(api_version, kind)))
        .is_ok()
}

pub(super) fn field(node: u16, name: &str) -> Option<u16> {
    match SHAPES.get(usize::from(node))? {
        Shape::Object(fields) => {
            let index = fields
                .binary_search_by(|(field, _)| (*field).cmp(name))
                .ok()?;
            fields.get(index).map(|(_, node)| *node)
        }
        Shape::List(..) => None,
    }
}

pub(super) fn list(node: u16) -> Option<(&'static [&'static str], Option<u16>)> {
    match SHAPES.get(usize::from(node))? {
        Shape::List(keys, element) => Some((keys, *element)),
        Shape::Object(_) => None,
    }
}
