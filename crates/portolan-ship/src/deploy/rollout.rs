//! The hand-over to a canary: an earlier step changed the rollout, and this one waits for the verdict.

use std::time::Duration;

use portolan_canary::{RevisionWait, Rollout, Standing, explain};
use portolan_cluster::{ClusterError, Resource};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::{DeployError, DeploySetup, DeployedStep, Deployer, namespace};
use crate::document::{DeployStep, RolloutSource};
use crate::task::Task;

/// How often the rollout is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Waits for the verdict on a rollout's newest revision.
pub(super) struct RolloutDeployer {
    pub(super) step: DeployStep,
    pub(super) source: RolloutSource,
    pub(super) setup: DeploySetup,
}

impl Deployer for RolloutDeployer {
    fn deploy(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        Handle::current().block_on(async {
            tokio::select! {
                verdict = self.wait(task) => verdict,
                () = task.token().cancelled() => Err(DeployError::Cancelled),
            }
        })
    }
}

impl RolloutDeployer {
    async fn wait(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        let namespace = namespace(&self.step, &self.setup.cluster);
        let name = format!("{namespace}/{}", self.source.name);
        let failed = |why: String| {
            Err(DeployError::Rollout {
                name: name.clone(),
                why,
            })
        };
        let deadline = Instant::now() + self.source.timeout;
        let mut awaited = RevisionWait::default();
        let mut told = String::new();
        loop {
            let rollout = match self.read(&namespace).await? {
                Some(Ok(rollout)) => rollout,
                Some(Err(why)) => return failed(why),
                None => return failed("it does not exist".to_owned()),
            };
            let standing = awaited.look(&rollout);
            let lines = explain(&rollout).join("; ");
            if lines != told {
                task.log(format!("{}: {lines}", standing.reason()));
                told = lines;
            }
            let weight = rollout.status.as_ref().map_or(0, |status| status.weight);
            task.progress(u64::from(weight), Some(100), standing.reason());
            match standing {
                Standing::Stable { is_unproven } => {
                    return Ok(DeployedStep {
                        note: is_unproven.then(|| "promoted by a policy, without proof".to_owned()),
                        ..DeployedStep::default()
                    });
                }
                Standing::Refused(_) => return failed(format!("{}: {told}", standing.reason())),
                Standing::NotSeen if Instant::now() >= deadline => {
                    return failed("no operator has seen it; is `portolan operator` running, and does it watch this namespace?".to_owned());
                }
                Standing::InProgress if Instant::now() >= deadline => {
                    let seconds = self.source.timeout.as_secs();
                    return failed(format!("not decided after {seconds} s: {told}"));
                }
                Standing::NotSeen | Standing::InProgress => sleep(LOOK).await,
            }
        }
    }

    async fn read(&self, namespace: &str) -> Result<Option<Result<Rollout, String>>, ClusterError> {
        let kind = Resource::in_namespaces(
            portolan_rollout::API_VERSION,
            portolan_rollout::KIND,
            "istiocanarydeployments",
        );
        let found = self
            .setup
            .cluster
            .read(&kind, namespace, &self.source.name)
            .await?;
        Ok(found.map(|object| Rollout::read(&object).map_err(|error| error.to_string())))
    }
}
