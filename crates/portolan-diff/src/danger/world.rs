//! What the rules can look up about other objects than the changed one.

use std::cell::OnceCell;
use std::collections::HashMap;

use portolan_object::{Object, Owner, OwnerKind, PodTemplate, pod_templates};
use portolan_yaml::Node;

use crate::side::Batch;

/// Both sides, with what is looked up often.
pub(crate) struct World<'a> {
    pub(crate) old: Surroundings<'a>,
    pub(crate) new: Surroundings<'a>,
}

/// One side.
pub(crate) struct Surroundings<'a> {
    batches: &'a [Batch],
    owners: OnceCell<HashMap<Owner, &'a Object>>,
    workloads: OnceCell<Vec<Workload<'a>>>,
}

/// An object that runs pods.
pub(crate) struct Workload<'a> {
    pub(crate) object: &'a Object,
    pub(crate) owner: &'a Owner,
    pub(crate) pods: Vec<PodTemplate<'a>>,
}

/// Whether two objects are in one namespace: objects of a release that name none are in that of their release.
pub(crate) fn are_neighbours(one: (&Object, &Owner), other: (&Object, &Owner)) -> bool {
    one.1.cluster == other.1.cluster
        && one.0.namespace() == other.0.namespace()
        && (!one.0.namespace().is_empty() || one.1 == other.1)
}

/// What becomes of an object that is no longer declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Deleted,
    /// It stays, and why.
    Stays(String),
}

/// How many owners above an object are asked.
const MAX_OWNERS: usize = 16;

impl<'a> World<'a> {
    pub(crate) fn new(old: &'a [Batch], new: &'a [Batch]) -> Self {
        Self {
            old: Surroundings::new(old),
            new: Surroundings::new(new),
        }
    }

    /// What becomes of an object that its owner no longer renders.
    pub(crate) fn fate(&self, object: &Object, owner: &Owner) -> Fate {
        self.fate_above(object, owner, MAX_OWNERS)
    }

    fn fate_above(&self, object: &Object, owner: &Owner, left: usize) -> Fate {
        if object.annotation("kustomize.toolkit.fluxcd.io/prune") == Some("disabled") {
            return Fate::Stays("its annotation forbids pruning".to_owned());
        }
        if object.annotation("helm.sh/resource-policy") == Some("keep") {
            return Fate::Stays("its annotation tells Helm to keep it".to_owned());
        }
        if let Some(definition) = self.new.owner(owner) {
            return match owner.kind {
                OwnerKind::Kustomization if !is_pruning(definition) => {
                    Fate::Stays(format!("{owner} does not prune"))
                }
                _ => Fate::Deleted,
            };
        }
        let Some(definition) = self.old.owner(owner) else {
            // The root of a cluster needs no definition in the repository.
            return Fate::Deleted;
        };
        let policy = definition.node().at_path(&["spec", "deletionPolicy"]);
        let keeps = match policy.and_then(Node::as_str) {
            Some("Orphan") => true,
            Some("Delete" | "WaitForTermination") => false,
            _ => owner.kind == OwnerKind::Kustomization && !is_pruning(definition),
        };
        if keeps {
            return Fate::Stays(format!("{owner} leaves its objects behind"));
        }
        match self.old.owner_of(definition, &owner.cluster) {
            Some(parent) if left > 0 => self.fate_above(definition, parent, left - 1),
            _ => Fate::Deleted,
        }
    }
}

/// Whether a Kustomization deletes what it no longer declares.
pub(crate) fn is_pruning(kustomization: &Object) -> bool {
    let prune = kustomization.node().at_path(&["spec", "prune"]);
    prune.and_then(Node::as_bool).unwrap_or(false)
}

impl<'a> Surroundings<'a> {
    fn new(batches: &'a [Batch]) -> Self {
        Self {
            batches,
            owners: OnceCell::new(),
            workloads: OnceCell::new(),
        }
    }

    /// The object that defines an owner.
    pub(crate) fn owner(&self, owner: &Owner) -> Option<&'a Object> {
        let owners = self.owners.get_or_init(|| {
            let objects = self.objects();
            objects
                .filter_map(|(object, above)| Some((defined_owner(object, above)?, object)))
                .collect()
        });
        owners.get(owner).copied()
    }

    /// Who renders an object of this side.
    fn owner_of(&self, object: &Object, cluster: &str) -> Option<&'a Owner> {
        let mut objects = self.objects();
        let found = objects
            .find(|(other, owner)| owner.cluster == cluster && other.id().same_object(object.id()));
        found.map(|(_, owner)| owner)
    }

    /// What an owner renders.
    pub(crate) fn batch(&self, owner: &Owner) -> &'a [Object] {
        let batch = self.batches.iter().find(|batch| batch.owner == *owner);
        batch.map_or(&[], |batch| &batch.objects)
    }

    /// Every object that runs pods.
    pub(crate) fn workloads(&self) -> &[Workload<'a>] {
        self.workloads.get_or_init(|| {
            let workload = |(object, owner): (&'a Object, &'a Owner)| {
                let pods = pod_templates(object.gvk(), object.node());
                (!pods.is_empty()).then_some(Workload {
                    object,
                    owner,
                    pods,
                })
            };
            self.objects().filter_map(workload).collect()
        })
    }

    /// Every object with its owner.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (&'a Object, &'a Owner)> + use<'a> {
        let batches = self.batches.iter();
        batches.flat_map(|batch| batch.objects.iter().map(|object| (object, &batch.owner)))
    }
}

/// The owner that an object defines: a Kustomization, a HelmRelease or the like.
pub(crate) fn defined_owner(object: &Object, above: &Owner) -> Option<Owner> {
    let kind = OwnerKind::of(object.gvk())?;
    let (namespace, name) = (object.id().namespace.clone(), object.id().name.clone());
    Some(Owner::new(kind, namespace, name).in_cluster(above.cluster.clone()))
}
