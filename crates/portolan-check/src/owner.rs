//! Objects that more than one owner brings.

use std::collections::HashMap;

use portolan_object::ObjectId;

use crate::finding::{Found, Subject};
use crate::rule::DUPLICATE_OWNER;

pub(crate) fn check(subjects: &[Subject<'_>], findings: &mut Vec<Found>) {
    let mut first: HashMap<(&str, &str, &str, &str), usize> = HashMap::new();
    for (index, subject) in subjects.iter().enumerate() {
        let earlier = *first.entry(identity(&subject.id)).or_insert(index);
        let Some(other) = subjects
            .get(earlier)
            .filter(|other| other.owner != subject.owner)
        else {
            continue;
        };
        findings.push(Found {
            rule: &DUPLICATE_OWNER,
            subject: index,
            message: format!("{} brings it too", other.owner),
            place: subject.object.origin.place().cloned(),
        });
    }
}

/// What makes two objects the same to a cluster; the version does not.
fn identity(id: &ObjectId) -> (&str, &str, &str, &str) {
    (&id.gvk.group, &id.gvk.kind, &id.namespace, &id.name)
}
