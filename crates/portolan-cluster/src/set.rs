//! A set of objects that is applied, waited for and pruned together.
//!
//! ```text
//! inventory: old + new ──▶ namespaces, definitions (awaited) ──▶ the rest, by kind ──▶ prune ──▶ inventory: new
//!        written first                                             one result each     only after a whole success
//! ```
//!
//! The inventory is written before anything is applied, so an object is known even if the process dies right after it
//! created the object. If one object fails, the others are still applied, but nothing is pruned.

mod inventory;
mod order;
mod pods;
mod prune;
mod replace;
mod trial;
mod wait;

pub use inventory::{Inventory, Member};
pub use prune::{KeptBecause, PruneOptions, Pruned};
pub use trial::{ObjectTrial, Trial, TriedObject};
pub use wait::{WaitOptions, Waited};

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::error::ClusterError;
use crate::kstatus::{Stage, kstatus};
use crate::served::ServedKinds;

/// How often a definition that was just made is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A set of objects in a cluster, known by its name.
pub struct ObjectSet<'a> {
    cluster: &'a Cluster,
    /// The name of its inventory, a ConfigMap.
    name: String,
    /// Where the inventory is, and where objects without a namespace go.
    namespace: String,
    manager: String,
    served: ServedKinds<'a>,
}

/// How a set is applied.
#[derive(Debug, Clone, Copy)]
pub struct SetOptions {
    /// Whether fields of other managers are taken over.
    pub force: bool,
    /// How long definitions are waited for that others of the set need, and webhooks that do not answer.
    pub deadline: Duration,
    /// Whether objects with changes that cannot be made are deleted and made anew. Finished Jobs are in any case, and
    /// what loses data when it is deleted never is.
    pub replace: bool,
    /// What is pruned; `None` leaves everything that is no longer in the set.
    pub prune: Option<PruneOptions>,
}

/// What became of a set.
#[derive(Debug, Default)]
pub struct Deployed {
    /// Every object with what became of it, in the order in which they were applied.
    pub applied: Vec<(Member, Result<Value, MemberError>)>,
    /// What was no longer in the set; empty when something failed or nothing was to be pruned.
    pub pruned: Vec<(Member, Pruned)>,
}

/// Why an object was not applied.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// It does not say what it is.
    #[error("an object has no {0}")]
    Incomplete(&'static str),
    /// The cluster has no such kind.
    #[error("the cluster does not serve `{kind}` of `{api_version}`")]
    Unserved {
        /// `apps/v1`
        api_version: String,
        /// `Deployment`
        kind: String,
    },
    /// It differs in fields that cannot be changed.
    #[error("{} cannot be changed{}", .fields.join(", "), if *.is_running_job { " while the Job runs" } else { "" })]
    Immutable {
        /// The paths of the fields: `spec.selector`.
        fields: Vec<String>,
        /// Whether it is a Job that has not ended; a finished one would have been replaced.
        is_running_job: bool,
    },
    /// It had to be made anew, and the old one did not go away in time.
    #[error("the old one was deleted to make it anew, and was not gone in time")]
    NotGone,
    /// The cluster refuses it or cannot be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Why nothing was applied at all.
#[derive(Debug, thiserror::Error)]
pub enum ObjectSetError {
    /// Two objects of the set are the same one.
    #[error("the set has {0} twice")]
    Twice(Member),
    /// The inventory cannot be read or written.
    #[error("cannot keep the inventory `{name}`")]
    Inventory {
        /// The ConfigMap, with its namespace.
        name: String,
        /// Why not.
        source: ClusterError,
    },
}

/// An object that is to be applied.
struct Planned {
    member: Member,
    resource: Result<Resource, MemberError>,
    object: Value,
}

// === impl Deployed ===

impl Deployed {
    /// Whether every object was applied.
    pub fn is_success(&self) -> bool {
        self.applied.iter().all(|(_, result)| result.is_ok())
    }

    /// What was pruned and need not be remembered.
    fn gone(&self) -> Vec<&Member> {
        let pruned = self.pruned.iter();
        let gone = pruned.filter(|(_, pruned)| pruned.is_gone());
        gone.map(|(member, _)| member).collect()
    }
}

// === impl ObjectSet ===

impl<'a> ObjectSet<'a> {
    /// The set of this name. Fields that it applies belong to the manager.
    pub fn new(cluster: &'a Cluster, namespace: &str, name: &str, manager: &str) -> Self {
        Self {
            cluster,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            manager: manager.to_owned(),
            served: ServedKinds::new(cluster),
        }
    }

    /// Applies the objects by kind, then prunes what the set had before and has no longer.
    pub async fn apply(
        &mut self,
        objects: Vec<Value>,
        options: SetOptions,
    ) -> Result<Deployed, ObjectSetError> {
        let mut planned = Vec::new();
        for object in order::for_apply(objects) {
            planned.push(self.plan(object).await);
        }
        let members = inventory::distinct(planned.iter().map(|planned| &planned.member))?;
        self.make_own_namespace(&planned, options).await;
        let before = self
            .edit_inventory(|inventory| inventory.with(members.clone()))
            .await?;
        let mut deployed = Deployed::default();
        let deadline = Instant::now() + options.deadline;
        for planned in planned {
            let mut member = planned.member.clone();
            let result = self.apply_one(planned, options, deadline).await;
            if let Ok(applied) = &result {
                member.note_uid(applied);
            }
            deployed.applied.push((member, result));
        }
        let applied: Vec<Member> = deployed
            .applied
            .iter()
            .map(|(member, _)| member.clone())
            .collect();
        if let Some(prune) = options.prune
            && deployed.is_success()
        {
            let now = Inventory::of(applied.clone());
            deployed.pruned = self.prune(&before, &now, prune).await;
        }
        let gone = deployed.gone();
        let edit = |inventory: Inventory| {
            // An object whose kind the set itself defines was planned without its namespace.
            let left = inventory.without(gone.iter().copied()).without(&members);
            left.with(applied.clone())
        };
        self.edit_inventory(edit).await?;
        Ok(deployed)
    }

    /// Deletes everything that the inventory knows, in the opposite order, and the inventory when nothing is left.
    pub async fn delete(&mut self, options: PruneOptions) -> Result<Deployed, ObjectSetError> {
        let before = self.inventory().await?;
        let all = PruneOptions {
            many: true,
            ..options
        };
        let deployed = Deployed {
            applied: Vec::new(),
            pruned: self.prune(&before, &Inventory::default(), all).await,
        };
        let gone = deployed.gone();
        if !gone.is_empty() {
            self.edit_inventory(|inventory| inventory.without(gone.iter().copied()))
                .await?;
        }
        self.delete_empty_inventory().await?;
        Ok(deployed)
    }

    async fn plan(&mut self, mut object: Value) -> Planned {
        let resource = self.resource(&object).await;
        if let Ok(resource) = &resource {
            let metadata = &mut object["metadata"];
            if resource.namespaced && metadata["namespace"].is_null() {
                metadata["namespace"] = Value::from(self.namespace.clone());
            }
        }
        Planned {
            member: Member::of(&object),
            resource,
            object,
        }
    }

    /// A namespace that the set brings is needed before the inventory can be kept there. It is applied once more with the
    /// others, and that result counts.
    async fn make_own_namespace(&self, planned: &[Planned], options: SetOptions) {
        let is_own = |planned: &&Planned| {
            planned.member.kind == "Namespace" && planned.member.name == self.namespace
        };
        if let Some(Planned {
            resource: Ok(resource),
            object,
            ..
        }) = planned.iter().find(is_own)
        {
            let deadline = Instant::now() + options.deadline;
            let _ = self
                .apply_or_replace(resource, object, options, deadline)
                .await;
        }
    }

    async fn apply_one(
        &mut self,
        planned: Planned,
        options: SetOptions,
        deadline: Instant,
    ) -> Result<Value, MemberError> {
        let Planned {
            member,
            resource,
            mut object,
        } = planned;
        let resource = match resource {
            // A definition of the same set may have brought the kind meanwhile.
            Err(MemberError::Unserved { .. }) => self.resource(&object).await?,
            resource => resource?,
        };
        if resource.namespaced && member.namespace.is_empty() {
            object["metadata"]["namespace"] = Value::from(self.namespace.clone());
        }
        let applied = self
            .apply_or_replace(&resource, &object, options, deadline)
            .await?;
        if member.kind == "CustomResourceDefinition" {
            self.await_definition(&resource, &member, deadline).await?;
            self.served.forget();
        }
        Ok(applied)
    }

    /// Waits until a definition is served; others of the set may be of its kind.
    async fn await_definition(
        &self,
        resource: &Resource,
        member: &Member,
        deadline: Instant,
    ) -> Result<(), ClusterError> {
        loop {
            let found = self.cluster.read(resource, "", &member.name).await?;
            let is_served = found.is_some_and(|found| kstatus(&found).stage == Stage::Current);
            if is_served || Instant::now() >= deadline {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The kind of an object as the cluster serves it; asked for again while it is not known.
    async fn resource(&mut self, object: &Value) -> Result<Resource, MemberError> {
        self.served.resource(object).await
    }
}
