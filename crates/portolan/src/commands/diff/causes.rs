//! What in the repository's files is to blame for each change: the line of the field, the value or the variable.

use std::collections::BTreeMap;

use portolan_diff::{Cause, Change, ChangeKind, Path, Report, compare};
use portolan_flux::api::NamespacedName;
use portolan_flux::{ChangedValue, Named, Succession};
use portolan_object::{Object, ObjectId, Owner, OwnerKind};
use portolan_vfs::Vfs;
use portolan_yaml::Text;

use super::halves::{Half, Halves};

/// How many changes have their causes sought, which means reading their files again; nobody reads more of them.
const MAX_CHANGES: usize = 100;

/// How many releases are rendered again for their causes, once for each value that changed.
const MAX_RELEASES: usize = 20;

/// Names the causes of the first changes, as far as they are known for sure.
pub(super) fn name(report: &mut Report, halves: &Halves, files: &dyn Vfs) {
    let mut values = BTreeMap::new();
    for change in report.changes.iter_mut().take(MAX_CHANGES) {
        let before = half(&halves.old, &change.owner.cluster);
        let after = half(&halves.new, &change.owner.cluster);
        let Some((before, after)) = before.zip(after) else {
            continue;
        };
        let succession = Succession {
            before,
            after,
            files,
            source: &after.source,
        };
        let named = match change.owner.kind {
            OwnerKind::Kustomization => of_fields(change, &succession),
            OwnerKind::Release
                if values.len() == MAX_RELEASES && !values.contains_key(&change.owner) =>
            {
                Vec::new()
            }
            OwnerKind::Release => {
                let changed = values.entry(change.owner.clone());
                let changed =
                    changed.or_insert_with(|| succession.changed_values(&id_of(&change.owner)));
                of_values(change, changed, &succession)
            }
            OwnerKind::ResourceSet | OwnerKind::Instance => Vec::new(),
        };
        change.causes = named.into_iter().map(cause).collect();
        change.causes.sort_by_key(|cause| {
            let place = &cause.place;
            (place.file.clone(), place.at.line, cause.name.clone())
        });
        change.causes.dedup();
    }
}

/// The side of a cluster; a repository of one cluster does without its name.
fn half<'a>(halves: &'a BTreeMap<Text, Half>, cluster: &Text) -> Option<&'a Half> {
    let mut halves = halves.values();
    halves.find(|half| cluster.is_empty() || half.name == *cluster)
}

fn id_of(owner: &Owner) -> NamespacedName {
    NamespacedName::new(owner.namespace.clone(), owner.name.clone())
}

fn cause(named: Named) -> Cause {
    Cause {
        place: named.place,
        name: named.name,
    }
}

/// The lines of the fields of an object that a Kustomization gives.
fn of_fields(change: &Change, succession: &Succession<'_>) -> Vec<Named> {
    let id = id_of(&change.owner);
    let walked = succession.after.walk.kustomizations.get(&id);
    let built = walked.and_then(|walked| walked.built.as_ref());
    let object = built.and_then(|built| find(&built.objects, &change.id));
    let Some(object) = object.filter(|_| change.kind == ChangeKind::Changed) else {
        return Vec::new();
    };
    let fields = change.news();
    fields
        .flat_map(|field| succession.written(&id, object, &field.path))
        .collect()
}

/// The values without whose change the object would be another.
fn of_values(change: &Change, changed: &[ChangedValue], succession: &Succession<'_>) -> Vec<Named> {
    let release = succession.after.releases.get(&id_of(&change.owner));
    let objects = release.and_then(|release| release.objects.as_ref());
    let object = objects.and_then(|objects| find(objects, &change.id));
    let matters = |value: &&ChangedValue| {
        let without = find(&value.without, &change.id);
        match (without, object) {
            (Some(without), Some(object)) => {
                let fields = compare(without.node(), object.node());
                let mut paths = fields.iter().map(|field| &field.path);
                paths.any(|path| change.fields.iter().any(|field| overlap(path, &field.path)))
            }
            (None, None) => false,
            _ => true,
        }
    };
    let guilty = changed.iter().filter(matters);
    guilty
        .flat_map(|value| value.causes.iter().cloned())
        .collect()
}

fn find<'a>(objects: &'a [Object], id: &ObjectId) -> Option<&'a Object> {
    objects.iter().find(|object| object.id() == id)
}

/// Whether one path leads to the other.
fn overlap(one: &Path, other: &Path) -> bool {
    let mut both = one.segments().iter().zip(other.segments());
    both.all(|(one, other)| one == other)
}
