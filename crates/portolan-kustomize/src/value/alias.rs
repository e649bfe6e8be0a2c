//! Shared values: a label that a transformer adds to several fields of a resource is a single node in kustomize, so a
//! later change in one field changes it in all of them.
//!
//! ```text
//! commonLabels: {l: a} ─▶ metadata.labels.l ─┐
//!                         selector.l        ─┼─▶ one value
//!                         template labels.l ─┘
//! ```
//!
//! The members of such a group have the same mark in place of a position. No value that was parsed has such a mark.

use std::collections::BTreeMap;

use portolan_yaml::{Node, Position, Scalar, Value};

/// Marks begin here; smaller columns on line 0 have meanings of their own.
const FIRST_MARK: u32 = 2;

/// The mark of a group, by its number in the resource.
pub(crate) fn mark(number: u32) -> Position {
    Position {
        line: 0,
        column: FIRST_MARK.saturating_add(number),
    }
}

/// Whether a value belongs to a group.
pub(crate) fn is_marked(node: &Node) -> bool {
    node.at.line == 0 && node.at.column >= FIRST_MARK
}

/// Gives every group one value again: that of the member which is not as it was before.
pub(crate) fn reunite(before: &Node, after: &mut Node) {
    let mut old = BTreeMap::new();
    collect(before, &mut |at, scalar| {
        old.insert(at, scalar.clone());
    });
    let mut new = BTreeMap::new();
    collect(after, &mut |at, scalar| {
        if old.get(&at).is_some_and(|known| known != scalar) {
            new.insert(at, scalar.clone());
        }
    });
    if !new.is_empty() {
        spread(after, &new);
    }
}

fn collect(node: &Node, found: &mut dyn FnMut(Position, &Scalar)) {
    match &node.value {
        Value::Scalar(scalar) if is_marked(node) => found(node.at, scalar),
        Value::Scalar(_) => {}
        Value::List(list) => list.iter().for_each(|item| collect(item, found)),
        Value::Map(map) => map.iter().for_each(|entry| collect(&entry.value, found)),
    }
}

fn spread(node: &mut Node, new: &BTreeMap<Position, Scalar>) {
    let at = node.at;
    match &mut node.value {
        Value::Scalar(scalar) => {
            if let Some(value) = new.get(&at) {
                *scalar = value.clone();
            }
        }
        Value::List(list) => list
            .items_mut()
            .iter_mut()
            .for_each(|item| spread(item, new)),
        Value::Map(map) => map
            .entries_mut()
            .iter_mut()
            .for_each(|entry| spread(&mut entry.value, new)),
    }
}
