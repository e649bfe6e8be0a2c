//! Objects of deploy steps, applied to a cluster, waited for and pruned: a unit for each step.
//!
//! ```text
//! artifact/web ─(push/web)─┐
//! deploy/crds ─────────────┴─▶ deploy/shop: images put in ──▶ applied ──▶ pruned ──▶ ready
//! ```

mod autoscaled;
mod commands;
mod git;
mod helm;
mod manifests;
mod owners;
mod rollout;
mod trial;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_cluster::{Cluster, ClusterError, Member, MemberError, ObjectSetError, PruneOptions};
use portolan_engine::{Context, Failure, Key, Outcome, Report, Run, Unit, with_causes};
use serde::Serialize;
use serde_json::json;

use crate::builder::BuildSetup;
use crate::check::{CheckError, tests_of};
use crate::document::{DeploySource, DeployStep, Ship};
use crate::git_images::GitImagesError;
use crate::observe::{ONCE, Summarised, observe};
use crate::outcome::reference;
use crate::render::{RenderError, RenderedStep};
use crate::task::Task;
use commands::StepCommands;
use git::GitDeployer;
use helm::HelmDeployer;
use manifests::ManifestDeployer;
use rollout::RolloutDeployer;
use trial::TrialDeployer;

/// Who changes objects, as the cluster keeps it.
const MANAGER: &str = "portolan-ship";

/// What every step of a run has.
#[derive(Clone)]
pub struct DeploySetup {
    /// The run, and what builders have.
    pub build: BuildSetup,
    /// The document.
    pub ship: Arc<Ship>,
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// Images by artifact that were built elsewhere; `None` if they are built in this run.
    pub images: Option<BTreeMap<String, String>>,
    /// Whether images are pushed in this run, and must have been before they are deployed.
    pub is_pushing: bool,
    /// Whether images are tested in this run, and must have passed before they are deployed.
    pub is_testing: bool,
    /// Whether more than half of a step may be pruned.
    pub prune_many: bool,
    /// Whether it is only found out what would be done.
    pub is_trial: bool,
    /// What became of each object so far, by step.
    pub objects: Arc<Mutex<BTreeMap<String, Vec<ObjectResult>>>>,
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectResult {
    /// `Deployment shop/web`
    pub object: String,
    /// What became of it.
    pub status: ObjectStatus,
    /// Why, or what it waits for.
    pub message: Option<String>,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ObjectStatus {
    /// It was applied, and has not become ready.
    Applied,
    /// It is what it asks for.
    Ready,
    /// It could not be applied or did not become ready.
    Failed,
    /// It is no longer in the step, and was deleted.
    Pruned,
    /// It is no longer in the step, and stays.
    Kept,
    /// It would be made.
    WouldCreate,
    /// It would be changed.
    WouldChange,
    /// It is what it should be already.
    Unchanged,
    /// It is no longer in the step, and would be deleted.
    WouldDelete,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// All of its objects are ready.
    Deployed,
    /// Some are not.
    Failed,
    /// Something that it needs failed.
    Skipped,
    /// It was called off.
    Cancelled,
}

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub status: StepStatus,
    /// What became of each object.
    pub objects: Vec<ObjectResult>,
    /// How long it took.
    pub duration_ms: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// What it waited for.
    pub because: Vec<String>,
    /// What is left to do, or worth to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A step that was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeployedStep {
    /// How many objects it has.
    pub objects: usize,
    /// How many were deleted that it has no longer.
    pub pruned: usize,
    /// What is left to do, or worth to know.
    pub note: Option<String>,
}

/// Why a step could not be done.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The set of its objects could not be applied at all.
    #[error(transparent)]
    Set(#[from] ObjectSetError),
    /// Objects were refused or did not become ready.
    #[error("{}", .0.join("; "))]
    Objects(Vec<String>),
    /// The cluster could not be asked.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The namespace cannot be made.
    #[error("cannot make the namespace `{namespace}`")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// Why not.
        #[source]
        source: ClusterError,
    },
    /// The cluster could not be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A canary was not promoted.
    #[error("the rollout `{name}` was not promoted: {why}")]
    Rollout {
        /// Its namespace and name.
        name: String,
        /// What became of it.
        why: String,
    },
    /// Images could not be committed.
    #[error(transparent)]
    Git(#[from] GitImagesError),
    /// A release could not be uninstalled.
    #[error(transparent)]
    Release(Box<portolan_release::HelmReleaseError>),
    /// A command before or after it failed.
    #[error("{when} it")]
    Command {
        /// `before` or `after`.
        when: &'static str,
        /// What is wrong with it.
        #[source]
        source: Box<CheckError>,
    },
    /// Why a deployer of another program could not do it.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
    /// The run was called off.
    #[error("it was called off")]
    Cancelled,
}

impl DeployError {
    /// What went wrong in a deployer of another program.
    pub fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}

pub(crate) fn key(name: &str) -> Key<DeployedStep> {
    Key::from(format!("deploy/{name}").as_str())
}

/// Adds the deploy steps to a run, after the artifacts that their objects name.
pub fn plan_deploy(steps: &[RenderedStep], setup: &DeploySetup, run: &Run) {
    for rendered in steps {
        let mut needs: Vec<Key> = Vec::new();
        if setup.images.is_none() {
            for name in &rendered.artifacts {
                needs.push(crate::build::key(name).untyped());
                if setup.is_pushing {
                    needs.push(crate::push::key(name).untyped());
                }
                if setup.is_testing {
                    needs.extend(tests_of(&setup.ship, name));
                }
            }
        }
        needs.extend(rendered.step.needs.iter().map(|name| key(name).untyped()));
        run.add(
            key(&rendered.step.name),
            &needs,
            unit(rendered.clone(), setup.clone()),
        );
    }
}

/// What came of the steps, in the document's order.
pub fn finish_deploy(setup: &DeploySetup, report: &Report) -> Vec<StepResult> {
    let mut objects = setup
        .objects
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let steps = setup.ship.deploy.iter();
    let results = steps.filter_map(|step| {
        let mut result = step_result(&step.name, report)?;
        result.objects = objects.remove(&step.name).unwrap_or_default();
        Some(result)
    });
    results.collect()
}

/// What came of a step; `None` if it is not in the run.
pub(crate) fn step_result(name: &str, report: &Report) -> Option<StepResult> {
    let unit = report.get(&key(name).untyped())?;
    let (status, error, because) = match &unit.outcome {
        Outcome::Done(_) => (StepStatus::Deployed, None, Vec::new()),
        Outcome::Failed(failure) => (
            StepStatus::Failed,
            Some(with_causes(failure.error())),
            Vec::new(),
        ),
        Outcome::Skipped { because } => {
            (StepStatus::Skipped, None, vec![format!("{because} failed")])
        }
        Outcome::Cancelled => (StepStatus::Cancelled, None, Vec::new()),
    };
    Some(StepResult {
        name: name.to_owned(),
        status,
        objects: Vec::new(),
        duration_ms: u64::try_from(unit.took.as_millis()).unwrap_or(u64::MAX),
        error,
        because,
        note: report
            .output(&key(name))
            .and_then(|summary| summary.note.clone()),
    })
}

/// Deletes what a step has in the cluster.
pub async fn delete_step(
    ship: &Ship,
    step: &DeployStep,
    cluster: &Arc<Cluster>,
    options: PruneOptions,
) -> Result<Vec<ObjectResult>, DeployError> {
    match &step.source {
        DeploySource::Manifests(_) | DeploySource::Kustomize(_) => {
            manifests::delete(ship, step, cluster, options).await
        }
        DeploySource::Flux(_) => manifests::delete(ship, step, cluster, options).await,
        DeploySource::Helm(source) => helm::uninstall(step, source, cluster).await,
        // A commit stays, and what a canary runs belongs to the step that applied it.
        DeploySource::Git(_) | DeploySource::Rollout(_) => Ok(Vec::new()),
    }
}

/// Says what [`delete_step`] would delete. Of a Helm release nothing is known here but that it would be uninstalled.
pub async fn try_delete_step(
    ship: &Ship,
    step: &DeployStep,
    cluster: &Arc<Cluster>,
    options: PruneOptions,
) -> Result<Vec<ObjectResult>, DeployError> {
    match &step.source {
        DeploySource::Manifests(_) | DeploySource::Kustomize(_) | DeploySource::Flux(_) => {
            trial::try_delete(ship, step, cluster, options).await
        }
        DeploySource::Helm(source) => Ok(vec![ObjectResult {
            object: format!("release {}/{}", namespace(step, cluster), source.release),
            status: ObjectStatus::WouldDelete,
            message: None,
        }]),
        DeploySource::Git(_) | DeploySource::Rollout(_) => Ok(Vec::new()),
    }
}

fn set_name(ship: &Ship, step: &DeployStep) -> String {
    format!("portolan-ship-{}-{}", ship.name, step.name).to_ascii_lowercase()
}

fn namespace(step: &DeployStep, cluster: &Cluster) -> String {
    let namespace = step.namespace.clone();
    namespace.unwrap_or_else(|| cluster.default_namespace().to_owned())
}

fn unit(rendered: RenderedStep, setup: DeploySetup) -> Unit<DeployedStep> {
    let (name, run) = (
        format!("deploy-{}", rendered.step.name),
        setup.build.run.clone(),
    );
    observe(
        &name,
        &run,
        ONCE,
        move |context, task| -> Result<DeployedStep, Failure> {
            let images = images(&rendered, &setup, context)?;
            if setup.is_trial {
                let trial = TrialDeployer {
                    rendered: rendered.clone(),
                    images,
                    setup: setup.clone(),
                };
                return Ok(trial.deploy(task)?);
            }
            let commands = StepCommands::new(&rendered.step, &images, &setup);
            let deployer = deployer(rendered.clone(), setup.clone(), images)?;
            commands.run_before(task)?;
            let deployed = deployer.deploy(task)?;
            commands.run_after(task)?;
            Ok(deployed)
        },
    )
}

/// What deploys a step.
fn deployer(
    rendered: RenderedStep,
    setup: DeploySetup,
    images: BTreeMap<String, String>,
) -> Result<Box<dyn Deployer>, RenderError> {
    Ok(match rendered.step.source.clone() {
        DeploySource::Manifests(_) | DeploySource::Kustomize(_) | DeploySource::Flux(_) => {
            let objects = rendered.with_images(&setup.ship, &images)?;
            Box::new(ManifestDeployer::new(rendered.step, objects, setup))
        }
        DeploySource::Helm(_) => Box::new(HelmDeployer::new(rendered, setup, images)?),
        DeploySource::Git(source) => Box::new(GitDeployer {
            source,
            images,
            setup,
        }),
        DeploySource::Rollout(source) => Box::new(RolloutDeployer {
            step: rendered.step,
            source,
            setup,
        }),
    })
}

/// The images of the artifacts that a step names.
fn images(
    rendered: &RenderedStep,
    setup: &DeploySetup,
    context: &Context,
) -> Result<BTreeMap<String, String>, Failure> {
    if let Some(images) = &setup.images {
        return Ok(images.clone());
    }
    let mut images = BTreeMap::new();
    for name in &rendered.artifacts {
        let built = context.need(&crate::build::key(name))?;
        if let Some(artifact) = setup.ship.artifact(name) {
            images.insert(name.clone(), reference(&artifact.image, &built.digest));
        }
    }
    Ok(images)
}

/// Deploys one step.
pub trait Deployer: Send + Sync + 'static {
    /// Deploys it, or says why it cannot. It may take its time: it runs on a thread of its own.
    fn deploy(&self, task: &Task) -> Result<DeployedStep, DeployError>;
}

impl DeploySetup {
    /// Notes how far an object of a step is.
    fn note(&self, step: &str, member: &Member, status: ObjectStatus, message: Option<String>) {
        let name = member.to_string();
        let mut all = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = all.entry(step.to_owned()).or_default();
        match objects.iter_mut().find(|object| object.object == name) {
            Some(object) => (object.status, object.message) = (status, message),
            None => objects.push(ObjectResult {
                object: name,
                status,
                message,
            }),
        }
    }
}

impl Summarised for DeployedStep {
    fn summary(&self) -> impl Serialize {
        let mut summary = json!({"objects": self.objects, "pruned": self.pruned});
        if let Some(note) = &self.note {
            summary["note"] = note.as_str().into();
        }
        summary
    }
}
