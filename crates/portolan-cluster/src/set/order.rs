//! The order in which kinds are applied: first what other objects live in or need, last what calls other objects.

use serde_json::Value;

/// Kinds that come before all others.
const FIRST: [&str; 20] = [
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "RuntimeClass",
    "IngressClass",
    "ResourceQuota",
    "LimitRange",
    "NetworkPolicy",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
    "PodDisruptionBudget",
];

/// Kinds that come after all others: they name them, or are called for every change.
const LAST: [&str; 5] = [
    "HorizontalPodAutoscaler",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Sorts objects by kind; those of one place in the order stay as they were given.
pub(super) fn for_apply(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| place(object["kind"].as_str().unwrap_or_default()));
    objects
}

/// The place of a kind in the order.
pub(super) fn place(kind: &str) -> usize {
    let position = |kinds: &[&str]| kinds.iter().position(|known| *known == kind);
    let last = position(&LAST).map(|place| FIRST.len() + 1 + place);
    position(&FIRST).or(last).unwrap_or(FIRST.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_come_first_and_webhooks_last() {
        let given = [
            "ValidatingWebhookConfiguration",
            "Deployment",
            "Widget",
            "Service",
            "CustomResourceDefinition",
            "Namespace",
        ];
        let objects = given.map(|kind| json!({"kind": kind})).to_vec();
        let sorted = for_apply(objects);
        let kinds: Vec<_> = sorted
            .iter()
            .map(|object| object["kind"].as_str())
            .collect();
        let expected = [
            "Namespace",
            "CustomResourceDefinition",
            "Service",
            "Deployment",
            "Widget",
            "ValidatingWebhookConfiguration",
        ];
        assert_eq!(kinds, expected.map(Some));
    }
}
