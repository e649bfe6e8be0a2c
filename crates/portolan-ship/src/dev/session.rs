//! What goes on beside builds: logs that are followed and ports that are forwarded. All of it ends with the session.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_cluster::{Cluster, ClusterError, TargetPod};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::event::{DevEvent, DevEvents};
use super::forwards::forward;
use super::logs::{follow_logs, is_of};
use super::project::{DevProject, DirtySet};
use super::sync::sync_files;
use crate::document::Ship;

/// The tasks of a session.
pub struct DevSession {
    cluster: Cluster,
    events: DevEvents,
    /// Ended when it is dropped.
    tasks: JoinSet<()>,
}

impl DevSession {
    /// A session without tasks.
    pub fn new(cluster: &Cluster, events: &DevEvents) -> Self {
        Self {
            cluster: cluster.clone(),
            events: events.clone(),
            tasks: JoinSet::new(),
        }
    }

    /// Follows the logs and forwards the ports of a document, in place of those before.
    pub fn follow(&mut self, ship: &Ship, runtime: &Handle) {
        self.tasks = JoinSet::new();
        let repositories: Arc<[String]> =
            ship.artifacts.iter().map(|it| it.image.clone()).collect();
        for namespace in self.namespaces(ship) {
            let task = follow_logs(
                self.cluster.clone(),
                namespace,
                Arc::clone(&repositories),
                self.events.clone(),
            );
            self.tasks.spawn_on(async { match task.await {} }, runtime);
        }
        for rule in &ship.dev.forward {
            let namespace = rule.namespace.clone();
            let namespace = namespace.unwrap_or_else(|| self.default_namespace(ship));
            let task = forward(
                self.cluster.clone(),
                rule.clone(),
                namespace,
                self.events.clone(),
            );
            self.tasks.spawn_on(async { match task.await {} }, runtime);
        }
    }

    /// Copies files into the pods that run the images of their artifacts. Returns the artifacts whose pods do not all
    /// have them: they must be built.
    pub async fn sync(&self, project: &DevProject, dirty: &DirtySet) -> BTreeSet<String> {
        let mut failed = BTreeSet::new();
        for (index, files) in &dirty.files {
            let rule = project.ship.dev.sync.get(*index);
            let Some((rule, directory)) =
                rule.and_then(|rule| Some((rule, project.directory_of(&rule.artifact)?)))
            else {
                continue;
            };
            let artifact = rule.artifact.clone();
            let trouble = |pod: &str, why: String| DevEvent::SyncTrouble {
                artifact: artifact.clone(),
                pod: pod.to_owned(),
                why,
            };
            let pods = match self.pods(project, &artifact).await {
                Ok(pods) if pods.is_empty() => Err("no pod runs its image".to_owned()),
                Ok(pods) => Ok(pods),
                Err(error) => Err(portolan_engine::with_causes(&error)),
            };
            let pods = match pods {
                Ok(pods) => pods,
                Err(why) => {
                    self.events.send(trouble("", why)).await;
                    failed.insert(artifact.clone());
                    continue;
                }
            };
            for (pod, container) in &pods {
                let files = files.iter().map(String::as_str);
                let place = (pod, container.as_str());
                let synced = sync_files(&self.cluster, place, rule, &directory, files).await;
                let event = match synced {
                    Ok(count) if count.copied + count.removed == 0 => continue,
                    Ok(count) => DevEvent::Synced {
                        artifact: artifact.clone(),
                        pod: pod.name.clone(),
                        copied: count.copied,
                        removed: count.removed,
                    },
                    Err(error) => {
                        failed.insert(artifact.clone());
                        trouble(&pod.name, error.text())
                    }
                };
                self.events.send(event).await;
            }
        }
        failed
    }

    /// The pods that run the image of an artifact, each with the container that does.
    async fn pods(
        &self,
        project: &DevProject,
        artifact: &str,
    ) -> Result<Vec<(TargetPod, String)>, ClusterError> {
        let mut found = Vec::new();
        let Some(artifact) = project.ship.artifact(artifact) else {
            return Ok(found);
        };
        let current = project.images().get(&artifact.name);
        for namespace in self.namespaces(&project.ship) {
            for pod in self.cluster.pods_with(&namespace, "").await? {
                let mut containers = pod.containers.iter().zip(&pod.images);
                // An old pod that is about to go needs no files.
                let container = containers.find(|(_, image)| {
                    is_of(image, &artifact.image) && current.is_none_or(|current| current == *image)
                });
                if let Some((container, _)) = container.filter(|_| pod.is_ready) {
                    let container = container.clone();
                    found.push((pod, container));
                }
            }
        }
        Ok(found)
    }

    /// The namespaces that a document deploys to.
    fn namespaces(&self, ship: &Ship) -> BTreeSet<String> {
        let steps = ship.deploy.iter();
        let of_step = steps.map(|step| match &step.namespace {
            Some(namespace) => namespace.clone(),
            None => self.cluster.default_namespace().to_owned(),
        });
        of_step.collect()
    }

    /// Where the resource of a rule is that names no namespace: where the first step is deployed to.
    fn default_namespace(&self, ship: &Ship) -> String {
        let first = ship.deploy.iter().find_map(|step| step.namespace.clone());
        first.unwrap_or_else(|| self.cluster.default_namespace().to_owned())
    }
}
