//! Both sides as batches of objects by owner; owners that cannot be compared are failures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_diff::{Batch, Failure};
use portolan_flux::api::NamespacedName;
use portolan_flux::{Emitter, Selection, set_kustomization_labels, set_release_labels};
use portolan_object::{KindNames, Object, ObjectId, Owner, OwnerKind};
use portolan_yaml::Text;

use super::two_sides::{ClusterSide, TwoSides};
use super::{Trees, failures};
use crate::inventory;

/// Both sides, ready to be compared.
pub(super) struct Batches {
    pub(super) old: Vec<Batch>,
    pub(super) new: Vec<Batch>,
    /// Owners that could not be rendered on a side.
    pub(super) failures: Vec<Failure>,
    /// How many releases were not rendered because their inputs are equal on both sides.
    pub(super) equal_inputs: usize,
}

/// What is compared of both sides.
struct Wanted<'a> {
    selection: &'a Selection,
    kinds: &'a KindNames,
    /// The objects that are meant on either side; `None` if all objects of the owners that are meant are.
    objects: Option<BTreeSet<(Owner, ObjectId)>>,
}

/// What became of an owner.
pub(super) enum OwnerObjects {
    Objects(Arc<Vec<Object>>),
    /// It was not rendered, for both sides make it of the same.
    Unchanged,
    Failed,
}

/// One side: what each owner gives, and who gives each owner.
#[derive(Default)]
pub(super) struct Side {
    pub(super) by_owner: BTreeMap<Owner, OwnerObjects>,
    /// Owners with who gives them; sought in only when something fails.
    emitters: Vec<(Owner, Owner)>,
    /// What names the objects of each owner, with the namespaces that Helm leaves out; only where objects are named.
    ids: BTreeMap<Owner, Vec<ObjectId>>,
}

impl Batches {
    pub(super) fn new(
        selection: &Selection,
        kinds: &KindNames,
        trees: &Trees,
        two_sides: &TwoSides,
    ) -> Self {
        let names_objects = selection.may_name_objects();
        let old = Side::of(&two_sides.old, &two_sides.new, names_objects);
        let new = Side::of(&two_sides.new, &two_sides.old, names_objects);
        let wanted = Wanted::new(selection, kinds, [&old, &new]);
        let lost = new.lost(&old);
        let unknown = old.lost(&new);
        let batches = |side: &Side, other: &Side| -> Vec<Batch> {
            let judged = |owner: &Owner| !lost.contains(owner) && !unknown.contains(owner);
            let given = side.by_owner.iter().filter(|(owner, _)| judged(owner));
            given
                .filter_map(|(owner, given)| wanted.batch(owner, given, other))
                .collect()
        };
        let (mut failures, unfetched) = failures::find(two_sides, trees, &old, &new);
        // An object that is named may be one of an owner that could not be rendered.
        failures.retain(|failure| names_objects || wanted.owner(&failure.owner));
        let equal = unfetched.iter().filter(|owner| wanted.owner(owner));
        Self {
            old: batches(&old, &new),
            new: batches(&new, &old),
            equal_inputs: equal.count() + failures.iter().filter(|one| !one.is_change()).count(),
            failures,
        }
    }
}

impl<'a> Wanted<'a> {
    fn new(selection: &'a Selection, kinds: &'a KindNames, sides: [&Side; 2]) -> Self {
        let mut wanted = Self {
            selection,
            kinds,
            objects: None,
        };
        let objects = &selection.objects;
        let is_every_object = objects.selector.is_everything()
            && objects.only_kinds.is_empty()
            && objects.skip_kinds.is_empty();
        if !is_every_object || selection.may_name_objects() {
            let meant = sides.iter().flat_map(|side| wanted.objects_of(side));
            wanted.objects = Some(meant.collect());
        }
        wanted
    }

    /// Whether an owner is meant.
    fn owner(&self, owner: &Owner) -> bool {
        let id = NamespacedName::new(owner.namespace.clone(), owner.name.clone());
        self.selection.selects_owner(self.kinds, owner.kind, &id)
    }

    /// The objects of a side that are meant.
    fn objects_of(&self, side: &Side) -> Vec<(Owner, ObjectId)> {
        let mut meant = Vec::new();
        for (owner, given) in &side.by_owner {
            let OwnerObjects::Objects(objects) = given else {
                continue;
            };
            let is_owner_meant = self.owner(owner);
            let ids = side.ids.get(owner);
            for (at, object) in objects.iter().enumerate() {
                let id = ids.and_then(|ids| ids.get(at)).unwrap_or(object.id());
                let selection = self.selection;
                if selection.selects_object(self.kinds, is_owner_meant, id, object) {
                    meant.push((owner.clone(), object.id().clone()));
                }
            }
        }
        meant
    }

    /// What is compared of an owner.
    fn batch(&self, owner: &Owner, given: &OwnerObjects, other: &Side) -> Option<Batch> {
        let Some(meant) = &self.objects else {
            return self
                .owner(owner)
                .then(|| batch(owner, given, other))
                .flatten();
        };
        let mut batch = batch(owner, given, other)?;
        let is_meant = |object: &&Object| meant.contains(&(owner.clone(), object.id().clone()));
        batch.objects = Arc::new(batch.objects.iter().filter(is_meant).cloned().collect());
        (self.owner(owner) || !batch.objects.is_empty()).then_some(batch)
    }
}

impl Side {
    fn of(
        sides: &BTreeMap<Text, ClusterSide>,
        others: &BTreeMap<Text, ClusterSide>,
        with_ids: bool,
    ) -> Self {
        let mut side = Self::default();
        for (path, cluster_side) in sides {
            let cluster = cluster_name(cluster_side, sides, others);
            side.add(&cluster, cluster_side, others.get(path));
            if with_ids {
                let ids = inventory::ids_by_owner(&cluster_side.cluster, cluster_side).into_iter();
                side.ids
                    .extend(ids.map(|(emitter, ids)| (emitter.owner(&cluster), ids)));
            }
        }
        side
    }

    fn add(&mut self, cluster: &Text, cluster_side: &ClusterSide, other: Option<&ClusterSide>) {
        let by = |emitter: &Emitter| emitter.owner(cluster);
        for (id, walked) in &cluster_side.walk.kustomizations {
            let owner = by(&Emitter::Kustomization(id.clone()));
            self.emit(&owner, walked.emitter.as_ref().map(by));
            // One that nobody asked for has neither a unit nor anything wrong with it.
            let is_asked =
                walked.unit.is_some() || walked.spec.is_err() || walked.unavailable.is_some();
            let given = match &walked.built {
                Some(built) => OwnerObjects::Objects(Arc::clone(&built.objects)),
                None if is_asked => OwnerObjects::Failed,
                None => OwnerObjects::Unchanged,
            };
            self.by_owner.insert(owner, given);
        }
        for (emitter, expansion) in &cluster_side.walk.expansions {
            let owner = by(emitter);
            self.emit(&owner, Some(by(&expansion.emitter)));
            self.by_owner
                .insert(owner, owner_objects(expansion.objects.as_ref()));
        }
        for (id, release) in &cluster_side.releases {
            let owner = by(&Emitter::Release(id.clone()));
            self.emit(&owner, Some(by(&release.emitter)));
            let twin = other.and_then(|other| other.releases.get(id));
            let is_same =
                release.digest.is_some() && twin.is_some_and(|twin| twin.digest == release.digest);
            let given = match owner_objects(release.objects.as_ref()) {
                OwnerObjects::Failed if is_same => OwnerObjects::Unchanged,
                given => given,
            };
            self.by_owner.insert(owner, given);
        }
        for (id, emitter) in &cluster_side.unchanged {
            let owner = by(&Emitter::Release(id.clone()));
            self.emit(&owner, Some(by(emitter)));
            self.by_owner.insert(owner, OwnerObjects::Unchanged);
        }
    }

    fn emit(&mut self, owner: &Owner, emitter: Option<Owner>) {
        if let Some(emitter) = emitter.filter(|emitter| emitter != owner) {
            self.emitters.push((owner.clone(), emitter));
        }
    }

    /// The owners of both sides that cannot be judged by this one: they fail here, or what emits them does.
    fn lost(&self, other: &Self) -> BTreeSet<Owner> {
        let is_failed = |given: &OwnerObjects| matches!(given, OwnerObjects::Failed);
        if !self.by_owner.values().any(is_failed) {
            return BTreeSet::new();
        }
        let fails = |owner: &Owner| self.by_owner.get(owner).is_some_and(is_failed);
        let emitters = other.emitters.iter();
        let emitters: BTreeMap<&Owner, &Owner> = emitters.map(|(owner, by)| (owner, by)).collect();
        let is_lost = |owner: &&Owner| {
            let chain = std::iter::successors(Some(*owner), |owner| emitters.get(owner).copied());
            let mut seen = BTreeSet::new();
            let mut chain = chain.take_while(|owner| seen.insert(*owner));
            chain.any(fails)
        };
        let owners: BTreeSet<&Owner> = self.by_owner.keys().chain(other.by_owner.keys()).collect();
        owners.into_iter().filter(is_lost).cloned().collect()
    }
}

/// The name of a cluster; a repository of one cluster does without.
pub(super) fn cluster_name(
    cluster_side: &ClusterSide,
    sides: &BTreeMap<Text, ClusterSide>,
    others: &BTreeMap<Text, ClusterSide>,
) -> Text {
    let paths: BTreeSet<&Text> = sides.keys().chain(others.keys()).collect();
    if paths.len() > 1 {
        cluster_side.name.clone()
    } else {
        Text::default()
    }
}

fn owner_objects(objects: Option<&Arc<Vec<Object>>>) -> OwnerObjects {
    objects.map_or(OwnerObjects::Failed, |objects| {
        OwnerObjects::Objects(Arc::clone(objects))
    })
}

/// An owner's objects with its labels; shared ones stay shared, for nothing differs in them.
fn batch(owner: &Owner, given: &OwnerObjects, other: &Side) -> Option<Batch> {
    let OwnerObjects::Objects(objects) = given else {
        return None;
    };
    let is_shared = matches!(other.by_owner.get(owner), Some(OwnerObjects::Objects(shared)) if Arc::ptr_eq(shared, objects));
    let id = NamespacedName::new(owner.namespace.clone(), owner.name.clone());
    let label = |object: &Object| {
        let mut object = object.clone();
        match owner.kind {
            OwnerKind::Kustomization => set_kustomization_labels(&mut object, &id),
            OwnerKind::Release => set_release_labels(&mut object, &id),
            OwnerKind::ResourceSet | OwnerKind::Instance => {}
        }
        object
    };
    let objects = if is_shared {
        Arc::clone(objects)
    } else {
        Arc::new(objects.iter().map(label).collect())
    };
    Some(Batch {
        owner: owner.clone(),
        objects,
    })
}
