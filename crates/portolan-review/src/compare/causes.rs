//! The cause of each change in the repository's files: the line of the field, the value or the variable.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use portolan_diff::{Cause, Change, ChangeKind, Report, compare};
use portolan_flux::api::NamespacedName;
use portolan_flux::{BeforeAfter, ChangedValue, Demand, Emitter, Name, Named, Rendering, Wanted};
use portolan_object::{FieldPath, Object, ObjectId, Owner, OwnerKind};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::Text;

use super::Trees;
use super::edits::{Edit, edits};
use super::two_sides::{ClusterSide, TwoSides};
use crate::experiment::Experiment;
use crate::{FluxRepository, Runner};

/// How many changes have their causes sought, which means reading their files again; nobody reads more of them.
const MAX_CHANGES: usize = 100;

/// How many releases are rendered again for their causes, once for each value that changed.
const MAX_RELEASES: usize = 20;

/// Names the causes of the first changes, as far as they are known for sure.
pub(super) fn name(report: &mut Report, two_sides: &TwoSides, files: &dyn Vfs) {
    let mut values = BTreeMap::new();
    for change in report.changes.iter_mut().take(MAX_CHANGES) {
        let before = cluster_side(&two_sides.old, &change.owner.cluster);
        let after = cluster_side(&two_sides.new, &change.owner.cluster);
        let Some((before, after)) = before.zip(after) else {
            continue;
        };
        let before_after = BeforeAfter {
            before,
            after,
            files,
            source: &after.source,
        };
        let named = match change.owner.kind {
            OwnerKind::Kustomization => of_fields(change, &before_after),
            OwnerKind::Release
                if values.len() == MAX_RELEASES && !values.contains_key(&change.owner) =>
            {
                Vec::new()
            }
            OwnerKind::Release => {
                let changed = values.entry(change.owner.clone());
                let changed =
                    changed.or_insert_with(|| before_after.changed_values(&id_of(&change.owner)));
                of_values(change, changed, &before_after)
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

/// Finds the causes of changes that have none so far among the edits: one is the cause if the change goes away without it.
pub(super) fn find_by_experiment<R: Runner>(
    report: &mut Report,
    repository: &FluxRepository,
    trees: &Trees,
    two_sides: &TwoSides,
    runner: &R,
) -> Result<(), R::Error> {
    let Some(old) = trees.old.as_ref().filter(|_| !report.changes.is_empty()) else {
        return Ok(());
    };
    let edits = edits(old.as_ref(), trees.new.as_ref());
    if edits.is_empty() {
        return Ok(());
    }
    let changes = report.changes.iter_mut().take(MAX_CHANGES);
    let mut open: Vec<&mut Change> = changes
        .filter_map(|change| {
            // A block of text or a list is known by its first line; the one that was edited says more.
            let is_edited = |cause: &Cause| edits.iter().any(|edit| edit.holds(&cause.place));
            change.causes.retain(is_edited);
            change.causes.is_empty().then_some(change)
        })
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    for (path, after) in &two_sides.new {
        let of_cluster = |change: &Change| {
            let cluster = &change.owner.cluster;
            cluster.is_empty() || *cluster == after.name
        };
        let mut open: Vec<&mut Change> = open
            .iter_mut()
            .filter(|change| of_cluster(change))
            .map(|change| &mut **change)
            .collect();
        if open.is_empty() {
            continue;
        }
        let root = || resolve(Utf8Path::new("/"), path.trim_start_matches('/'));
        let root = repository.root.clone().unwrap_or_else(root);
        let experiment = Experiment {
            files: Arc::clone(&trees.new),
            repository: &repository.rooted(Some(root)),
        };
        let demand = demand(open.iter().map(|change| &change.owner));
        let changes = edits.iter().map(Edit::reverted);
        let renderings = experiment.renderings(changes, &demand, runner)?;
        for (edit, rendering) in edits.iter().zip(&renderings) {
            let Some(rendering) = rendering else { continue };
            for change in &mut open {
                if goes_away(change, after, rendering) {
                    change.causes.push(Cause {
                        place: edit.place.clone(),
                        name: Text::default(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Whether a part of a change is not there in another rendering.
fn goes_away(change: &Change, after: &Rendering, without: &Rendering) -> bool {
    if change.kind != ChangeKind::Changed {
        return comes_or_stays(change, without);
    }
    let after = objects_of(after, &change.owner).and_then(|objects| find(objects, &change.id));
    let without = objects_of(without, &change.owner);
    let without = without.and_then(|objects| {
        let renamed = || find_renamed(objects, change);
        find(objects, &change.id).or_else(renamed)
    });
    let Some((after, without)) = after.zip(without) else {
        return false;
    };
    let fields = compare(without.node(), after.node());
    let mut paths = fields.iter().map(|field| &field.path);
    paths.any(|path| change.fields.iter().any(|field| overlap(path, &field.path)))
}

/// Whether an object that was added is not there in another rendering, or one that was removed is.
fn comes_or_stays(change: &Change, without: &Rendering) -> bool {
    let objects = objects_of(without, &change.owner);
    let is_there = objects.map(|objects| find(objects, &change.id).is_some());
    match change.kind {
        ChangeKind::Removed => is_there == Some(true),
        // Without its owner it is not there either; an owner that does not build says nothing.
        _ => is_there == Some(false) || !has_owner(without, &change.owner),
    }
}

fn has_owner(rendering: &Rendering, owner: &Owner) -> bool {
    let name = id_of(owner);
    match owner.kind {
        OwnerKind::Kustomization => rendering.walk.kustomizations.contains_key(&name),
        OwnerKind::Release => rendering.releases.contains_key(&name),
        OwnerKind::ResourceSet | OwnerKind::Instance => {
            let mut emitters = rendering.walk.expansions.keys();
            emitters.any(|emitter| emitter.owner_kind() == owner.kind && *emitter.id() == name)
        }
    }
}

/// A generated object whose name ends in the digest of another content.
fn find_renamed<'a>(objects: &'a [Object], change: &Change) -> Option<&'a Object> {
    change.renamed_from.as_ref()?;
    let (stem, _) = change.id.name.rsplit_once('-')?;
    objects.iter().find(|object| {
        let name = object.name().rsplit_once('-');
        object.gvk() == &change.id.gvk
            && object.namespace() == change.id.namespace.as_str()
            && name.is_some_and(|(other, _)| other == stem)
    })
}

fn objects_of<'a>(rendering: &'a Rendering, owner: &Owner) -> Option<&'a [Object]> {
    let name = id_of(owner);
    let objects = match owner.kind {
        OwnerKind::Kustomization => {
            let walked = rendering.walk.kustomizations.get(&name)?;
            &walked.built.as_ref()?.objects
        }
        OwnerKind::Release => rendering.releases.get(&name)?.objects.as_ref()?,
        OwnerKind::ResourceSet | OwnerKind::Instance => {
            let mut expansions = rendering.walk.expansions.iter();
            let is_owner =
                |emitter: &Emitter| emitter.owner_kind() == owner.kind && *emitter.id() == name;
            let (_, expansion) = expansions.find(|(emitter, _)| is_owner(emitter))?;
            expansion.objects.as_ref()?
        }
    };
    Some(objects)
}

/// What has to be rendered to have the objects of some owners; what a ResourceSet makes may depend on all that is
/// emitted.
fn demand<'a>(owners: impl Iterator<Item = &'a Owner>) -> Demand {
    let (mut kustomizations, mut releases) = (Some(Vec::new()), Vec::new());
    for owner in owners {
        let name = Name {
            namespace: Some(owner.namespace.clone()),
            name: owner.name.clone(),
        };
        match owner.kind {
            OwnerKind::Kustomization => kustomizations
                .iter_mut()
                .for_each(|names| names.push(name.clone())),
            OwnerKind::Release => releases.push(name),
            OwnerKind::ResourceSet | OwnerKind::Instance => kustomizations = None,
        }
    }
    let wanted = |names: Vec<Name>| {
        if names.is_empty() {
            Wanted::None
        } else {
            Wanted::Named(names)
        }
    };
    Demand {
        kustomizations: kustomizations.map_or(Wanted::All, wanted),
        releases: wanted(releases),
    }
}

/// The side of a cluster; a repository of one cluster does without its name.
fn cluster_side<'a>(
    sides: &'a BTreeMap<Text, ClusterSide>,
    cluster: &Text,
) -> Option<&'a ClusterSide> {
    let mut sides = sides.values();
    sides.find(|cluster_side| cluster.is_empty() || cluster_side.name == *cluster)
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
fn of_fields(change: &Change, before_after: &BeforeAfter<'_>) -> Vec<Named> {
    let id = id_of(&change.owner);
    let walked = before_after.after.walk.kustomizations.get(&id);
    let built = walked.and_then(|walked| walked.built.as_ref());
    let object = built.and_then(|built| find(&built.objects, &change.id));
    let Some(object) = object.filter(|_| change.kind == ChangeKind::Changed) else {
        return Vec::new();
    };
    let fields = change.news();
    fields
        .flat_map(|field| before_after.written(&id, object, &field.path))
        .collect()
}

/// The values without whose change the object would be another.
fn of_values(
    change: &Change,
    changed: &[ChangedValue],
    before_after: &BeforeAfter<'_>,
) -> Vec<Named> {
    let release = before_after.after.releases.get(&id_of(&change.owner));
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
    let deciding = changed.iter().filter(matters);
    deciding
        .flat_map(|value| value.causes.iter().cloned())
        .collect()
}

fn find<'a>(objects: &'a [Object], id: &ObjectId) -> Option<&'a Object> {
    objects.iter().find(|object| object.id() == id)
}

/// Whether one path leads to the other.
fn overlap(one: &FieldPath, other: &FieldPath) -> bool {
    let mut both = one.segments().iter().zip(other.segments());
    both.all(|(one, other)| one == other)
}
