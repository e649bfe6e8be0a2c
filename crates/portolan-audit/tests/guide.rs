//! The table against the official deprecated-API migration guide, row by row.

use portolan_audit::{Release, Table};

/// Every removal that the guide lists: the release, the API version, the kinds.
const GUIDE: &[(&str, &str, &[&str])] = &[
    (
        "1.32",
        "flowcontrol.apiserver.k8s.io/v1beta3",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    (
        "1.29",
        "flowcontrol.apiserver.k8s.io/v1beta2",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    ("1.27", "storage.k8s.io/v1beta1", &["CSIStorageCapacity"]),
    (
        "1.26",
        "flowcontrol.apiserver.k8s.io/v1beta1",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    ("1.26", "autoscaling/v2beta2", &["HorizontalPodAutoscaler"]),
    ("1.25", "batch/v1beta1", &["CronJob"]),
    ("1.25", "discovery.k8s.io/v1beta1", &["EndpointSlice"]),
    ("1.25", "events.k8s.io/v1beta1", &["Event"]),
    ("1.25", "autoscaling/v2beta1", &["HorizontalPodAutoscaler"]),
    (
        "1.25",
        "policy/v1beta1",
        &["PodDisruptionBudget", "PodSecurityPolicy"],
    ),
    ("1.25", "node.k8s.io/v1beta1", &["RuntimeClass"]),
    (
        "1.22",
        "admissionregistration.k8s.io/v1beta1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ],
    ),
    (
        "1.22",
        "apiextensions.k8s.io/v1beta1",
        &["CustomResourceDefinition"],
    ),
    ("1.22", "apiregistration.k8s.io/v1beta1", &["APIService"]),
    ("1.22", "authentication.k8s.io/v1beta1", &["TokenReview"]),
    (
        "1.22",
        "authorization.k8s.io/v1beta1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SubjectAccessReview",
            "SelfSubjectRulesReview",
        ],
    ),
    (
        "1.22",
        "certificates.k8s.io/v1beta1",
        &["CertificateSigningRequest"],
    ),
    ("1.22", "coordination.k8s.io/v1beta1", &["Lease"]),
    ("1.22", "extensions/v1beta1", &["Ingress"]),
    (
        "1.22",
        "networking.k8s.io/v1beta1",
        &["Ingress", "IngressClass"],
    ),
    (
        "1.22",
        "rbac.authorization.k8s.io/v1beta1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    ("1.22", "scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (
        "1.22",
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
    (
        "1.16",
        "extensions/v1beta1",
        &[
            "NetworkPolicy",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "PodSecurityPolicy",
        ],
    ),
    (
        "1.16",
        "apps/v1beta1",
        &["Deployment", "StatefulSet", "ReplicaSet"],
    ),
    (
        "1.16",
        "apps/v1beta2",
        &["DaemonSet", "Deployment", "StatefulSet", "ReplicaSet"],
    ),
];

#[test]
fn the_table_agrees_with_all_fifty_rows_of_the_official_guide() {
    let table = Table::default();
    let mut rows = 0;
    for (removed, api_version, kinds) in GUIDE {
        let (group, version) = api_version.split_once('/').unwrap();
        for kind in *kinds {
            let row = table
                .get(group, version, kind)
                .unwrap_or_else(|| panic!("{api_version} {kind} is missing"));
            let removed: Release = removed.parse().unwrap();
            assert_eq!(row.removed, Some(removed), "{api_version} {kind}");
            rows += 1;
        }
    }
    assert_eq!(rows, 50);
}

#[test]
fn beta_apis_that_went_after_the_guide_was_last_written_are_known() {
    let table = Table::default();
    for (api_version, kind, removed) in [
        ("authentication.k8s.io/v1beta1", "SelfSubjectReview", "1.33"),
        (
            "admissionregistration.k8s.io/v1beta1",
            "ValidatingAdmissionPolicy",
            "1.34",
        ),
        (
            "admissionregistration.k8s.io/v1beta1",
            "ValidatingAdmissionPolicyBinding",
            "1.34",
        ),
        ("networking.k8s.io/v1beta1", "IPAddress", "1.37"),
        ("networking.k8s.io/v1beta1", "ServiceCIDR", "1.37"),
        ("storage.k8s.io/v1beta1", "VolumeAttributesClass", "1.37"),
    ] {
        let (group, version) = api_version.split_once('/').unwrap();
        let row = table.get(group, version, kind).unwrap();
        assert_eq!(
            row.removed,
            Some(removed.parse().unwrap()),
            "{api_version} {kind}"
        );
    }
}
