//! A chart as a release of Helm, in Helm's own storage: `helm list`, `history` and `rollback` work with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use portolan_cluster::{Cluster, MemberError, ObjectTrial, TriedObject};
use portolan_engine::with_causes;
use portolan_release::{
    ChartInstall, EditObject, HelmReleaseError, ObjectState, OnFailure, ReleaseNews, ReleaseTarget,
    ReleaseTrial,
};
use portolan_secret::{KnownSecrets, Mask};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::manifests::add_secrets;
use super::{
    DeployError, DeploySetup, DeployedStep, Deployer, ObjectResult, ObjectStatus, namespace,
};
use crate::document::{AfterFailure, DeployStep, HelmSource};
use crate::helm_chart::HelmChart;
use crate::render::{RenderError, RenderedStep, put_images};
use crate::task::Task;

/// Installs or upgrades a release.
pub(super) struct HelmDeployer {
    step: DeployStep,
    source: HelmSource,
    setup: DeploySetup,
    request: ChartInstall,
    /// What the Secrets of the chart hold: no message may repeat it.
    secrets: Arc<KnownSecrets>,
}

impl HelmDeployer {
    pub(super) fn new(
        rendered: RenderedStep,
        setup: DeploySetup,
        images: BTreeMap<String, String>,
    ) -> Result<Self, RenderError> {
        let chart: HelmChart = rendered
            .chart
            .ok_or_else(|| RenderError::NoChart(rendered.step.name.clone()))?;
        let secrets = Arc::new(KnownSecrets::default());
        let values = chart.values(&images)?;
        let (known, ship) = (Arc::clone(&secrets), Arc::clone(&setup.ship));
        let edit: EditObject = Arc::new(move |object| {
            add_secrets(object, &known);
            put_images(object, &ship, &images)
        });
        Ok(Self {
            request: ChartInstall {
                chart: chart.chart,
                values,
                edit,
            },
            source: chart.source,
            step: rendered.step,
            setup,
            secrets,
        })
    }

    fn hide(&self, text: &str) -> String {
        self.secrets.mask().text(text).into_owned()
    }

    fn hear(&self, news: ReleaseNews<'_>, task: &Task) {
        match news {
            ReleaseNews::Line(line) => task.log(self.hide(&line)),
            ReleaseNews::Object {
                member,
                state,
                message,
            } => {
                let message = message.map(|message| self.hide(&message));
                let line = match &message {
                    Some(message) => format!("{member}: {} ({message})", word(state)),
                    None => format!("{member}: {}", word(state)),
                };
                task.log(line);
                self.setup
                    .note(&self.step.name, member, status(state), message);
            }
        }
    }
}

impl Deployer for HelmDeployer {
    fn deploy(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        let cluster = &self.setup.cluster;
        let target = target(&self.step, &self.source, cluster, task.token().clone());
        task.progress(0, None, "installing or upgrading");
        let tell = |news: ReleaseNews<'_>| self.hear(news, task);
        let done = Handle::current().block_on(target.deploy(self.request.clone(), &tell));
        match done {
            Ok(done) => Ok(DeployedStep {
                objects: done.objects,
                pruned: done.deleted,
                note: None,
            }),
            Err(HelmReleaseError::Cancelled) => Err(DeployError::Cancelled),
            Err(error) => Err(DeployError::Objects(vec![self.hide(&with_causes(&error))])),
        }
    }
}

/// What a deployment of a release would do.
pub(super) struct TriedRelease {
    pub(super) release: String,
    pub(super) trial: ReleaseTrial,
    /// Hides what the Secrets of the chart hold.
    pub(super) mask: Arc<Mask>,
}

impl HelmDeployer {
    /// Finds out what a deployment would do.
    pub(super) fn try_deploy(self, task: &Task) -> Result<TriedRelease, DeployError> {
        let cluster = &self.setup.cluster;
        let target = target(&self.step, &self.source, cluster, task.token().clone());
        task.progress(0, None, "trying");
        let tell = |news: ReleaseNews<'_>| self.hear(news, task);
        let tried = Handle::current().block_on(target.try_deploy(self.request.clone(), &tell));
        match tried {
            Ok(mut trial) => {
                refuse_replacements(&mut trial);
                Ok(TriedRelease {
                    release: self.source.release.clone(),
                    trial,
                    mask: self.secrets.mask(),
                })
            }
            Err(HelmReleaseError::Cancelled) => Err(DeployError::Cancelled),
            Err(error) => Err(DeployError::Objects(vec![self.hide(&with_causes(&error))])),
        }
    }
}

/// A release makes nothing anew: what cannot be changed is refused.
fn refuse_replacements(trial: &mut ReleaseTrial) {
    for (_, tried) in &mut trial.applied {
        if let Ok(ObjectTrial {
            tried: TriedObject::Replaced(fields),
            ..
        }) = tried
        {
            let fields = std::mem::take(fields);
            *tried = Err(MemberError::Immutable {
                fields,
                is_running_job: false,
            });
        }
    }
}

/// Uninstalls the release of a step.
pub(super) async fn uninstall(
    step: &DeployStep,
    source: &HelmSource,
    cluster: &Arc<Cluster>,
) -> Result<Vec<ObjectResult>, DeployError> {
    let results = Mutex::new(Vec::new());
    let target = target(step, source, cluster, CancellationToken::new());
    let tell = |news: ReleaseNews<'_>| {
        if let ReleaseNews::Object {
            member,
            state,
            message,
        } = news
        {
            let result = ObjectResult {
                object: member.to_string(),
                status: status(state),
                message,
            };
            results
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .push(result);
        }
    };
    let done = target.uninstall(&tell).await;
    done.map_err(|error| DeployError::Release(Box::new(error)))?;
    Ok(results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn target(
    step: &DeployStep,
    source: &HelmSource,
    cluster: &Arc<Cluster>,
    token: CancellationToken,
) -> ReleaseTarget {
    ReleaseTarget {
        cluster: Arc::clone(cluster),
        namespace: namespace(step, cluster),
        name: source.release.clone(),
        create_namespace: source.create_namespace,
        history_max: source.history_max,
        on_failure: match source.on_failure {
            AfterFailure::Keep => OnFailure::Keep,
            AfterFailure::Rollback => OnFailure::Rollback,
            AfterFailure::Uninstall => OnFailure::Uninstall,
        },
        timeout: step.timeout,
        fail_fast: step.fail_fast,
        force: step.force,
        adopt: step.adopt,
        token,
    }
}

fn status(state: ObjectState) -> ObjectStatus {
    match state {
        ObjectState::Applied => ObjectStatus::Applied,
        ObjectState::Ready => ObjectStatus::Ready,
        ObjectState::Failed => ObjectStatus::Failed,
        ObjectState::Deleted => ObjectStatus::Pruned,
        ObjectState::Kept => ObjectStatus::Kept,
    }
}

fn word(state: ObjectState) -> &'static str {
    match state {
        ObjectState::Applied => "applied",
        ObjectState::Ready => "ready",
        ObjectState::Failed => "failed",
        ObjectState::Deleted => "deleted",
        ObjectState::Kept => "kept",
    }
}
