//! Where a kind has its pod templates: the maps with a pod's `metadata` and `spec`.

use portolan_yaml::Node;

use crate::field::{self, Found};
use crate::gvk::Gvk;

/// A pod template inside an object. For a Pod it is the object itself.
#[derive(Debug, Clone)]
pub struct PodTemplate<'a> {
    /// Its path in the object, `spec.template`; empty for a Pod.
    pub path: String,
    /// The map with the pod's `metadata` and `spec`.
    pub node: &'a Node,
}

/// Patterns by group and kind. Custom kinds are listed when their template is a whole pod template.
const TEMPLATES: &[(&str, &str, &[&str])] = &[
    ("", "Pod", &[""]),
    ("", "PodTemplate", &["template"]),
    ("", "ReplicationController", &["spec.template"]),
    ("apps", "DaemonSet", &["spec.template"]),
    ("apps", "Deployment", &["spec.template"]),
    ("apps", "ReplicaSet", &["spec.template"]),
    ("apps", "StatefulSet", &["spec.template"]),
    ("extensions", "DaemonSet", &["spec.template"]),
    ("extensions", "Deployment", &["spec.template"]),
    ("extensions", "ReplicaSet", &["spec.template"]),
    ("batch", "CronJob", &["spec.jobTemplate.spec.template"]),
    ("batch", "Job", &["spec.template"]),
    (
        "actions.github.com",
        "AutoscalingRunnerSet",
        &["spec.template"],
    ),
    ("apps.kruise.io", "BroadcastJob", &["spec.template"]),
    ("apps.kruise.io", "CloneSet", &["spec.template"]),
    ("apps.kruise.io", "DaemonSet", &["spec.template"]),
    ("apps.kruise.io", "StatefulSet", &["spec.template"]),
    ("apps.openshift.io", "DeploymentConfig", &["spec.template"]),
    ("argoproj.io", "Rollout", &["spec.template"]),
    ("batch.volcano.sh", "Job", &["spec.tasks[].template"]),
    (
        "jobset.x-k8s.io",
        "JobSet",
        &["spec.replicatedJobs[].template.spec.template"],
    ),
    ("keda.sh", "ScaledJob", &["spec.jobTargetRef.template"]),
    (
        "kubeflow.org",
        "MPIJob",
        &["spec.mpiReplicaSpecs.*.template"],
    ),
    (
        "kubeflow.org",
        "PyTorchJob",
        &["spec.pytorchReplicaSpecs.*.template"],
    ),
    ("kubeflow.org", "TFJob", &["spec.tfReplicaSpecs.*.template"]),
    (
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        &[
            "spec.leaderWorkerTemplate.leaderTemplate",
            "spec.leaderWorkerTemplate.workerTemplate",
        ],
    ),
    (
        "ray.io",
        "RayCluster",
        &[
            "spec.headGroupSpec.template",
            "spec.workerGroupSpecs[].template",
        ],
    ),
    ("serving.knative.dev", "Configuration", &["spec.template"]),
    ("serving.knative.dev", "Revision", &[""]),
    ("serving.knative.dev", "Service", &["spec.template"]),
];

/// The pod templates of an object, in order; none for kinds that start no pods or are not known to.
pub fn pod_templates<'a>(gvk: &Gvk, object: &'a Node) -> Vec<PodTemplate<'a>> {
    let found = patterns(gvk)
        .iter()
        .flat_map(|pattern| field::find(object, pattern));
    found
        .filter(|found| found.node.as_map().is_some())
        .map(|Found { path, node }| PodTemplate { path, node })
        .collect()
}

/// Calls `visit` with every pod template of an object, to change it.
pub fn visit_pod_templates_mut(gvk: &Gvk, object: &mut Node, mut visit: impl FnMut(&mut Node)) {
    for pattern in patterns(gvk) {
        field::visit_mut(object, pattern, &mut |node| {
            if node.as_map().is_some() {
                visit(node);
            }
        });
    }
}

fn patterns(gvk: &Gvk) -> &'static [&'static str] {
    let row = TEMPLATES
        .iter()
        .find(|(group, kind, _)| gvk.is(group, kind));
    row.map_or(&[], |(_, _, patterns)| patterns)
}
