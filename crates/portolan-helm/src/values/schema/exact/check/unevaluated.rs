//! The parts of a value that no rule has checked so far, for `unevaluatedProperties` and `unevaluatedItems`.

use std::collections::BTreeSet;

use portolan_gotmpl::{Text, Value};

use super::super::compile::Node;
use super::super::draft::Draft;
use super::{Checker, Work};

/// Names of properties and places of items; empty as well where nobody wants to know.
#[derive(Debug, Default)]
pub(super) struct Unevaluated {
    pub(super) properties: BTreeSet<Text>,
    pub(super) items: BTreeSet<usize>,
}

impl Unevaluated {
    /// Everything of a value, less what the subschema's own rules are sure to look at.
    pub(super) fn of(value: &Value, node: &Node, wanted: bool) -> Self {
        let mut all = Self::default();
        match value {
            Value::Map(map)
                if node.object.additional.is_none()
                    && (wanted || node.object.unevaluated.is_some()) =>
            {
                let names = map.snapshot().into_iter().map(|(name, _)| name);
                all.properties.extend(names);
            }
            Value::List(items)
                if node.list.rest.is_none() && (wanted || node.list.unevaluated.is_some()) =>
            {
                all.items.extend(node.list.leading.len()..items.len());
            }
            _ => {}
        }
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.items.is_empty()
    }

    /// Keeps what another subschema has not looked at either.
    pub(super) fn keep_common(&mut self, other: &Self) {
        self.properties
            .retain(|name| other.properties.contains(name));
        self.items.retain(|index| other.items.contains(index));
    }
}

impl Checker<'_> {
    pub(super) fn check_unevaluated(&mut self, work: &mut Work<'_>) {
        debug_assert!(work.node.draft >= Draft::Of2019);
        if let (Value::Map(map), Some(schema)) = (work.value, work.node.object.unevaluated) {
            for name in std::mem::take(&mut work.unevaluated.properties) {
                if let Some(value) = map.get(&name) {
                    let failure = self.below(work, schema, &value, &name).err();
                    work.failures.extend(failure);
                }
            }
        }
        if let (Value::List(items), Some(schema)) = (work.value, work.node.list.unevaluated) {
            for index in std::mem::take(&mut work.unevaluated.items) {
                if let Some(item) = items.get(index) {
                    let failure = self.below(work, schema, item, &index.to_string()).err();
                    work.failures.extend(failure);
                }
            }
        }
    }
}
