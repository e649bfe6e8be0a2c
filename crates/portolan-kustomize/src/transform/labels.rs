//! `labels`, `commonLabels` and `commonAnnotations`.

use portolan_budget::Budget;
use portolan_yaml::{Node, Text};

use crate::config::FieldSpec;
use crate::error::Result;
use crate::resource::Resource;
use crate::resource::set::ResourceSet;
use crate::value::alias::{is_marked, mark};
use crate::value::field::set_field;
use crate::value::fieldspec::{Missing, visit};

/// Sets labels at every field the specs name.
pub(crate) fn set_labels(
    set: &mut ResourceSet,
    pairs: &[(Text, Text)],
    specs: &[FieldSpec],
    budget: &Budget,
) -> Result<()> {
    set_pairs(set, pairs, specs, budget)
}

/// Sets annotations at every field the specs name.
pub(crate) fn set_annotations(
    set: &mut ResourceSet,
    pairs: &[(Text, Text)],
    specs: &[FieldSpec],
    budget: &Budget,
) -> Result<()> {
    set_pairs(set, pairs, specs, budget)
}

fn set_pairs(
    set: &mut ResourceSet,
    pairs: &[(Text, Text)],
    specs: &[FieldSpec],
    budget: &Budget,
) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    // Each pair is looked for among those that are there, in every field.
    let count = pairs.len() as u64;
    let steps = count.saturating_mul(count / 8 + specs.len() as u64);
    for position in 0..set.len() {
        if let Some(resource) = set.get_mut(position) {
            budget.step(steps)?;
            resource.change(|resource| set_pairs_on(resource, pairs, specs))?;
        }
    }
    Ok(())
}

fn set_pairs_on(
    resource: &mut Resource,
    pairs: &[(Text, Text)],
    specs: &[FieldSpec],
) -> Result<()> {
    let gvk = resource.gvk();
    let first = resource.number_aliases(pairs.len());
    let mut apply = |node: &mut Node| {
        pairs
            .iter()
            .zip(first..)
            .try_for_each(|((key, value), number)| set_entry(node, key, value, number))
    };
    for spec in specs {
        visit(&mut resource.node, &gvk, spec, Missing::Map, &mut apply)?;
    }
    Ok(())
}

/// Changes an entry in place, or adds one that is the same value in every field it is added to.
fn set_entry(node: &mut Node, key: &Text, value: &Text, number: u32) -> Result<()> {
    let mut value = Node::string(value.clone());
    value.at = match node.get(key) {
        None => mark(number),
        Some(old) if is_marked(old) => old.at,
        Some(_) => value.at,
    };
    set_field(node, key, value)
}
