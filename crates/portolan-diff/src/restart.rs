//! Which workloads replace their pods: those whose pod template changes.

use portolan_object::{Gvk, Object, ObjectId, Owner};
use portolan_yaml::{Node, Text};

use crate::field::Field;

/// A workload that replaces its pods.
#[derive(Debug, Clone, PartialEq)]
pub struct Restart {
    /// The workload.
    pub id: ObjectId,
    /// Who renders it.
    pub owner: Owner,
    /// How many pods it runs, where that is said.
    pub pods: Option<i64>,
    /// Generated ConfigMaps and Secrets whose content changed, when that is among the reasons.
    pub because: Vec<Text>,
}

/// Kinds that roll new pods out by themselves when the template changes: group, kind, path of the template.
const ROLLING: &[(&str, &str, &str)] = &[
    ("apps", "DaemonSet", "spec.template"),
    ("apps", "Deployment", "spec.template"),
    ("apps", "StatefulSet", "spec.template"),
    ("apps.kruise.io", "CloneSet", "spec.template"),
    ("apps.kruise.io", "DaemonSet", "spec.template"),
    ("apps.kruise.io", "StatefulSet", "spec.template"),
    ("apps.openshift.io", "DeploymentConfig", "spec.template"),
    ("argoproj.io", "Rollout", "spec.template"),
    ("extensions", "DaemonSet", "spec.template"),
    ("extensions", "Deployment", "spec.template"),
    ("portolan.dev", "IstioCanaryDeployment", "spec.template"),
];

/// Where a kind that replaces its pods keeps their template.
pub(crate) fn template_path(gvk: &Gvk) -> Option<&'static str> {
    let row = ROLLING.iter().find(|(group, kind, _)| gvk.is(group, kind));
    row.map(|(_, _, path)| *path)
}

/// Marks the fields that replace pods; nothing is replaced while the workload is paused or waits for deletion of pods.
pub(crate) fn mark(new: &Object, fields: &mut [Field]) {
    let Some(template) = template_path(new.gvk()) else {
        return;
    };
    if is_held(new) {
        return;
    }
    for field in fields {
        field.restarts = field.path.is_under(template);
    }
}

fn is_held(object: &Object) -> bool {
    let text = |path: &[&str]| object.node().at_path(path).and_then(Node::as_str);
    let is_paused = object
        .node()
        .at_path(&["spec", "paused"])
        .and_then(Node::as_bool);
    text(&["spec", "updateStrategy", "type"]) == Some("OnDelete") || is_paused == Some(true)
}

impl Restart {
    /// Whether the new pods are tried out beside the old ones before they replace them.
    pub fn is_canary(&self) -> bool {
        self.id.gvk.is("portolan.dev", "IstioCanaryDeployment")
    }
}

/// What the marked fields of a workload say, if any replaces its pods.
pub(crate) fn restart(new: &Object, owner: &Owner, fields: &[Field]) -> Option<Restart> {
    let causes: Vec<&Field> = fields.iter().filter(|field| field.restarts).collect();
    let pods = pods(new);
    if causes.is_empty() || pods == Some(0) {
        return None;
    }
    let mut because: Vec<Text> = causes
        .iter()
        .filter_map(|field| field.follows.clone())
        .collect();
    because.sort();
    because.dedup();
    Some(Restart {
        id: new.id().clone(),
        owner: owner.clone(),
        pods,
        because,
    })
}

/// How many pods a workload asks for; Kubernetes makes it one when nothing is said, and a `DaemonSet` has one per node.
fn pods(object: &Object) -> Option<i64> {
    if object.kind() == "DaemonSet" {
        return None;
    }
    let replicas = object.node().at_path(&["spec", "replicas"]);
    replicas.map_or(Some(1), Node::as_i64)
}
