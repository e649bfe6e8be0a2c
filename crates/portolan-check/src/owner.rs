//! Objects that more than one owner produces.

use std::collections::{HashMap, HashSet};

use portolan_object::{Object, ObjectId, OwnerKind};
use portolan_yaml::Node;

use crate::finding::{Found, Subject};
use crate::rule::DUPLICATE_OWNER;

pub(crate) fn check(subjects: &[Subject<'_>], findings: &mut Vec<Found>) {
    let mut first: HashMap<(&str, &str, &str, &str), usize> = HashMap::new();
    for (index, subject) in subjects.iter().enumerate() {
        let earlier = *first.entry(identity(&subject.id)).or_insert(index);
        let Some(other) = subjects
            .get(earlier)
            .filter(|other| other.owner != subject.owner && !may_share(subject, other))
        else {
            continue;
        };
        findings.push(Found {
            rule: &DUPLICATE_OWNER,
            subject: index,
            message: format!("{} brings it too", other.owner),
            place: subject.object.place(),
        });
    }
}

/// How Flux is told to leave fields of others alone, or an object as it is.
const APPLY: &str = "kustomize.toolkit.fluxcd.io/ssa";

/// Whether two owners can bring one object without taking it from one another.
fn may_share(one: &Subject<'_>, other: &Subject<'_>) -> bool {
    let is_merged = |subject: &Subject<'_>| {
        subject
            .object
            .annotation(APPLY)
            .is_some_and(|how| how != "Override")
    };
    is_installed_once(one)
        || is_installed_once(other)
        || is_merged(one)
        || is_merged(other)
        || adds_to(one, other)
        || adds_to(other, one)
}

/// The objects, by their places, that add to one which another owner brings, or are to be merged into it.
pub(crate) fn parts(subjects: &[Subject<'_>]) -> HashSet<usize> {
    let mut namesakes: HashMap<_, Vec<usize>> = HashMap::new();
    for (index, subject) in subjects.iter().enumerate() {
        let same = namesakes.entry(identity(&subject.id)).or_default();
        same.push(index);
    }
    let shared = namesakes.values().filter(|same| same.len() > 1);
    let is_part = |index: &usize, same: &[usize]| {
        let Some(subject) = subjects.get(*index) else {
            return false;
        };
        let how = subject.object.annotation(APPLY);
        let others = same.iter().filter_map(|other| subjects.get(*other));
        let mut others = others.filter(|other| other.owner != subject.owner);
        others.any(|other| how == Some("Merge") || adds_to(subject, other))
    };
    let parts = shared.flat_map(|same| same.iter().filter(|index| is_part(index, same)));
    parts.copied().collect()
}

/// Whether one is a part of a release's object: it says nothing else, and less. A whole one would keep Helm from
/// installing its own.
fn adds_to(part: &Subject<'_>, whole: &Subject<'_>) -> bool {
    let (added, object) = (part.object.node(), whole.object.node());
    is_release(whole) && !is_release(part) && agree(added, object) && !covers(added, object)
}

/// Helm installs the definitions of a chart's `crds` directory where they are absent, and does not own them.
fn is_installed_once(subject: &Subject<'_>) -> bool {
    is_release(subject) && is_in_crds(subject.object)
}

fn is_release(subject: &Subject<'_>) -> bool {
    subject.owner.kind == OwnerKind::Release
}

fn is_in_crds(object: &Object) -> bool {
    let place = object.place();
    let file = place.as_ref().map_or("", |place| place.file.as_str());
    // A chart that is not in the repository is named before the path inside of it.
    let inside = file.split_once(": ").map_or(file, |(_, inside)| inside);
    let mut directories = inside.rsplit('/').skip(1);
    // A subchart may be called `crds` and have templates.
    let is_direct = directories.clone().next() == Some("crds");
    let is_template = directories.clone().any(|name| name == "templates");
    object.kind() == "CustomResourceDefinition"
        && (is_direct || (!is_template && directories.any(|name| name == "crds")))
}

/// Whether nothing is said differently by two objects. Helm and Flux each manage the fields that they bring, so an object
/// that adds some to another's is no second owner.
fn agree(one: &Node, other: &Node) -> bool {
    match (one.as_map(), other.as_map()) {
        (Some(one), Some(other)) => one.iter().all(|entry| {
            let value = other.get(entry.key.as_str());
            value.is_none_or(|value| agree(&entry.value, value))
        }),
        _ => {
            portolan_object::canonical_json(one).ok() == portolan_object::canonical_json(other).ok()
        }
    }
}

/// Whether one object has every field of another.
fn covers(one: &Node, other: &Node) -> bool {
    other.as_map().is_none_or(|fields| {
        let mut fields = fields.iter();
        fields.all(|entry| {
            let value = one.get(entry.key.as_str());
            value.is_some_and(|value| covers(value, &entry.value))
        })
    })
}

/// What makes two objects the same to a cluster; the version does not.
fn identity(id: &ObjectId) -> (&str, &str, &str, &str) {
    (&id.gvk.group, &id.gvk.kind, &id.namespace, &id.name)
}
