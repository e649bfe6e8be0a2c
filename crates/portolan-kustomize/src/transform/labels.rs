//! `labels`, `commonLabels` and `commonAnnotations`.

use portolan_yaml::{Node, Text};

use crate::config::FieldSpec;
use crate::error::Result;
use crate::field::set_field;
use crate::fieldspec::{Missing, visit};
use crate::set::ResourceSet;

/// Sets labels at every field the specs name.
pub(crate) fn set_labels(
    set: &mut ResourceSet,
    pairs: &[(Text, Text)],
    specs: &[FieldSpec],
) -> Result<()> {
    set_pairs(set, pairs, specs)
}

/// Sets annotations at every field the specs name.
pub(crate) fn set_annotations(
    set: &mut ResourceSet,
    pairs: &[(Text, Text)],
    specs: &[FieldSpec],
) -> Result<()> {
    set_pairs(set, pairs, specs)
}

fn set_pairs(set: &mut ResourceSet, pairs: &[(Text, Text)], specs: &[FieldSpec]) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    for position in 0..set.len() {
        let Some(resource) = set.get_mut(position) else {
            continue;
        };
        let gvk = resource.gvk();
        let mut apply = |node: &mut Node| {
            pairs
                .iter()
                .try_for_each(|(key, value)| set_field(node, key, Node::string(value.clone())))
        };
        for spec in specs {
            visit(&mut resource.node, &gvk, spec, Missing::Map, &mut apply)?;
        }
    }
    Ok(())
}
