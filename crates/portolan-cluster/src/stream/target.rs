//! What a stream leads to: a pod, or a pod of a Service or workload.

use std::cmp::Reverse;
use std::fmt;

use kube::core::DynamicObject;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::error::ClusterError;

/// The kinds that have pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetKind {
    /// A pod itself.
    Pod,
    /// The pods that a Service selects.
    Service,
    /// The pods of a Deployment.
    Deployment,
    /// The pods of a `StatefulSet`.
    StatefulSet,
    /// The pods of a `DaemonSet`.
    DaemonSet,
    /// The pods of a `ReplicaSet`.
    ReplicaSet,
    /// The pods of a Job.
    Job,
}

/// Where pods are found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTarget {
    /// The namespace.
    pub namespace: String,
    /// The kind of the object.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
}

/// A pod of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPod {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Tells it from another pod of the same name.
    pub uid: String,
    /// Whether it takes requests; one that is being deleted does not.
    pub is_ready: bool,
    /// Whether it is being deleted.
    pub is_ending: bool,
    /// Whether it is on a node.
    pub is_placed: bool,
    /// When it was made, as the server writes it.
    pub created: String,
    /// Its containers, in order.
    pub containers: Vec<String>,
    /// Its images, one for each container.
    pub images: Vec<String>,
    /// The names of its ports.
    named_ports: Vec<(String, u16)>,
}

/// Kind, names that people write, API version, plural.
const KINDS: [(TargetKind, &[&str], &str, &str); 7] = [
    (TargetKind::Pod, &["pod", "pods", "po"], "v1", "pods"),
    (
        TargetKind::Service,
        &["service", "services", "svc"],
        "v1",
        "services",
    ),
    (
        TargetKind::Deployment,
        &["deployment", "deployments", "deploy"],
        "apps/v1",
        "deployments",
    ),
    (
        TargetKind::StatefulSet,
        &["statefulset", "statefulsets", "sts"],
        "apps/v1",
        "statefulsets",
    ),
    (
        TargetKind::DaemonSet,
        &["daemonset", "daemonsets", "ds"],
        "apps/v1",
        "daemonsets",
    ),
    (
        TargetKind::ReplicaSet,
        &["replicaset", "replicasets", "rs"],
        "apps/v1",
        "replicasets",
    ),
    (TargetKind::Job, &["job", "jobs"], "batch/v1", "jobs"),
];

// === impl TargetKind ===

impl TargetKind {
    /// Its name as one writes it: `service`.
    pub fn name(self) -> &'static str {
        let known = KINDS.iter().find(|(kind, ..)| *kind == self);
        known.map_or("pod", |(_, names, ..)| names[0])
    }

    fn resource(self) -> Resource {
        let known = KINDS.iter().find(|(kind, ..)| *kind == self);
        let (api_version, plural) = known.map_or(("v1", "pods"), |(_, _, version, plural)| {
            (*version, *plural)
        });
        Resource::in_namespaces(api_version, &format!("{self:?}"), plural)
    }
}

// === impl PodTarget ===

impl PodTarget {
    /// Parses `service/web`, `deploy/web` or `pod/web-1`. A name without a kind is a pod's. `None` for another kind, or
    /// without a name.
    pub fn parse(namespace: &str, text: &str) -> Option<Self> {
        let (word, name) = text.split_once('/').unwrap_or(("pod", text));
        let word = word.to_ascii_lowercase();
        let known = KINDS
            .iter()
            .find(|(_, names, ..)| names.contains(&word.as_str()));
        let (kind, ..) = known?;
        let is_name = !name.is_empty() && !name.contains('/');
        is_name.then(|| Self {
            namespace: namespace.to_owned(),
            kind: *kind,
            name: name.to_owned(),
        })
    }

    /// The words for the kinds that [`Self::parse`] knows.
    pub fn kinds() -> Vec<&'static str> {
        KINDS.iter().map(|(_, names, ..)| names[0]).collect()
    }
}

impl fmt::Display for PodTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name(), self.name)
    }
}

impl Cluster {
    /// The pods of a target: those that are ready first, of these the newest first.
    pub async fn pods_of(&self, target: &PodTarget) -> Result<Vec<TargetPod>, ClusterError> {
        let object = self.target_object(target).await?;
        if target.kind == TargetKind::Pod {
            return Ok(vec![TargetPod::read(&object)]);
        }
        let labels = selector(target.kind, &object).ok_or_else(|| ClusterError::NoPod {
            target: target.to_string(),
            namespace: target.namespace.clone(),
            why: "it selects no pods".to_owned(),
        })?;
        self.pods_with(&target.namespace, &labels).await
    }

    /// The pods of a namespace with these labels, in the same order.
    pub async fn pods_with(
        &self,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<TargetPod>, ClusterError> {
        let mut query = TargetKind::Pod.resource().query(Some(namespace));
        labels.clone_into(&mut query.labels);
        let mut pods = Vec::new();
        self.list_whole(&query, |pod| pods.push(TargetPod::read(&pod)))
            .await?;
        pods.sort_by_cached_key(|pod| {
            let newest_first = Reverse(pod.created.clone());
            (!pod.is_ready, pod.is_ending, newest_first, pod.name.clone())
        });
        Ok(pods)
    }

    /// A pod of a target that takes requests.
    pub async fn ready_pod(&self, target: &PodTarget) -> Result<TargetPod, ClusterError> {
        let pods = self.pods_of(target).await?;
        let count = pods.len();
        let ready = pods.into_iter().find(|pod| pod.is_ready);
        ready.ok_or_else(|| ClusterError::NoPod {
            target: target.to_string(),
            namespace: target.namespace.clone(),
            why: match count {
                0 => "there is none".to_owned(),
                1 => "the one that there is is not".to_owned(),
                count => format!("none of the {count} is"),
            },
        })
    }

    /// A pod of a target that takes requests, and which of its ports a port of the target is.
    pub(super) async fn ready_port(
        &self,
        target: &PodTarget,
        port: u16,
    ) -> Result<(TargetPod, u16), ClusterError> {
        let pod = self.ready_pod(target).await?;
        if target.kind != TargetKind::Service {
            return Ok((pod, port));
        }
        let service = self.target_object(target).await?;
        let port = pod.port_behind(&service, port);
        let port = port.map_err(|why| ClusterError::NoPod {
            target: target.to_string(),
            namespace: target.namespace.clone(),
            why,
        })?;
        Ok((pod, port))
    }

    async fn target_object(&self, target: &PodTarget) -> Result<Value, ClusterError> {
        let resource = target.kind.resource();
        let object = self
            .read(&resource, &target.namespace, &target.name)
            .await?;
        object.ok_or_else(|| ClusterError::Status {
            path: resource.path(&target.namespace, &target.name),
            code: 404,
            message: format!("{target} is not in the namespace `{}`", target.namespace),
        })
    }
}

// === impl TargetPod ===

impl TargetPod {
    /// The pod in a cache.
    pub fn of(pod: &DynamicObject) -> Self {
        let metadata = serde_json::to_value(&pod.metadata).unwrap_or_default();
        let mut whole = pod.data.clone();
        whole["metadata"] = metadata;
        Self::read(&whole)
    }

    fn read(pod: &Value) -> Self {
        let text = |field: &str| {
            pod["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let is_ending = pod["metadata"]["deletionTimestamp"].is_string();
        let containers = || pod["spec"]["containers"].as_array().into_iter().flatten();
        let of_each = |field: &str| {
            let values = containers().map(|container| &container[field]);
            values
                .map(|value| value.as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let ports = containers().filter_map(|container| container["ports"].as_array());
        let named = ports.flatten().filter_map(|port| {
            let number = u16::try_from(port["containerPort"].as_u64()?).ok()?;
            Some((port["name"].as_str()?.to_owned(), number))
        });
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
        Self {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            is_ready: !is_ending && ready.any(|condition| condition["status"] == "True"),
            is_ending,
            is_placed: pod["spec"]["nodeName"].is_string(),
            created: text("creationTimestamp"),
            containers: of_each("name"),
            images: of_each("image"),
            named_ports: named.collect(),
        }
    }

    /// The port of this pod that a port of its Service leads to.
    fn port_behind(&self, service: &Value, port: u16) -> Result<u16, String> {
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        let mut known = Vec::new();
        for entry in ports {
            if entry["port"].as_u64() != Some(u64::from(port)) {
                known.push(entry["port"].to_string());
                continue;
            }
            return match &entry["targetPort"] {
                Value::String(name) => {
                    let named = self.named_ports.iter().find(|(known, _)| known == name);
                    let number = named.map(|(_, number)| *number);
                    number.ok_or_else(|| {
                        format!("its pod `{}` has no port named `{name}`", self.name)
                    })
                }
                number => Ok(number
                    .as_u64()
                    .and_then(|number| u16::try_from(number).ok())
                    .unwrap_or(port)),
            };
        }
        Err(format!("it has no port {port}, only {}", known.join(", ")))
    }
}

/// The label selector of an object; `None` if it has none.
fn selector(kind: TargetKind, object: &Value) -> Option<String> {
    let selector = &object["spec"]["selector"];
    let equal = match kind {
        TargetKind::Service => selector,
        _ => &selector["matchLabels"],
    };
    let equal = equal.as_object().into_iter().flatten();
    let mut terms: Vec<String> = equal
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
        .collect();
    if kind != TargetKind::Service {
        let expressions = selector["matchExpressions"]
            .as_array()
            .into_iter()
            .flatten();
        terms.extend(expressions.filter_map(term));
    }
    (!terms.is_empty()).then(|| terms.join(","))
}

/// One expression of a selector, as a query writes it.
fn term(expression: &Value) -> Option<String> {
    let key = expression["key"].as_str()?;
    let values = expression["values"].as_array().into_iter().flatten();
    let values: Vec<&str> = values.filter_map(Value::as_str).collect();
    let values = values.join(",");
    match expression["operator"].as_str()? {
        "In" => Some(format!("{key} in ({values})")),
        "NotIn" => Some(format!("{key} notin ({values})")),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_target_is_written_as_for_kubectl() {
        let parse = |text: &str| PodTarget::parse("shop", text).map(|target| target.to_string());
        assert_eq!(parse("svc/web").as_deref(), Some("service/web"));
        assert_eq!(parse("Deployment/web").as_deref(), Some("deployment/web"));
        assert_eq!(parse("web-1").as_deref(), Some("pod/web-1"));
        assert_eq!(parse("configmap/web"), None);
        assert_eq!(parse("service/"), None);
        assert_eq!(parse("service/a/b"), None);
    }

    #[test]
    fn every_operator_of_a_selector_is_part_of_the_query() {
        let object = json!({"spec": {"selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "new", "operator": "Exists"},
                {"key": "zone", "operator": "NotIn", "values": ["x"]},
            ],
        }}});
        let expected = "app=web,tier in (a,b),!old,new,zone notin (x)";
        assert_eq!(
            selector(TargetKind::Deployment, &object).as_deref(),
            Some(expected)
        );
        let service = json!({"spec": {"selector": {"app": "web"}}});
        assert_eq!(
            selector(TargetKind::Service, &service).as_deref(),
            Some("app=web")
        );
        assert_eq!(selector(TargetKind::Service, &json!({"spec": {}})), None);
    }

    #[test]
    fn a_port_of_a_service_is_found_by_number_and_by_name() {
        let pod = json!({"metadata": {"name": "web-1"}, "spec": {"containers": [
            {"name": "web", "image": "web:1", "ports": [{"name": "http", "containerPort": 8080}]},
        ]}});
        let pod = TargetPod::read(&pod);
        let service = json!({"spec": {"ports": [
            {"port": 80, "targetPort": "http"},
            {"port": 81, "targetPort": 9090},
            {"port": 82},
            {"port": 83, "targetPort": "grpc"},
        ]}});
        assert_eq!(pod.port_behind(&service, 80), Ok(8080));
        assert_eq!(pod.port_behind(&service, 81), Ok(9090));
        assert_eq!(pod.port_behind(&service, 82), Ok(82));
        assert!(pod.port_behind(&service, 83).is_err());
        let missing = pod.port_behind(&service, 8080).unwrap_err();
        assert_eq!(missing, "it has no port 8080, only 80, 81, 82, 83");
    }
}
