//! Why the pods of a workload do not run, with what their events and logs say.
//!
//! ```text
//! Deployment ──▶ pods of its newest revision ──▶ a container that is stuck ──▶ warnings of the pod, last lines of the log
//! ```
//!
//! Pods of older revisions do not count: they may be what the deployment is to repair.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::error::ClusterError;
use crate::pages::{Query, encode};

/// So many last lines of a log are shown.
const LOG_LINES: usize = 20;

/// So many of the last warnings about a pod are shown.
const WARNINGS: usize = 5;

/// A container that ended this often will not heal by itself. The first restarts may be a wait for something that
/// starts at the same time.
const CRASHES: i64 = 2;

/// The longest line that is shown.
const MAX_LINE_CHARS: usize = 400;

/// A container that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StuckContainer {
    namespace: String,
    pod: String,
    container: String,
    reason: String,
    /// What the kubelet says of it; may be empty.
    message: String,
    /// How it ended last, if it ever ran.
    exit_code: Option<i64>,
}

impl StuckContainer {
    /// The sentence that says what is wrong.
    pub(super) fn sentence(&self) -> String {
        let Self {
            pod,
            container,
            reason,
            message,
            exit_code,
            ..
        } = self;
        let more = match exit_code {
            Some(code) => format!(" (it ended with {code})"),
            None if message.is_empty() => String::new(),
            None => format!(" ({message})"),
        };
        format!("the container `{container}` of the pod `{pod}` is stuck: {reason}{more}")
    }
}

impl Cluster {
    /// A container of the workload's newest pods that will not start without a change; `None` while all may.
    pub(super) async fn stuck_container(
        &self,
        workload: &Value,
    ) -> Result<Option<StuckContainer>, ClusterError> {
        let namespace = workload["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default();
        let Some(pods) = self.newest_pods(workload, namespace).await? else {
            return Ok(None);
        };
        Ok(pods.iter().find_map(|pod| stuck(pod, namespace)))
    }

    /// Pods of the newest revision of a workload; `None` if it has no pods.
    async fn newest_pods(
        &self,
        workload: &Value,
        namespace: &str,
    ) -> Result<Option<Vec<Value>>, ClusterError> {
        let kind = workload["kind"].as_str().unwrap_or_default();
        if kind == "Pod" {
            return Ok(Some(vec![workload.clone()]));
        }
        let Some(mut labels) = match_labels(workload) else {
            return Ok(None);
        };
        let revision = match kind {
            "Deployment" => {
                let hash = self.newest_hash(workload, namespace, &labels).await?;
                hash.map(|hash| ("pod-template-hash", hash))
            }
            "StatefulSet" => text(&workload["status"]["updateRevision"])
                .map(|revision| ("controller-revision-hash", revision)),
            "DaemonSet" => {
                let annotations = &workload["metadata"]["annotations"];
                text(&annotations["deprecated.daemonset.template.generation"])
                    .map(|generation| ("pod-template-generation", generation))
            }
            _ => Some(("", String::new())),
        };
        match revision {
            // Its controller has not made the newest revision yet.
            None => return Ok(None),
            Some(("", _)) => {}
            Some((label, value)) => labels = format!("{labels},{label}={value}"),
        }
        let pods = Resource::in_namespaces("v1", "Pod", "pods");
        Ok(Some(self.select(&pods, namespace, labels).await?))
    }

    /// What tells the pods of a Deployment's newest `ReplicaSet`.
    async fn newest_hash(
        &self,
        workload: &Value,
        namespace: &str,
        labels: &str,
    ) -> Result<Option<String>, ClusterError> {
        const REVISION: &str = "deployment.kubernetes.io/revision";
        let newest = text(&workload["metadata"]["annotations"][REVISION]);
        let sets = Resource::in_namespaces("apps/v1", "ReplicaSet", "replicasets");
        let sets = self.select(&sets, namespace, labels.to_owned()).await?;
        let set = sets.iter().find(|set| {
            let owners = set["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            newest.is_some()
                && text(&set["metadata"]["annotations"][REVISION]) == newest
                && owners.any(|owner| owner["uid"] == workload["metadata"]["uid"])
        });
        Ok(set.and_then(|set| text(&set["metadata"]["labels"]["pod-template-hash"])))
    }

    async fn select(
        &self,
        resource: &Resource,
        namespace: &str,
        labels: String,
    ) -> Result<Vec<Value>, ClusterError> {
        let query = Query {
            labels,
            ..resource.query(Some(namespace))
        };
        let mut objects = Vec::new();
        self.list_whole(&query, |object| objects.push(object))
            .await?;
        Ok(objects)
    }

    /// What the events and the log of a container say, line by line. What cannot be read is left out: it is only there to
    /// explain a failure.
    pub(super) async fn evidence(&self, stuck: &StuckContainer) -> Vec<String> {
        let mut lines = self.warnings(stuck).await.unwrap_or_default();
        let log = self.last_lines(stuck).await.unwrap_or_default();
        if !log.is_empty() {
            lines.push(format!("the container `{}` printed last:", stuck.container));
            lines.extend(log.iter().map(|line| format!("  {line}")));
        }
        lines.iter().map(|line| shortened(line)).collect()
    }

    async fn warnings(&self, stuck: &StuckContainer) -> Result<Vec<String>, ClusterError> {
        let events = Resource::in_namespaces("v1", "Event", "events");
        let query = Query {
            fields: format!("involvedObject.name={},type=Warning", stuck.pod),
            ..events.query(Some(&stuck.namespace))
        };
        let mut warnings = Vec::new();
        let take = |event: Value| {
            let word = |field: &str| text(&event[field]).unwrap_or_default();
            let at = text(&event["lastTimestamp"]).or_else(|| text(&event["eventTime"]));
            let line = format!("event: {}: {}", word("reason"), word("message").trim());
            warnings.push((at.unwrap_or_default(), line));
        };
        self.list_whole(&query, take).await?;
        warnings.sort();
        warnings.dedup_by(|one, other| one.1 == other.1);
        let first = warnings.len().saturating_sub(WARNINGS);
        Ok(warnings.drain(first..).map(|(_, line)| line).collect())
    }

    /// The last lines of the run that ended, or of the one that goes on.
    async fn last_lines(&self, stuck: &StuckContainer) -> Result<Vec<String>, ClusterError> {
        let pods = Resource::in_namespaces("v1", "Pod", "pods");
        let path = format!(
            "{}/log?container={}&tailLines={LOG_LINES}",
            pods.path(&stuck.namespace, &stuck.pod),
            encode(&stuck.container)
        );
        let log = match self.get(&format!("{path}&previous=true"), "*/*").await {
            Ok(log) => log,
            Err(_) => self.get(&path, "*/*").await?,
        };
        let log = String::from_utf8_lossy(&log);
        Ok(log.lines().map(str::to_owned).collect())
    }
}

/// The first container of a pod that will not run without a change.
fn stuck(pod: &Value, namespace: &str) -> Option<StuckContainer> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists
        .into_iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten();
    let mut stuck = containers.filter_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str()?;
        let is_stuck = match reason {
            "CrashLoopBackOff" => container["restartCount"].as_i64().unwrap_or(0) >= CRASHES,
            "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => true,
            _ => false,
        };
        is_stuck.then(|| StuckContainer {
            namespace: namespace.to_owned(),
            pod: text(&pod["metadata"]["name"]).unwrap_or_default(),
            container: text(&container["name"]).unwrap_or_default(),
            reason: reason.to_owned(),
            message: text(&waiting["message"]).unwrap_or_default(),
            exit_code: container["lastState"]["terminated"]["exitCode"].as_i64(),
        })
    });
    stuck.next()
}

/// The labels that a workload selects its pods by; `None` if it selects none, or by expressions.
fn match_labels(workload: &Value) -> Option<String> {
    let labels = workload["spec"]["selector"]["matchLabels"].as_object()?;
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn shortened(line: &str) -> String {
    let mut short: String = line.chars().take(MAX_LINE_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(reason: &str, restarts: i64) -> Value {
        json!({
            "metadata": {"name": "web-1"},
            "status": {"containerStatuses": [{
                "name": "web",
                "restartCount": restarts,
                "state": {"waiting": {"reason": reason, "message": "back-off"}},
                "lastState": {"terminated": {"exitCode": 3}},
            }]},
        })
    }

    #[test]
    fn a_container_that_may_still_start_is_not_stuck() {
        for (reason, restarts) in [
            ("ContainerCreating", 0),
            ("ErrImagePull", 0),
            ("CrashLoopBackOff", 1),
        ] {
            assert_eq!(stuck(&pod(reason, restarts), "shop"), None, "{reason}");
        }
    }

    #[test]
    fn a_container_that_crashes_again_and_again_is_stuck() {
        let found = stuck(&pod("CrashLoopBackOff", 2), "shop").expect("stuck");
        assert_eq!(
            found.sentence(),
            "the container `web` of the pod `web-1` is stuck: CrashLoopBackOff (it ended with 3)"
        );
        assert!(stuck(&pod("ImagePullBackOff", 0), "shop").is_some());
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"é".repeat(MAX_LINE_CHARS + 1));
        assert_eq!(long.chars().count(), MAX_LINE_CHARS + 1);
        assert!(long.ends_with('…'));
    }
}
