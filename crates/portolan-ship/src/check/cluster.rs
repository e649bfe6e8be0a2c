//! Objects of a cluster that must be in a state.

use std::sync::Arc;
use std::time::Duration;

use portolan_cluster::{Cluster, Resource, ServedKinds, Stage, kstatus};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::{CheckError, Passed, Verifier};
use crate::document::ClusterCheck;
use crate::task::Task;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The most objects that are looked at.
const MAX_OBJECTS: usize = 10_000;

/// Looks at objects.
pub(super) struct ClusterVerifier {
    pub(super) namespace: Option<String>,
    pub(super) check: ClusterCheck,
    pub(super) cluster: Arc<Cluster>,
}

impl Verifier for ClusterVerifier {
    fn verify(&self, task: &Task) -> Result<Passed, CheckError> {
        Handle::current().block_on(async {
            tokio::select! {
                passed = self.wait(task) => passed,
                () = task.token().cancelled() => Err(CheckError::Cancelled),
            }
        })
    }
}

impl ClusterVerifier {
    async fn wait(&self, task: &Task) -> Result<Passed, CheckError> {
        let deadline = Instant::now() + self.check.timeout;
        let mut kinds = ServedKinds::new(&self.cluster);
        let kind = kinds
            .kind(&self.check.api_version, &self.check.kind)
            .await?;
        loop {
            let why = match self.judge(&self.objects(&kind).await?) {
                Ok(()) => return Ok(Passed { is_cached: false }),
                Err(why) => why,
            };
            if Instant::now() >= deadline {
                let seconds = self.check.timeout.as_secs();
                return Err(CheckError::Objects(format!("{why}, after {seconds} s")));
            }
            task.progress(0, None, why);
            sleep(PAUSE).await;
        }
    }

    async fn objects(&self, kind: &Resource) -> Result<Vec<Value>, CheckError> {
        let namespace = self.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| self.cluster.default_namespace());
        if let Some(name) = &self.check.name {
            let found = self.cluster.read(kind, namespace, name).await?;
            return Ok(found.into_iter().collect());
        }
        let mut query = kind.query(Some(namespace));
        query.labels = self.check.selector.clone().unwrap_or_default();
        let mut objects = Vec::new();
        let list = self.cluster.list_whole(&query, |mut object: Value| {
            if objects.len() < MAX_OBJECTS {
                object["apiVersion"] = self.check.api_version.as_str().into();
                object["kind"] = self.check.kind.as_str().into();
                objects.push(object);
            }
        });
        list.await?;
        Ok(objects)
    }

    /// Whether there are enough objects and all of them are as they should be. Nothing found is never well.
    fn judge(&self, objects: &[Value]) -> Result<(), String> {
        let kind = &self.check.kind;
        let bad = objects.iter().find_map(|object| {
            let why = self.wrong(object)?;
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            Some(format!("{kind} `{name}` {why}"))
        });
        let wanted = self.check.at_least.max(1);
        match bad {
            Some(why) => Err(why),
            None if objects.len() < wanted => {
                let found = objects.len();
                Err(format!("there are {found} of {kind} and not {wanted}"))
            }
            None => Ok(()),
        }
    }

    /// What is wrong with an object.
    fn wrong(&self, object: &Value) -> Option<String> {
        let Some(wanted) = &self.check.condition else {
            let status = kstatus(object);
            return (status.stage != Stage::Current)
                .then(|| format!("is not ready: {}", status.message));
        };
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let condition = conditions.find(|condition| condition["type"] == wanted.as_str());
        match condition {
            Some(condition) if condition["status"] == "True" => None,
            Some(condition) => {
                let message = condition["message"].as_str().unwrap_or_default();
                Some(format!("is not `{wanted}`: {message}"))
            }
            None => Some(format!("has no condition `{wanted}`")),
        }
    }
}
