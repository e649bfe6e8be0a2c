//! What a deployment would do: the cluster is asked to try each object, and nothing is changed.

use std::collections::BTreeMap;

use portolan_cluster::{
    Member, MemberError, ObjectSet, ObjectTrial, PruneOptions, SetOptions, TriedObject,
};
use portolan_object::counted;
use portolan_secret::Mask;
use serde_json::Value;
use tokio::runtime::Handle;

use super::helm::{HelmDeployer, TriedRelease};
use super::manifests::{pruned_result, secrets, why_not_applied};
use super::owners::foreign;
use super::{
    DeployError, DeploySetup, DeployedStep, Deployer, MANAGER, ObjectResult, ObjectStatus,
    namespace, set_name,
};
use crate::document::{DeploySource, DeployStep, Ship};
use crate::render::RenderedStep;
use crate::task::Task;

/// Finds out what a step would do.
pub(super) struct TrialDeployer {
    pub(super) rendered: RenderedStep,
    /// The images that are known.
    pub(super) images: BTreeMap<String, String>,
    pub(super) setup: DeploySetup,
}

impl Deployer for TrialDeployer {
    fn deploy(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        let step = &self.rendered.step;
        let note = match &step.source {
            DeploySource::Manifests(_) | DeploySource::Kustomize(_) | DeploySource::Flux(_) => {
                return Handle::current().block_on(async {
                    tokio::select! {
                        tried = self.try_objects(task) => tried,
                        () = task.token().cancelled() => Err(DeployError::Cancelled),
                    }
                });
            }
            DeploySource::Helm(_) => {
                let (rendered, images) = (self.rendered.clone(), self.images_or_names());
                let release = HelmDeployer::new(rendered, self.setup.clone(), images);
                let tried = release.map_err(DeployError::other)?.try_deploy(task)?;
                return self.tell_release(tried);
            }
            DeploySource::Git(source) => format!(
                "would commit the images to the branch `{}` of `{}`",
                source.branch, source.path
            ),
            DeploySource::Rollout(source) => {
                format!("would wait for the verdict on `{}`", source.name)
            }
        };
        Ok(DeployedStep {
            note: Some(note),
            ..DeployedStep::default()
        })
    }
}

impl TrialDeployer {
    /// The images that are known, and the repositories of the others: a chart must get something for each.
    fn images_or_names(&self) -> BTreeMap<String, String> {
        let mut images = self.images.clone();
        let artifacts = self.rendered.artifacts.iter();
        for artifact in artifacts.filter_map(|name| self.setup.ship.artifact(name)) {
            images
                .entry(artifact.name.clone())
                .or_insert_with(|| artifact.image.clone());
        }
        images
    }

    async fn try_objects(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        let (step, cluster) = (&self.rendered.step, &*self.setup.cluster);
        let namespace = namespace(step, cluster);
        let objects = self.rendered.with_images(&self.setup.ship, &self.images);
        let objects = objects.map_err(DeployError::other)?;
        let mask = secrets(&objects);
        if !step.adopt {
            let foreign = foreign(cluster, &objects, &namespace).await?;
            if !foreign.is_empty() {
                return Err(DeployError::Objects(foreign));
            }
        }
        task.progress(0, Some(objects.len() as u64), "trying");
        let name = set_name(&self.setup.ship, step);
        let mut set = ObjectSet::new(cluster, &namespace, &name, MANAGER);
        let options = SetOptions {
            force: step.force,
            deadline: step.timeout,
            replace: step.replace,
            prune: step.prune.then_some(PruneOptions {
                dangerous: false,
                many: self.setup.prune_many,
            }),
        };
        let unknown = self.objects_with_unknown_images(&objects);
        let trial = set.try_apply(objects, options).await?;
        let failures = self.tell_objects(&trial.applied, &unknown, &mask);
        for pruned in &trial.pruned {
            let result = would(pruned_result(pruned));
            self.setup
                .note(&step.name, &pruned.0, result.status, result.message);
        }
        if !failures.is_empty() {
            return Err(DeployError::Objects(failures));
        }
        Ok(DeployedStep {
            objects: trial.applied.len(),
            ..DeployedStep::default()
        })
    }

    /// Notes what would become of each object; returns why some would be refused.
    fn tell_objects(
        &self,
        applied: &[(Member, Result<ObjectTrial, MemberError>)],
        unknown: &BTreeMap<(String, String), String>,
        mask: &Mask,
    ) -> Vec<String> {
        let mut failures = Vec::new();
        for (member, tried) in applied {
            let (status, message) = outcome(
                tried,
                unknown.get(&(member.kind.clone(), member.name.clone())),
            );
            let message = message.map(|message| mask.text(&message).into_owned());
            if let (ObjectStatus::Failed, Some(message)) = (status, &message) {
                failures.push(format!("{member}: {message}"));
            }
            let name = &self.rendered.step.name;
            self.setup.note(name, member, status, message);
        }
        failures
    }

    fn tell_release(&self, tried: TriedRelease) -> Result<DeployedStep, DeployError> {
        let trial = tried.trial;
        let objects: Vec<Value> = trial.applied.iter().filter_map(given).cloned().collect();
        let unknown = self.objects_with_unknown_images(&objects);
        let failures = self.tell_objects(&trial.applied, &unknown, &tried.mask);
        for (member, kept) in &trial.surplus {
            let status = match kept {
                Some(_) => ObjectStatus::Kept,
                None => ObjectStatus::WouldDelete,
            };
            let name = &self.rendered.step.name;
            self.setup
                .note(name, member, status, kept.map(str::to_owned));
        }
        if !failures.is_empty() {
            return Err(DeployError::Objects(failures));
        }
        let (done, release) = (
            if trial.is_install {
                "install"
            } else {
                "upgrade"
            },
            &tried.release,
        );
        let hooks = match trial.hooks {
            0 => String::new(),
            hooks => format!("; of its {} none was tried", counted(hooks, "hook")),
        };
        Ok(DeployedStep {
            objects: trial.applied.len(),
            note: Some(format!(
                "would {done} the release `{release}` as revision {}{hooks}",
                trial.revision
            )),
            ..DeployedStep::default()
        })
    }

    /// The objects that name an image which is not known before it is built, each with its artifact.
    fn objects_with_unknown_images(&self, objects: &[Value]) -> BTreeMap<(String, String), String> {
        let mut unknown = BTreeMap::new();
        for object in objects {
            let artifacts = crate::render::named(&self.setup.ship, std::slice::from_ref(object));
            let missing = artifacts
                .into_iter()
                .find(|artifact| !self.images.contains_key(artifact));
            if let Some(artifact) = missing {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let key = (text(&object["kind"]), text(&object["metadata"]["name"]));
                unknown.insert(key, artifact);
            }
        }
        unknown
    }
}

/// An object as the cluster would have it.
fn given((_, tried): &(Member, Result<ObjectTrial, MemberError>)) -> Option<&Value> {
    tried.as_ref().ok().map(|tried| &tried.after)
}

/// What is told of an object; `artifact` is the one of an image in it that is not known.
fn outcome(
    trial: &Result<ObjectTrial, MemberError>,
    artifact: Option<&String>,
) -> (ObjectStatus, Option<String>) {
    let image = artifact.map(|name| format!("its image is unknown until `{name}` is built"));
    match trial.as_ref().map(|trial| &trial.tried) {
        Ok(TriedObject::Created) => (ObjectStatus::WouldCreate, image),
        Ok(TriedObject::Changed) => (ObjectStatus::WouldChange, image),
        // Nothing is said of an image that is not known.
        Ok(TriedObject::Unchanged) if image.is_some() => (ObjectStatus::WouldChange, image),
        Ok(TriedObject::Unchanged) => (ObjectStatus::Unchanged, None),
        Ok(TriedObject::Replaced(fields)) => {
            let why = format!("it is made anew: {} cannot be changed", fields.join(", "));
            (ObjectStatus::WouldChange, Some(why))
        }
        Ok(TriedObject::Unknown(what)) => {
            let why = format!("unknown until {what} is there");
            (ObjectStatus::WouldCreate, Some(why))
        }
        Err(error) => (ObjectStatus::Failed, Some(why_not_applied(error))),
    }
}

/// Says what a deployment or deletion would delete of a step.
pub(super) async fn try_delete(
    ship: &Ship,
    step: &DeployStep,
    cluster: &portolan_cluster::Cluster,
    options: PruneOptions,
) -> Result<Vec<ObjectResult>, DeployError> {
    let namespace = namespace(step, cluster);
    let mut set = ObjectSet::new(cluster, &namespace, &set_name(ship, step), MANAGER);
    let pruned = set.try_delete(options).await?;
    let results = pruned.iter().map(|pruned| would(pruned_result(pruned)));
    Ok(results.collect())
}

fn would(mut result: ObjectResult) -> ObjectResult {
    if result.status == ObjectStatus::Pruned {
        result.status = ObjectStatus::WouldDelete;
    }
    result
}
