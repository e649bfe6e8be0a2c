//! The order of the output: kept as accumulated (`fifo`), or sorted by kind (`legacy`).

use portolan_yaml::Text;

use crate::resource::Resource;
use crate::resource::id::{Gvk, ResourceId};
use crate::resource::set::ResourceSet;
use crate::schema::Schema;

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
    set: &mut ResourceSet,
    first: &[T],
    last: &[T],
    schema: &Schema,
) -> crate::error::Result<()> {
    set.check_unique(schema)?;
    let resources = set.resources_mut();
    let least = resources
        .iter()
        .map(Resource::gvk)
        .filter(is_other_namespace)
        .map(|gvk| type_key(&gvk))
        .min();
    resources.sort_by_cached_key(|resource| {
        let mut key = SortKey::new(&resource.id(), first, last);
        if let Some(least) = least
            .as_ref()
            .filter(|_| is_core_namespace(&resource.gvk()))
        {
            key.kind.clone_from(least);
        }
        key
    });
    Ok(())
}

/// What the place of a resource depends on, the weightiest first.
///
/// The core Namespace comes before kinds of other groups that are called the same. kustomize says so to its sort for
/// each pair of them, which makes circles when the lists do not name the kind; here it stands right before the first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    rank: i32,
    kind: String,
    is_other_namespace: bool,
    name: String,
}

impl SortKey {
    fn new<T: AsRef<str>>(id: &ResourceId, first: &[T], last: &[T]) -> Self {
        Self {
            rank: rank_in(&id.gvk.kind, first, last),
            kind: type_key(&id.gvk),
            is_other_namespace: is_other_namespace(&id.gvk),
            name: name_key(id),
        }
    }
}

fn is_core_namespace(gvk: &Gvk) -> bool {
    gvk.kind.as_str() == "Namespace" && gvk.group.is_empty()
}

fn is_other_namespace(gvk: &Gvk) -> bool {
    gvk.kind.as_str() == "Namespace" && !gvk.group.is_empty()
}

/// Group, version and kind.
fn type_key(gvk: &Gvk) -> String {
    let part = |text: &Text, none: &'static str| match text.as_str() {
        "" => none.to_owned(),
        text => text.to_owned(),
    };
    format!(
        "{}_{}_{}",
        part(&gvk.group, "~G"),
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
