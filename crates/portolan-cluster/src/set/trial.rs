//! What applying or deleting a set would do, found out without changing anything: the cluster is asked to try it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::prune::{Prunable, PruneOptions};
use super::{
    Inventory, Member, MemberError, ObjectSet, ObjectSetError, Planned, Pruned, SetOptions,
    inventory, order,
};
use crate::error::ClusterError;
use crate::write::ApplyOptions;

/// What would become of a set.
#[derive(Debug, Default)]
pub struct Trial {
    /// Every object, in the order in which they would be applied.
    pub applied: Vec<(Member, Result<ObjectTrial, MemberError>)>,
    /// What is no longer in the set, with what would become of it.
    pub pruned: Vec<(Member, Pruned)>,
}

/// An object before and after it would be applied.
#[derive(Debug, Clone)]
pub struct ObjectTrial {
    /// What would become of it.
    pub tried: TriedObject,
    /// As it is now; `None` if there is none.
    pub before: Option<Value>,
    /// As it would be. As it was given, where the cluster cannot say more: what it needs is not there yet, or it would be
    /// made anew.
    pub after: Value,
}

/// What would become of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriedObject {
    /// It would be made.
    Created,
    /// It would be changed.
    Changed,
    /// It would be deleted and made anew, because these fields cannot be changed.
    Replaced(Vec<String>),
    /// It is what it should be.
    Unchanged,
    /// The cluster cannot try it before this is there: `the namespace shop`.
    Unknown(String),
}

impl ObjectSet<'_> {
    /// Says what [`ObjectSet::apply`] would do with each object.
    ///
    /// # Errors
    /// As [`ObjectSet::apply`]: nothing can be said then.
    pub async fn try_apply(
        &mut self,
        objects: Vec<Value>,
        options: SetOptions,
    ) -> Result<Trial, ObjectSetError> {
        let before = self.inventory().await?;
        let mut trial = Trial {
            applied: self.try_objects(objects, options).await?,
            pruned: Vec::new(),
        };
        if let Some(prune) = options.prune {
            let members = inventory::distinct(trial.applied.iter().map(|(member, _)| member))?;
            trial.pruned = self
                .try_prune(&before, &Inventory::of(members), prune)
                .await;
        }
        Ok(trial)
    }

    /// Says what would become of objects, whatever the set has now.
    ///
    /// # Errors
    /// When two of them are the same object.
    pub async fn try_objects(
        &mut self,
        objects: Vec<Value>,
        options: SetOptions,
    ) -> Result<Vec<(Member, Result<ObjectTrial, MemberError>)>, ObjectSetError> {
        let defined = defined_kinds(&objects);
        let mut planned = Vec::new();
        for object in order::for_apply(objects) {
            planned.push(self.plan(object).await);
        }
        inventory::distinct(planned.iter().map(|planned| &planned.member))?;
        let mut tried = Vec::new();
        for planned in planned {
            let member = planned.member.clone();
            tried.push((member, self.try_one(planned, options, &defined).await));
        }
        Ok(tried)
    }

    /// Says what [`ObjectSet::delete`] would delete.
    ///
    /// # Errors
    /// When the inventory cannot be read.
    pub async fn try_delete(
        &mut self,
        options: PruneOptions,
    ) -> Result<Vec<(Member, Pruned)>, ObjectSetError> {
        let before = self.inventory().await?;
        let all = PruneOptions {
            many: true,
            ..options
        };
        Ok(self.try_prune(&before, &Inventory::default(), all).await)
    }

    async fn try_one(
        &mut self,
        planned: Planned,
        options: SetOptions,
        defined: &BTreeSet<String>,
    ) -> Result<ObjectTrial, MemberError> {
        let Planned {
            member,
            resource,
            object,
        } = planned;
        let unknown = |object: Value, until: String| ObjectTrial {
            tried: TriedObject::Unknown(until),
            before: None,
            after: object,
        };
        let resource = match resource {
            Err(MemberError::Unserved { kind, .. }) if defined.contains(&kind) => {
                return Ok(unknown(object, format!("the definition of {kind}")));
            }
            resource => resource?,
        };
        let before = self
            .cluster
            .read(&resource, &member.namespace, &member.name)
            .await?;
        let apply = ApplyOptions {
            manager: &self.manager,
            force: options.force,
            dry_run: true,
        };
        let (tried, after) = match self.cluster.apply(&resource, &object, apply).await {
            Ok(after) => match &before {
                None => (TriedObject::Created, after),
                Some(found) if says_the_same(found, &after) => (TriedObject::Unchanged, after),
                Some(_) => (TriedObject::Changed, after),
            },
            Err(error)
                if before.is_none() && error.is_missing() && !member.namespace.is_empty() =>
            {
                let until = format!("the namespace {}", member.namespace);
                return Ok(unknown(object, until));
            }
            Err(ClusterError::Immutable { fields, .. }) if before.is_some() => {
                let found = before.as_ref().unwrap_or(&Value::Null);
                let tried = Self::replacement(&resource, found, fields, options)?;
                (tried, object)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(ObjectTrial {
            tried,
            before,
            after,
        })
    }

    async fn try_prune(
        &mut self,
        before: &Inventory,
        after: &Inventory,
        options: PruneOptions,
    ) -> Vec<(Member, Pruned)> {
        let mut pruned = Vec::new();
        for (member, may_go) in Self::surplus(before, after, options) {
            let outcome = match may_go {
                Err(because) => Pruned::Kept(because),
                Ok(()) => match self.prunable(&member, options).await {
                    Ok(Prunable::Yes(..)) => Pruned::Deleted,
                    Ok(Prunable::No(pruned)) => pruned,
                    Err(error) => Pruned::Failed(error),
                },
            };
            pruned.push((member, outcome));
        }
        pruned
    }
}

/// The kinds that objects of the set define.
fn defined_kinds(objects: &[Value]) -> BTreeSet<String> {
    let definitions = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition");
    let kinds = definitions.filter_map(|object| object["spec"]["names"]["kind"].as_str());
    kinds.map(str::to_owned).collect()
}

/// Whether two states of an object differ in nothing but who manages it and when it was written.
fn says_the_same(found: &Value, applied: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(field);
            }
        }
        object
    };
    content(found) == content(applied)
}
