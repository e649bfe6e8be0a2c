//! The order of the output: kept as accumulated (`fifo`), or sorted by kind (`legacy`).

use portolan_yaml::Text;

use crate::id::{Gvk, ResourceId};
use crate::schema::Schema;
use crate::set::ResourceSet;

/// Kinds that come first, so that what they need exists before them.
pub(crate) const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// Kinds that come last.
pub(crate) const LAST: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Where a kind stands: negative first, zero in the middle, positive last.
pub(crate) fn rank(kind: &str) -> i32 {
    rank_in(kind, &FIRST, &LAST)
}

fn rank_in<T: AsRef<str>>(kind: &str, first: &[T], last: &[T]) -> i32 {
    let find = |list: &[T]| list.iter().rposition(|known| known.as_ref() == kind);
    match (find(first), find(last)) {
        (_, Some(index)) => 1 + index as i32,
        (Some(index), None) => index as i32 - first.len() as i32,
        (None, None) => 0,
    }
}

/// Sorts by kind, then type, namespace and name.
pub(crate) fn sort_legacy<T: AsRef<str>>(
    set: ResourceSet,
    first: &[T],
    last: &[T],
    schema: &Schema,
) -> crate::error::Result<ResourceSet> {
    let mut keyed: Vec<_> = set
        .into_resources()
        .into_iter()
        .map(|resource| {
            let id = resource.id();
            (
                (
                    rank_in(&id.gvk.kind, first, last),
                    type_key(&id.gvk),
                    name_key(&id),
                ),
                resource,
            )
        })
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    let mut sorted = ResourceSet::default();
    for (_, resource) in keyed {
        sorted.append(resource, schema)?;
    }
    Ok(sorted)
}

/// Group, version and kind. The core Namespace comes before kinds of other groups that are called the same.
fn type_key(gvk: &Gvk) -> String {
    let part = |text: &Text, none: &'static str| match text.as_str() {
        "" => none.to_owned(),
        text => text.to_owned(),
    };
    let is_core_namespace = gvk.kind.as_str() == "Namespace" && gvk.group.is_empty();
    let group = if is_core_namespace {
        String::new()
    } else {
        part(&gvk.group, "~G")
    };
    format!(
        "{group}_{}_{}",
        part(&gvk.version, "~V"),
        part(&gvk.kind, "~K")
    )
}

fn name_key(id: &ResourceId) -> String {
    let part = |text: &Text, none: &'static str| {
        if text.is_empty() {
            none.to_owned()
        } else {
            text.to_string()
        }
    };
    format!(
        "{}|{}|{}",
        id.gvk,
        part(&id.namespace, "~X"),
        part(&id.name, "~N")
    )
}
