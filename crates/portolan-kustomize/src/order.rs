//! The order of the output: kept as accumulated (`fifo`), or sorted by kind (`legacy`).

use std::cmp::Ordering;

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
    set: &mut ResourceSet,
    first: &[T],
    last: &[T],
    schema: &Schema,
) -> crate::error::Result<()> {
    set.check_unique(schema)?;
    set.resources_mut()
        .sort_by_cached_key(|resource| SortKey::new(&resource.id(), first, last));
    Ok(())
}

/// What the place of a resource depends on.
#[derive(PartialEq, Eq)]
struct SortKey {
    rank: i32,
    kind: String,
    name: String,
    namespace_kind: Option<NamespaceKind>,
}

/// A kind that is called `Namespace`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamespaceKind {
    Core,
    Other,
}

impl SortKey {
    fn new<T: AsRef<str>>(id: &ResourceId, first: &[T], last: &[T]) -> Self {
        let namespace_kind = match id.gvk.group.as_str() {
            _ if id.gvk.kind.as_str() != "Namespace" => None,
            "" => Some(NamespaceKind::Core),
            _ => Some(NamespaceKind::Other),
        };
        Self {
            rank: rank_in(&id.gvk.kind, first, last),
            kind: type_key(&id.gvk),
            name: name_key(id),
            namespace_kind,
        }
    }
}

impl Ord for SortKey {
    /// By rank, type and name; the core Namespace comes before kinds of other groups that are called the same.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_type = match (self.namespace_kind, other.namespace_kind) {
            (Some(a), Some(b)) if a != b => other.kind.cmp(&self.kind),
            _ => self.kind.cmp(&other.kind),
        };
        self.rank
            .cmp(&other.rank)
            .then(by_type)
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
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
