//! Both sides as batches of objects by owner; owners that cannot be compared are failures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_diff::{Batch, FailedSide, Failure, Report};
use portolan_flux::api::NamespacedName;
use portolan_flux::{Emitter, set_kustomization_labels, set_release_labels};
use portolan_object::{Object, Owner, OwnerKind};
use portolan_yaml::Text;

use super::conflict::conflicted;
use super::failures;
use super::halves::{Half, Halves};
use super::{DiffArgs, Trees, What};
use crate::printer::Printer;

/// Both sides, ready to be compared.
pub(super) struct Comparison {
    pub(super) old: Vec<Batch>,
    pub(super) new: Vec<Batch>,
    /// Owners that could not be rendered on a side.
    pub(super) failures: Vec<Failure>,
    /// How many releases were not rendered because their inputs are equal on both sides.
    pub(super) equal_inputs: usize,
    /// Whether an owner of the asked names is on either side.
    pub(super) is_found: bool,
}

/// What became of an owner.
pub(super) enum Given {
    Objects(Arc<Vec<Object>>),
    /// It was not rendered, for both sides make it of the same.
    Unchanged,
    Failed,
}

/// One side: what each owner gives, and who gives each owner.
#[derive(Default)]
pub(super) struct Side {
    pub(super) given: BTreeMap<Owner, Given>,
    /// Owners with who gives them; sought in only when something fails.
    emitters: Vec<(Owner, Owner)>,
}

impl Comparison {
    pub(super) fn new(args: &DiffArgs, trees: &Trees, halves: &Halves) -> Self {
        let old = Side::of(&halves.old, &halves.new);
        let new = Side::of(&halves.new, &halves.old);
        let lost = new.lost(&old);
        let unknown = old.lost(&new);
        let batches = |side: &Side, other: &Side| -> Vec<Batch> {
            let judged = |owner: &Owner| !lost.contains(owner) && !unknown.contains(owner);
            let wanted = side.given.iter();
            wanted
                .filter(|(owner, _)| judged(owner) && args.wants(owner))
                .filter_map(|(owner, given)| batch(owner, given, other))
                .collect()
        };
        let mut owners = old.given.keys().chain(new.given.keys());
        let (mut failures, unfetched) = failures::find(halves, trees, &old, &new);
        failures.retain(|failure| args.wants(&failure.owner));
        Self {
            is_found: owners.any(|owner| args.wants(owner)),
            old: batches(&old, &new),
            new: batches(&new, &old),
            failures,
            equal_inputs: unfetched.iter().filter(|owner| args.wants(owner)).count(),
        }
    }

    /// Tells what is wrong with the new side, but for releases that are the same on both sides for all that is known.
    pub(super) fn tell(
        args: &DiffArgs,
        trees: &Trees,
        halves: &Halves,
        report: &Report,
        printer: &Printer,
    ) {
        let teller = args.repository.teller(&halves.report, trees.new.as_ref());
        for half in halves.new.values() {
            teller.tell_problems_of(half, printer, |problem| {
                !failures::is_of_equal_release(half, problem)
            });
        }
        let is_broken =
            |failure: &Failure| failure.is_change() && failure.side != FailedSide::Before;
        if report.failures.iter().any(is_broken) {
            for file in conflicted(trees.new.as_ref()) {
                printer.note(&format!("`{file}` holds the marks of an unfinished merge"));
            }
        }
    }
}

impl DiffArgs {
    /// Whether the objects of an owner were asked for.
    fn wants(&self, owner: &Owner) -> bool {
        let kind = match self.what {
            What::Ks => owner.kind == OwnerKind::Kustomization,
            What::Hr => owner.kind == OwnerKind::Release,
            What::Images | What::All => true,
        };
        let namespace = self.namespace.as_deref();
        let is_named = |name: &String| match name.split_once('/') {
            Some((namespace, name)) => owner.namespace == namespace && owner.name == name,
            None => owner.name == name.as_str(),
        };
        kind && namespace.is_none_or(|namespace| owner.namespace == namespace)
            && (self.names.is_empty() || self.names.iter().any(is_named))
    }
}

impl Side {
    fn of(halves: &BTreeMap<Text, Half>, others: &BTreeMap<Text, Half>) -> Self {
        let mut side = Self::default();
        for (path, half) in halves {
            let cluster = cluster_name(half, halves, others);
            side.add(&cluster, half, others.get(path));
        }
        side
    }

    fn add(&mut self, cluster: &Text, half: &Half, other: Option<&Half>) {
        let by = |emitter: &Emitter| emitter.owner(cluster);
        for (id, walked) in &half.walk.kustomizations {
            let owner = by(&Emitter::Kustomization(id.clone()));
            self.emit(&owner, walked.emitter.as_ref().map(by));
            // One that nobody asked for has neither a unit nor anything wrong with it.
            let is_asked =
                walked.unit.is_some() || walked.spec.is_err() || walked.unavailable.is_some();
            let given = match &walked.built {
                Some(built) => Given::Objects(Arc::clone(&built.objects)),
                None if is_asked => Given::Failed,
                None => Given::Unchanged,
            };
            self.given.insert(owner, given);
        }
        for (emitter, expansion) in &half.walk.expansions {
            let owner = by(emitter);
            self.emit(&owner, Some(by(&expansion.emitter)));
            self.given.insert(owner, given(expansion.objects.as_ref()));
        }
        for (id, release) in &half.releases {
            let owner = by(&Emitter::Release(id.clone()));
            self.emit(&owner, Some(by(&release.emitter)));
            let twin = other.and_then(|other| other.releases.get(id));
            let is_same =
                release.digest.is_some() && twin.is_some_and(|twin| twin.digest == release.digest);
            let given = match given(release.objects.as_ref()) {
                Given::Failed if is_same => Given::Unchanged,
                given => given,
            };
            self.given.insert(owner, given);
        }
        for (id, emitter) in &half.unchanged {
            let owner = by(&Emitter::Release(id.clone()));
            self.emit(&owner, Some(by(emitter)));
            self.given.insert(owner, Given::Unchanged);
        }
    }

    fn emit(&mut self, owner: &Owner, emitter: Option<Owner>) {
        if let Some(emitter) = emitter.filter(|emitter| emitter != owner) {
            self.emitters.push((owner.clone(), emitter));
        }
    }

    /// The owners of both sides that cannot be judged by this one: they fail here, or what emits them does.
    fn lost(&self, other: &Self) -> BTreeSet<Owner> {
        let is_failed = |given: &Given| matches!(given, Given::Failed);
        if !self.given.values().any(is_failed) {
            return BTreeSet::new();
        }
        let fails = |owner: &Owner| self.given.get(owner).is_some_and(is_failed);
        let emitters = other.emitters.iter();
        let emitters: BTreeMap<&Owner, &Owner> = emitters.map(|(owner, by)| (owner, by)).collect();
        let is_lost = |owner: &&Owner| {
            let chain = std::iter::successors(Some(*owner), |owner| emitters.get(owner).copied());
            let mut seen = BTreeSet::new();
            let mut chain = chain.take_while(|owner| seen.insert(*owner));
            chain.any(fails)
        };
        let owners: BTreeSet<&Owner> = self.given.keys().chain(other.given.keys()).collect();
        owners.into_iter().filter(is_lost).cloned().collect()
    }
}

/// The name of a cluster; a repository of one cluster does without.
pub(super) fn cluster_name(
    half: &Half,
    halves: &BTreeMap<Text, Half>,
    others: &BTreeMap<Text, Half>,
) -> Text {
    let paths: BTreeSet<&Text> = halves.keys().chain(others.keys()).collect();
    if paths.len() > 1 {
        half.name.clone()
    } else {
        Text::default()
    }
}

fn given(objects: Option<&Arc<Vec<Object>>>) -> Given {
    objects.map_or(Given::Failed, |objects| Given::Objects(Arc::clone(objects)))
}

/// An owner's objects with its labels; shared ones stay shared, for nothing differs in them.
fn batch(owner: &Owner, given: &Given, other: &Side) -> Option<Batch> {
    let Given::Objects(objects) = given else {
        return None;
    };
    let is_shared = matches!(other.given.get(owner), Some(Given::Objects(shared)) if Arc::ptr_eq(shared, objects));
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
