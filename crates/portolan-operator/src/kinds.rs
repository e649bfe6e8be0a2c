//! The kinds that the operator reads and writes.

use portolan_cluster::Resource;
use portolan_rollout::{API_VERSION, KIND};

/// The rollouts themselves.
pub(crate) fn rollouts() -> Resource {
    Resource::in_namespaces(API_VERSION, KIND, "istiocanarydeployments")
}

pub(crate) fn analyses() -> Resource {
    Resource::in_namespaces(API_VERSION, "RolloutAnalysis", "rolloutanalyses")
}

pub(crate) fn cluster_analyses() -> Resource {
    let kind = "ClusterRolloutAnalysis";
    Resource::without_namespace(API_VERSION, kind, "clusterrolloutanalyses")
}

pub(crate) fn deployments() -> Resource {
    Resource::in_namespaces("apps/v1", "Deployment", "deployments")
}

pub(crate) fn revisions() -> Resource {
    Resource::in_namespaces("apps/v1", "ControllerRevision", "controllerrevisions")
}

pub(crate) fn pods() -> Resource {
    Resource::in_namespaces("v1", "Pod", "pods")
}

pub(crate) fn services() -> Resource {
    Resource::in_namespaces("v1", "Service", "services")
}

pub(crate) fn endpoint_slices() -> Resource {
    Resource::in_namespaces("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
}

pub(crate) fn config_maps() -> Resource {
    Resource::in_namespaces("v1", "ConfigMap", "configmaps")
}

pub(crate) fn secrets() -> Resource {
    Resource::in_namespaces("v1", "Secret", "secrets")
}

pub(crate) fn namespaces() -> Resource {
    Resource::without_namespace("v1", "Namespace", "namespaces")
}

pub(crate) fn virtual_services() -> Resource {
    let group = "networking.istio.io/v1";
    Resource::in_namespaces(group, "VirtualService", "virtualservices")
}

pub(crate) fn destination_rules() -> Resource {
    let group = "networking.istio.io/v1";
    Resource::in_namespaces(group, "DestinationRule", "destinationrules")
}

pub(crate) fn http_routes() -> Resource {
    Resource::in_namespaces("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
}

pub(crate) fn pod_autoscalers() -> Resource {
    let name = "horizontalpodautoscalers";
    Resource::in_namespaces("autoscaling/v2", "HorizontalPodAutoscaler", name)
}

pub(crate) fn scaled_objects() -> Resource {
    Resource::in_namespaces("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
}
