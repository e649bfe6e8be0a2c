//! Objects of deploy steps, applied to a cluster, waited for and pruned: a unit for each step.
//!
//! ```text
//! artifact/web ─(push/web)─┐
//! deploy/crds ─────────────┴─▶ deploy/shop: images put in ──▶ applied ──▶ pruned ──▶ ready
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portolan_cluster::{
    ApplyOptions, Cluster, ClusterError, Deployed, KeptBecause, Member, MemberError, ObjectSet,
    ObjectSetError, PruneOptions, Pruned, Resource, SetOptions, WaitOptions, Waited,
};
use portolan_engine::{Context, Failure, Key, Outcome, Report, Run, Unit, with_causes};
use portolan_secret::{KnownSecrets, Mask};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::builder::BuildSetup;
use crate::document::{DeployStep, Ship};
use crate::observe::{Summarised, observe};
use crate::outcome::reference;
use crate::render::RenderedStep;
use crate::task::Task;

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
    /// Whether more than half of a step may be pruned.
    pub prune_many: bool,
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
#[serde(rename_all = "lowercase")]
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
}

/// A step that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct StepSummary {
    objects: usize,
    pruned: usize,
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
    /// The run was called off.
    #[error("it was called off")]
    Cancelled,
}

fn key(name: &str) -> Key<StepSummary> {
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
        let unit = report.get(&key(&step.name).untyped())?;
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
            name: step.name.clone(),
            status,
            objects: objects.remove(&step.name).unwrap_or_default(),
            duration_ms: u64::try_from(unit.took.as_millis()).unwrap_or(u64::MAX),
            error,
            because,
        })
    });
    results.collect()
}

/// Deletes what a step has in the cluster.
pub async fn delete_step(
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

fn set_name(ship: &Ship, step: &DeployStep) -> String {
    format!("portolan-ship-{}-{}", ship.name, step.name).to_ascii_lowercase()
}

fn namespace(step: &DeployStep, cluster: &Cluster) -> String {
    let namespace = step.namespace.clone();
    namespace.unwrap_or_else(|| cluster.default_namespace().to_owned())
}

fn unit(rendered: RenderedStep, setup: DeploySetup) -> Unit<StepSummary> {
    let (name, run) = (
        format!("deploy-{}", rendered.step.name),
        setup.build.run.clone(),
    );
    observe(
        &name,
        &run,
        move |context, task| -> Result<StepSummary, Failure> {
            let images = images(&rendered, &setup, context)?;
            let objects = rendered.with_images(&setup.ship, &images);
            let deployer = ManifestDeployer {
                secrets: secrets(&objects),
                objects,
                step: rendered.step,
                setup,
            };
            Ok(deployer.deploy(task)?)
        },
    )
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
pub(crate) trait Deployer {
    /// Deploys it, or says why it cannot. It may take its time: it runs on a thread of its own.
    fn deploy(&self, task: &Task) -> Result<StepSummary, DeployError>;
}

/// Applies objects that are written out.
struct ManifestDeployer {
    step: DeployStep,
    objects: Vec<Value>,
    /// What the Secrets among them hold: no message may repeat it.
    secrets: Arc<Mask>,
    setup: DeploySetup,
}

/// What the Secrets among objects hold.
fn secrets(objects: &[Value]) -> Arc<Mask> {
    let known = KnownSecrets::default();
    for object in objects.iter().filter(|object| object["kind"] == "Secret") {
        for part in ["data", "stringData"] {
            let values = object[part].as_object().into_iter().flatten();
            for (key, value) in values {
                known.add_text(key, value.as_str().unwrap_or_default());
            }
        }
    }
    known.mask()
}

impl Deployer for ManifestDeployer {
    fn deploy(&self, task: &Task) -> Result<StepSummary, DeployError> {
        Handle::current().block_on(async {
            tokio::select! {
                deployed = self.apply(task) => deployed,
                () = task.token().cancelled() => Err(DeployError::Cancelled),
            }
        })
    }
}

impl ManifestDeployer {
    async fn apply(&self, task: &Task) -> Result<StepSummary, DeployError> {
        let cluster = &*self.setup.cluster;
        let namespace = namespace(&self.step, cluster);
        self.make_namespace(&namespace).await?;
        let name = set_name(&self.setup.ship, &self.step);
        let mut set = ObjectSet::new(cluster, &namespace, &name, MANAGER);
        task.progress(0, Some(self.objects.len() as u64), "applying");
        let options = SetOptions {
            force: self.step.force,
            definitions: self.step.timeout,
            prune: self.step.prune.then_some(PruneOptions {
                dangerous: false,
                many: self.setup.prune_many,
            }),
        };
        let deployed = set.apply(self.objects.clone(), options).await?;
        self.tell(&deployed, task);
        let failures: Vec<String> = deployed
            .applied
            .iter()
            .filter_map(|(member, result)| Some((member, result.as_ref().err()?)))
            .map(|(member, error)| self.hide(&format!("{member}: {}", with_causes(error))))
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
        Ok(StepSummary {
            objects: members.len(),
            pruned: deployed
                .pruned
                .iter()
                .filter(|(_, pruned)| pruned.is_gone())
                .count(),
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
            let state = state(waited);
            task.log(format!("{}: {state}", waited.member));
            task.progress(ready, Some(members.len() as u64), "waiting until ready");
            self.note(waited, &state);
        });
        let waited = waited.await?;
        let open: Vec<String> = waited
            .iter()
            .filter(|waited| !waited.is_current())
            .map(|waited| {
                let state = state(waited);
                self.set_status(&waited.member, ObjectStatus::Failed, Some(state.clone()));
                format!("{} is not ready: {state}", waited.member)
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
        let name = member.to_string();
        let mut all = self
            .setup
            .objects
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let objects = all.entry(self.step.name.clone()).or_default();
        match objects.iter_mut().find(|object| object.object == name) {
            Some(object) => (object.status, object.message) = (status, message),
            None => objects.push(ObjectResult {
                object: name,
                status,
                message,
            }),
        }
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
                    let error = self.hide(&with_causes(error));
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

fn pruned_result((member, pruned): &(Member, Pruned)) -> ObjectResult {
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

/// How far an object is, in words.
fn state(waited: &Waited) -> String {
    match &waited.status {
        None => "it does not exist".to_owned(),
        Some(status) => status.message.clone(),
    }
}

impl Summarised for StepSummary {
    fn summary(&self) -> impl Serialize {
        json!({"objects": self.objects, "pruned": self.pruned})
    }
}
