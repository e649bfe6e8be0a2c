//! Deletes objects that a set had before and no longer has.

use serde_json::Value;

use super::{Inventory, Member, MemberError, ObjectSet, order};
use crate::discovery::Resource;

/// What may be pruned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Also kinds whose deletion loses data or other people's objects: namespaces, definitions, volumes and claims.
    pub dangerous: bool,
    /// Also when it is more than half of what the set had.
    pub many: bool,
}

/// What became of an object that is no longer in a set.
#[derive(Debug)]
pub enum Pruned {
    /// It is deleted, or being deleted.
    Deleted,
    /// It was gone, or another object has its name now.
    Gone,
    /// It stays, and stays in the inventory.
    Kept(KeptBecause),
    /// It could not be deleted.
    Failed(MemberError),
}

/// Why an object that is no longer in a set stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBecause {
    /// Its kind is pruned only when asked for by name.
    Kind,
    /// It says so itself.
    Annotation,
    /// More than half of the set would go.
    Many,
    /// It is not known to be the one that the set made, and somebody else manages it.
    Foreign,
}

/// Whether an object may be deleted.
pub(super) enum Prunable {
    /// The one with this UID.
    Yes(Resource, String),
    /// Not, and this is what became of it.
    No(Pruned),
}

/// Kinds whose deletion loses data or other people's objects.
const DANGEROUS: [&str; 4] = [
    "Namespace",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
];

/// Annotations that keep an object, with the value that does.
const KEEP: [(&str, &str); 3] = [
    ("portolan.dev/prune", "never"),
    ("helm.sh/resource-policy", "keep"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
];

// === impl Pruned ===

impl Pruned {
    /// Whether the inventory need not remember it.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Deleted | Self::Gone)
    }
}

// === impl ObjectSet: pruning ===

impl ObjectSet<'_> {
    /// Deletes what is no longer there, in the opposite order of applying; one result for each.
    pub(super) async fn prune(
        &mut self,
        before: &Inventory,
        after: &Inventory,
        options: PruneOptions,
    ) -> Vec<(Member, Pruned)> {
        let mut pruned = Vec::new();
        for (member, may_go) in Self::surplus(before, after, options) {
            let outcome = match may_go {
                Err(because) => Pruned::Kept(because),
                Ok(()) => {
                    let one = self.prune_one(&member, options).await;
                    one.unwrap_or_else(Pruned::Failed)
                }
            };
            pruned.push((member, outcome));
        }
        pruned
    }

    /// What is no longer there, in the opposite order of applying, and why nothing of it may go if it is too much.
    pub(super) fn surplus(
        before: &Inventory,
        after: &Inventory,
        options: PruneOptions,
    ) -> Vec<(Member, Result<(), KeptBecause>)> {
        let mut old: Vec<Member> = before
            .members()
            .filter(|member| !after.contains(member))
            .cloned()
            .collect();
        old.sort_by_key(|member| std::cmp::Reverse(order::place(&member.kind)));
        let is_many = old.len() * 2 > before.members().len();
        let may_go = if is_many && !options.many {
            Err(KeptBecause::Many)
        } else {
            Ok(())
        };
        old.into_iter().map(|member| (member, may_go)).collect()
    }

    async fn prune_one(
        &mut self,
        member: &Member,
        options: PruneOptions,
    ) -> Result<Pruned, MemberError> {
        let (resource, uid) = match self.prunable(member, options).await? {
            Prunable::Yes(resource, uid) => (resource, uid),
            Prunable::No(pruned) => return Ok(pruned),
        };
        let place = (member.namespace.as_str(), member.name.as_str());
        let is_deleted = self.cluster.delete(&resource, place, &uid).await?;
        Ok(if is_deleted {
            Pruned::Deleted
        } else {
            Pruned::Gone
        })
    }

    /// Whether an object may be deleted.
    pub(super) async fn prunable(
        &mut self,
        member: &Member,
        options: PruneOptions,
    ) -> Result<Prunable, MemberError> {
        if is_dangerous(&member.kind) && !options.dangerous {
            return Ok(Prunable::No(Pruned::Kept(KeptBecause::Kind)));
        }
        let resource = match self.resource(&member.as_object()).await {
            // Its definition is gone, and so are all objects of the kind.
            Err(MemberError::Unserved { .. }) => return Ok(Prunable::No(Pruned::Gone)),
            resource => resource?,
        };
        let place = (member.namespace.as_str(), member.name.as_str());
        let found = self.cluster.read(&resource, place.0, place.1).await?;
        let Some(found) = found else {
            return Ok(Prunable::No(Pruned::Gone));
        };
        let found_uid = Member::of(&found).uid;
        if !member.uid.is_empty() && member.uid != found_uid {
            return Ok(Prunable::No(Pruned::Gone));
        }
        if says_keep(&found) {
            return Ok(Prunable::No(Pruned::Kept(KeptBecause::Annotation)));
        }
        if member.uid.is_empty() && !is_applied_by(&found, &self.manager) {
            return Ok(Prunable::No(Pruned::Kept(KeptBecause::Foreign)));
        }
        Ok(Prunable::Yes(resource, found_uid))
    }
}

impl Member {
    /// Enough of the object to ask for it.
    pub(super) fn as_object(&self) -> Value {
        serde_json::json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"namespace": self.namespace, "name": self.name},
        })
    }
}

/// Whether the deletion of an object of this kind loses data or other people's objects.
pub(super) fn is_dangerous(kind: &str) -> bool {
    DANGEROUS.contains(&kind)
}

fn says_keep(object: &Value) -> bool {
    let annotations = &object["metadata"]["annotations"];
    let mut keep = KEEP.iter();
    keep.any(|(name, value)| annotations[*name].as_str() == Some(value))
}

fn is_applied_by(object: &Value, manager: &str) -> bool {
    let fields = object["metadata"]["managedFields"].as_array();
    let mut entries = fields.into_iter().flatten();
    entries.any(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
}
