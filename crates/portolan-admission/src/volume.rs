//! A pod's volumes.

use std::collections::HashSet;

use portolan_object::NameRule;

use crate::refusal::Fault;
use crate::spot::{Refusals, Spot};

pub(crate) fn check(spec: &Spot<'_>, out: &mut Refusals) {
    for volume in spec.items("volumes") {
        out.named(&volume, "name", NameRule::Label);
        let mut sources = volume
            .entries()
            .filter(|(key, value)| *key != "name" && !value.node.is_null());
        if let (Some((first, _)), Some((second, _))) = (sources.next(), sources.next()) {
            let message = format!("`{first}` and `{second}` exclude each other");
            out.add(Fault::Conflict, &volume, message);
        }
        if let Some(projected) = volume.field("projected") {
            for source in projected.items("sources") {
                let mut kinds = source.entries();
                if kinds.next().is_some() && kinds.next().is_some() {
                    out.add(Fault::Conflict, &source, "may only be of one kind");
                }
            }
        }
    }
    out.distinct(spec, "volumes", "name");
}

/// What containers may mount.
pub(crate) fn names<'a>(spec: &Spot<'a>, claims: &[&'a str]) -> HashSet<&'a str> {
    let mut names = spec.names("volumes");
    names.extend(claims);
    names
}
