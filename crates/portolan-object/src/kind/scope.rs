//! Whether a kind's objects live in namespaces, for the kinds that Kubernetes has or had built in.

use crate::gvk::Gvk;
use crate::kind::served::{Scope, served_scope};

/// Kinds that were gone before the oldest release of the table, as `(group, kind)`. Repositories still hold them, and
/// a wrong namespace on one would make two ids of one object.
const RETIRED_CLUSTER: &[(&str, &str)] = &[
    ("auditregistration.k8s.io", "AuditSink"),
    ("extensions", "PodSecurityPolicy"),
    ("policy", "PodSecurityPolicy"),
];

/// See [`RETIRED_CLUSTER`].
const RETIRED_NAMESPACED: &[(&str, &str)] = &[
    ("extensions", "DaemonSet"),
    ("extensions", "Deployment"),
    ("extensions", "Ingress"),
    ("extensions", "NetworkPolicy"),
    ("extensions", "ReplicaSet"),
    ("settings.k8s.io", "PodPreset"),
];

/// The scope of a built-in kind; `None` for custom kinds, whose definition says it.
///
/// ```
/// use portolan_object::{Gvk, Scope, scope};
///
/// assert_eq!(scope(&Gvk::from_api_version("v1", "Namespace")), Some(Scope::Cluster));
/// assert_eq!(scope(&Gvk::from_api_version("example.com/v1", "Widget")), None);
/// ```
pub fn scope(gvk: &Gvk) -> Option<Scope> {
    let listed = |kinds: &[(&str, &str)]| kinds.iter().any(|(group, kind)| gvk.is(group, kind));
    if let Some(scope) = served_scope(gvk) {
        Some(scope)
    } else if listed(RETIRED_CLUSTER) {
        Some(Scope::Cluster)
    } else {
        listed(RETIRED_NAMESPACED).then_some(Scope::Namespaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(gvk: &str, expected: Option<Scope>) {
        let gvk: Gvk = gvk.parse().expect("a group, version and kind");
        assert_eq!(scope(&gvk), expected, "{gvk}");
    }

    #[test]
    fn built_in_kinds_have_a_scope() {
        check("v1/Namespace", Some(Scope::Cluster));
        check("v1/Secret", Some(Scope::Namespaced));
        check(
            "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
            Some(Scope::Cluster),
        );
        check(
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            Some(Scope::Cluster),
        );
        check("apiregistration.k8s.io/v1/APIService", Some(Scope::Cluster));
    }

    #[test]
    fn gone_versions_keep_the_scope_of_their_kind() {
        check("batch/v1beta1/CronJob", Some(Scope::Namespaced));
        check(
            "rbac.authorization.k8s.io/v1beta1/ClusterRole",
            Some(Scope::Cluster),
        );
        check("policy/v1beta1/PodSecurityPolicy", Some(Scope::Cluster));
        check("extensions/v1beta1/Ingress", Some(Scope::Namespaced));
    }

    #[test]
    fn custom_kinds_have_none_here() {
        check("example.com/v1/Deployment", None);
    }
}
