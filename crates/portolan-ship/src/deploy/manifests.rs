//! Objects that are written out: applied as a set, pruned and awaited.

use std::sync::Arc;

use portolan_cluster::{
    ApplyOptions, Cluster, Deployed, KeptBecause, Member, MemberError, ObjectSet, PruneOptions,
    Pruned, Resource, SetOptions, WaitOptions, Waited,
};
use portolan_engine::with_causes;
use portolan_secret::{KnownSecrets, Mask};
use serde_json::Value;
use tokio::runtime::Handle;

use super::autoscaled;
use super::owners::foreign;
use super::{
    DeployError, DeploySetup, DeployedStep, Deployer, MANAGER, ObjectResult, ObjectStatus,
    namespace, set_name,
};
use crate::document::{DeployStep, Ship};
use crate::task::Task;

/// Applies objects that are written out.
pub(super) struct ManifestDeployer {
    step: DeployStep,
    objects: Vec<Value>,
    /// What the Secrets among them hold: no message may repeat it.
    secrets: Arc<Mask>,
    setup: DeploySetup,
}

/// What the Secrets among objects hold.
pub(super) fn secrets(objects: &[Value]) -> Arc<Mask> {
    let known = KnownSecrets::default();
    for object in objects {
        add_secrets(object, &known);
    }
    known.mask()
}

/// Adds what a Secret holds.
pub(super) fn add_secrets(object: &Value, known: &KnownSecrets) {
    if object["kind"] != "Secret" {
        return;
    }
    for part in ["data", "stringData"] {
        let values = object[part].as_object().into_iter().flatten();
        for (key, value) in values {
            known.add_text(key, value.as_str().unwrap_or_default());
        }
    }
}

/// Deletes what a step has in the cluster.
pub(super) async fn delete(
    ship: &Ship,
    step: &DeployStep,
    cluster: &Cluster,
    options: PruneOptions,
) -> Result<Vec<ObjectResult>, DeployError> {
    let namespace = namespace(step, cluster);
    let mut set = ObjectSet::new(cluster, &namespace, &set_name(ship, step), MANAGER);
    let deleted = set.delete(options).await?;
    Ok(deleted.pruned.iter().map(pruned_result).collect())
}

impl Deployer for ManifestDeployer {
    fn deploy(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        Handle::current().block_on(async {
            tokio::select! {
                deployed = self.apply(task) => deployed,
                () = task.token().cancelled() => Err(DeployError::Cancelled),
            }
        })
    }
}

impl ManifestDeployer {
    pub(super) fn new(step: DeployStep, objects: Vec<Value>, setup: DeploySetup) -> Self {
        Self {
            secrets: secrets(&objects),
            objects,
            step,
            setup,
        }
    }

    async fn apply(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        let cluster = &*self.setup.cluster;
        let namespace = namespace(&self.step, cluster);
        if !self.step.adopt {
            let foreign = foreign(cluster, &self.objects, &namespace).await?;
            if !foreign.is_empty() {
                return Err(DeployError::Objects(foreign));
            }
        }
        self.make_namespace(&namespace).await?;
        let name = set_name(&self.setup.ship, &self.step);
        let mut set = ObjectSet::new(cluster, &namespace, &name, MANAGER);
        task.progress(0, Some(self.objects.len() as u64), "applying");
        let options = SetOptions {
            force: self.step.force,
            deadline: self.step.timeout,
            replace: self.step.replace,
            prune: self.step.prune.then_some(PruneOptions {
                dangerous: false,
                many: self.setup.prune_many,
            }),
        };
        let mut objects = self.objects.clone();
        for line in autoscaled::leave_replicas(cluster, &mut objects, &namespace, MANAGER).await? {
            task.log(line);
        }
        let deployed = set.apply(objects, options).await?;
        self.tell(&deployed, task);
        let failures: Vec<String> = deployed
            .applied
            .iter()
            .filter_map(|(member, result)| Some((member, result.as_ref().err()?)))
            .map(|(member, error)| self.hide(&format!("{member}: {}", why_not_applied(error))))
            .collect();
        if !failures.is_empty() {
            return Err(DeployError::Objects(failures));
        }
        let members: Vec<Member> = deployed
            .applied
            .iter()
            .map(|(member, _)| member.clone())
            .collect();
        self.wait(&mut set, &members, task).await?;
        Ok(DeployedStep {
            objects: members.len(),
            pruned: deployed
                .pruned
                .iter()
                .filter(|(_, pruned)| pruned.is_gone())
                .count(),
            note: None,
        })
    }

    /// A namespace that the step brings is needed before its inventory can be kept there.
    async fn make_namespace(&self, namespace: &str) -> Result<(), DeployError> {
        let is_it = |object: &&Value| {
            object["kind"] == "Namespace" && object["metadata"]["name"] == *namespace
        };
        let Some(object) = self.objects.iter().find(is_it) else {
            return Ok(());
        };
        let kind = Resource::without_namespace("v1", "Namespace", "namespaces");
        let options = ApplyOptions {
            manager: MANAGER,
            force: self.step.force,
            dry_run: false,
        };
        let applied = self.setup.cluster.apply(&kind, object, options).await;
        applied
            .map(|_| ())
            .map_err(|source| DeployError::Namespace {
                namespace: namespace.to_owned(),
                source,
            })
    }

    async fn wait(
        &self,
        set: &mut ObjectSet<'_>,
        members: &[Member],
        task: &Task,
    ) -> Result<(), DeployError> {
        let options = WaitOptions {
            timeout: self.step.timeout,
            fail_fast: self.step.fail_fast,
        };
        let mut ready = 0;
        let waited = set.wait(members, options, |waited| {
            if waited.is_current() {
                ready += 1;
            }
            let state = waited.state();
            task.log(self.hide(&format!("{}: {state}", waited.member)));
            task.progress(ready, Some(members.len() as u64), "waiting until ready");
            self.note(waited, &state);
        });
        let waited = waited.await?;
        let open: Vec<String> = waited
            .iter()
            .filter(|waited| !waited.is_current())
            .map(|waited| {
                let state = waited.state();
                self.set_status(&waited.member, ObjectStatus::Failed, Some(state.clone()));
                self.hide(&format!("{} is not ready: {state}", waited.member))
            })
            .collect();
        if open.is_empty() {
            Ok(())
        } else {
            Err(DeployError::Objects(open))
        }
    }

    fn note(&self, waited: &Waited, state: &str) {
        if waited.is_current() {
            self.set_status(&waited.member, ObjectStatus::Ready, None);
        } else {
            self.set_status(
                &waited.member,
                ObjectStatus::Applied,
                Some(state.to_owned()),
            );
        }
    }

    fn hide(&self, text: &str) -> String {
        self.secrets.text(text).into_owned()
    }

    fn set_status(&self, member: &Member, status: ObjectStatus, message: Option<String>) {
        let message = message.map(|message| self.hide(&message));
        self.setup.note(&self.step.name, member, status, message);
    }

    /// Says what became of each object.
    fn tell(&self, deployed: &Deployed, task: &Task) {
        for (member, result) in &deployed.applied {
            match result {
                Ok(_) => {
                    task.log(format!("applied {member}"));
                    self.set_status(member, ObjectStatus::Applied, None);
                }
                Err(error) => {
                    let error = self.hide(&why_not_applied(error));
                    task.log(format!("cannot apply {member}: {error}"));
                    self.set_status(member, ObjectStatus::Failed, Some(error));
                }
            }
        }
        for pruned in &deployed.pruned {
            let result = pruned_result(pruned);
            let (object, status) = (&result.object, result.status);
            task.log(match status {
                ObjectStatus::Pruned => format!("pruned {object}"),
                _ => format!(
                    "{object} stays: {}",
                    result.message.clone().unwrap_or_default()
                ),
            });
            self.set_status(&pruned.0, status, result.message);
        }
    }
}

pub(super) fn pruned_result((member, pruned): &(Member, Pruned)) -> ObjectResult {
    let (status, message) = match pruned {
        Pruned::Deleted | Pruned::Gone => (ObjectStatus::Pruned, None),
        Pruned::Failed(error) => (ObjectStatus::Failed, Some(with_causes(error))),
        Pruned::Kept(because) => {
            let why = match because {
                KeptBecause::Kind => "its deletion could lose data",
                KeptBecause::Annotation => "an annotation of it says so",
                KeptBecause::Many => {
                    "more than half of the step would go; `--prune-many` deletes it"
                }
                KeptBecause::Foreign => "somebody else manages it",
            };
            (ObjectStatus::Kept, Some(why.to_owned()))
        }
    };
    ObjectResult {
        object: member.to_string(),
        status,
        message,
    }
}

/// Why an object was not applied, with what can be done.
pub(super) fn why_not_applied(error: &MemberError) -> String {
    let why = with_causes(error);
    match error {
        MemberError::Immutable { is_running_job, .. } => {
            let wait = if *is_running_job {
                "deploy again when it has ended, or "
            } else {
                ""
            };
            format!("{why}; {wait}`immutable: replace` deletes the object and makes it anew")
        }
        _ => why,
    }
}
