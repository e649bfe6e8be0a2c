//! The schema as static tables. Written by `cargo xtask gen` from `data/schema.txt`; do not edit.

use super::builtin::{Kind, Shape};

/// Every node, by number.
pub(super) static SHAPES: &[Shape] = &[
    Shape::Object(&[
        ("metadata", 1),
        ("webhooks", 4),
    ]),
    Shape::Object(&[
        ("finalizers", 2),
        ("ownerReferences", 3),
    ]),
    Shape::List(&[], None),
    Shape::List(&["uid"], None),
    Shape::List(&["name"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("webhooks", 6),
    ]),
    Shape::List(&["name"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("webhooks", 8),
    ]),
    Shape::List(&["name"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("webhooks", 10),
    ]),
    Shape::List(&["name"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 13),
        ("status", 35),
    ]),
    Shape::Object(&[
        ("template", 14),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 15),
    ]),
    Shape::Object(&[
        ("containers", 16),
        ("ephemeralContainers", 22),
        ("hostAliases", 27),
        ("imagePullSecrets", 28),
        ("initContainers", 29),
        ("topologySpreadConstraints", 30),
        ("volumes", 31),
    ]),
    Shape::List(&["name"], Some(17)),
    Shape::Object(&[
        ("env", 18),
        ("ports", 19),
        ("volumeDevices", 20),
        ("volumeMounts", 21),
    ]),
    Shape::List(&["name"], None),
    Shape::List(&["containerPort", "protocol"], None),
    Shape::List(&["devicePath"], None),
    Shape::List(&["mountPath"], None),
    Shape::List(&["name"], Some(23)),
    Shape::Object(&[
        ("env", 24),
        ("volumeDevices", 25),
        ("volumeMounts", 26),
    ]),
    Shape::List(&["name"], None),
    Shape::List(&["devicePath"], None),
    Shape::List(&["mountPath"], None),
    Shape::List(&["ip"], None),
    Shape::List(&["name"], None),
    Shape::List(&["name"], Some(17)),
    Shape::List(&["topologyKey", "whenUnsatisfiable"], None),
    Shape::List(&["name"], Some(32)),
    Shape::Object(&[
        ("ephemeral", 33),
    ]),
    Shape::Object(&[
        ("volumeClaimTemplate", 34),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("conditions", 36),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 38),
        ("status", 39),
    ]),
    Shape::Object(&[
        ("template", 14),
    ]),
    Shape::Object(&[
        ("conditions", 40),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 42),
        ("status", 43),
    ]),
    Shape::Object(&[
        ("template", 14),
    ]),
    Shape::Object(&[
        ("conditions", 44),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 46),
        ("status", 47),
    ]),
    Shape::Object(&[
        ("template", 14),
    ]),
    Shape::Object(&[
        ("conditions", 48),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 65),
    ]),
    Shape::Object(&[
        ("jobTemplate", 66),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 67),
    ]),
    Shape::Object(&[
        ("template", 14),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 67),
        ("status", 69),
    ]),
    Shape::Object(&[
        ("conditions", 70),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 72),
    ]),
    Shape::Object(&[
        ("jobTemplate", 73),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 67),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("conditions", 80),
        ("metadata", 1),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("status", 86),
    ]),
    Shape::Object(&[
        ("conditions", 87),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 89),
        ("status", 91),
    ]),
    Shape::Object(&[
        ("podCIDRs", 90),
    ]),
    Shape::List(&[], None),
    Shape::Object(&[
        ("addresses", 92),
        ("conditions", 93),
    ]),
    Shape::List(&["type"], None),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("status", 96),
    ]),
    Shape::Object(&[
        ("conditions", 97),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 15),
        ("status", 99),
    ]),
    Shape::Object(&[
        ("conditions", 100),
        ("podIPs", 101),
    ]),
    Shape::List(&["type"], None),
    Shape::List(&["ip"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("template", 14),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 104),
        ("status", 105),
    ]),
    Shape::Object(&[
        ("template", 14),
    ]),
    Shape::Object(&[
        ("conditions", 106),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 110),
        ("status", 112),
    ]),
    Shape::Object(&[
        ("ports", 111),
    ]),
    Shape::List(&["port", "protocol"], None),
    Shape::Object(&[
        ("conditions", 113),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("secrets", 115),
    ]),
    Shape::List(&["name"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("status", 131),
    ]),
    Shape::Object(&[
        ("conditions", 132),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("status", 135),
    ]),
    Shape::Object(&[
        ("conditions", 136),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 150),
    ]),
    Shape::Object(&[
        ("drivers", 151),
    ]),
    Shape::List(&["name"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("spec", 156),
    ]),
    Shape::Object(&[
        ("drivers", 157),
    ]),
    Shape::List(&["name"], None),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
    ]),
    Shape::Object(&[
        ("metadata", 1),
        ("status", 164),
    ]),
    Shape::Object(&[
        ("conditions", 165),
    ]),
    Shape::List(&["type"], None),
    Shape::Object(&[
        ("metadata", 1),
        ("status", 167),
    ]),
    Shape::Object(&[
        ("conditions", 168),
    ]),
    Shape::List(&["type"], None),
];

/// Where each type starts, sorted by version and kind.
pub(super) static KINDS: &[Kind] = &[
    Kind {
        version: "admissionregistration.k8s.io/v1",
        name: "MutatingWebhookConfiguration",
        node: 0,
    },
    Kind {
        version: "admissionregistration.k8s.io/v1",
        name: "ValidatingWebhookConfiguration",
        node: 5,
    },
    Kind {
        version: "admissionregistration.k8s.io/v1beta1",
        name: "MutatingWebhookConfiguration",
        node: 7,
    },
    Kind {
        version: "admissionregistration.k8s.io/v1beta1",
        name: "ValidatingWebhookConfiguration",
        node: 9,
    },
    Kind {
        version: "apiextensions.k8s.io/v1",
        name: "CustomResourceDefinition",
        node: 161,
    },
    Kind {
        version: "apiextensions.k8s.io/v1beta1",
        name: "CustomResourceDefinition",
        node: 162,
    },
    Kind {
        version: "apiregistration.k8s.io/v1",
        name: "APIService",
        node: 163,
    },
    Kind {
        version: "apiregistration.k8s.io/v1beta1",
        name: "APIService",
        node: 166,
    },
    Kind {
        version: "apps/v1",
        name: "ControllerRevision",
        node: 11,
    },
    Kind {
        version: "apps/v1",
        name: "DaemonSet",
        node: 12,
    },
    Kind {
        version: "apps/v1",
        name: "Deployment",
        node: 37,
    },
    Kind {
        version: "apps/v1",
        name: "ReplicaSet",
        node: 41,
    },
    Kind {
        version: "apps/v1",
        name: "StatefulSet",
        node: 45,
    },
    Kind {
        version: "authentication.k8s.io/v1",
        name: "TokenRequest",
        node: 49,
    },
    Kind {
        version: "authentication.k8s.io/v1",
        name: "TokenReview",
        node: 50,
    },
    Kind {
        version: "authentication.k8s.io/v1beta1",
        name: "TokenReview",
        node: 51,
    },
    Kind {
        version: "authorization.k8s.io/v1",
        name: "LocalSubjectAccessReview",
        node: 52,
    },
    Kind {
        version: "authorization.k8s.io/v1",
        name: "SelfSubjectAccessReview",
        node: 53,
    },
    Kind {
        version: "authorization.k8s.io/v1",
        name: "SelfSubjectRulesReview",
        node: 54,
    },
    Kind {
        version: "authorization.k8s.io/v1",
        name: "SubjectAccessReview",
        node: 55,
    },
    Kind {
        version: "authorization.k8s.io/v1beta1",
        name: "LocalSubjectAccessReview",
        node: 56,
    },
    Kind {
        version: "authorization.k8s.io/v1beta1",
        name: "SelfSubjectAccessReview",
        node: 57,
    },
    Kind {
        version: "authorization.k8s.io/v1beta1",
        name: "SelfSubjectRulesReview",
        node: 58,
    },
    Kind {
        version: "authorization.k8s.io/v1beta1",
        name: "SubjectAccessReview",
        node: 59,
    },
    Kind {
        version: "autoscaling/v1",
        name: "HorizontalPodAutoscaler",
        node: 60,
    },
    Kind {
        version: "autoscaling/v1",
        name: "Scale",
        node: 61,
    },
    Kind {
        version: "autoscaling/v2beta1",
        name: "HorizontalPodAutoscaler",
        node: 62,
    },
    Kind {
        version: "autoscaling/v2beta2",
        name: "HorizontalPodAutoscaler",
        node: 63,
    },
    Kind {
        version: "batch/v1",
        name: "CronJob",
        node: 64,
    },
    Kind {
        version: "batch/v1",
        name: "Job",
        node: 68,
    },
    Kind {
        version: "batch/v1beta1",
        name: "CronJob",
        node: 71,
    },
    Kind {
        version: "certificates.k8s.io/v1",
        name: "CertificateSigningRequest",
        node: 74,
    },
    Kind {
        version: "certificates.k8s.io/v1beta1",
        name: "CertificateSigningRequest",
        node: 75,
    },
    Kind {
        version: "coordination.k8s.io/v1",
        name: "Lease",
        node: 76,
    },
    Kind {
        version: "coordination.k8s.io/v1beta1",
        name: "Lease",
        node: 77,
    },
    Kind {
        version: "discovery.k8s.io/v1",
        name: "EndpointSlice",
        node: 116,
    },
    Kind {
        version: "discovery.k8s.io/v1beta1",
        name: "EndpointSlice",
        node: 117,
    },
    Kind {
        version: "events.k8s.io/v1",
        name: "Event",
        node: 118,
    },
    Kind {
        version: "events.k8s.io/v1beta1",
        name: "Event",
        node: 119,
    },
    Kind {
        version: "extensions/v1beta1",
        name: "Ingress",
        node: 120,
    },
    Kind {
        version: "flowcontrol.apiserver.k8s.io/v1beta1",
        name: "FlowSchema",
        node: 121,
    },
    Kind {
        version: "flowcontrol.apiserver.k8s.io/v1beta1",
        name: "PriorityLevelConfiguration",
        node: 122,
    },
    Kind {
        version: "networking.k8s.io/v1",
        name: "Ingress",
        node: 123,
    },
    Kind {
        version: "networking.k8s.io/v1",
        name: "IngressClass",
        node: 124,
    },
    Kind {
        version: "networking.k8s.io/v1",
        name: "NetworkPolicy",
        node: 125,
    },
    Kind {
        version: "networking.k8s.io/v1beta1",
        name: "Ingress",
        node: 126,
    },
    Kind {
        version: "networking.k8s.io/v1beta1",
        name: "IngressClass",
        node: 127,
    },
    Kind {
        version: "node.k8s.io/v1",
        name: "RuntimeClass",
        node: 128,
    },
    Kind {
        version: "node.k8s.io/v1beta1",
        name: "RuntimeClass",
        node: 129,
    },
    Kind {
        version: "policy/v1",
        name: "PodDisruptionBudget",
        node: 130,
    },
    Kind {
        version: "policy/v1beta1",
        name: "Eviction",
        node: 133,
    },
    Kind {
        version: "policy/v1beta1",
        name: "PodDisruptionBudget",
        node: 134,
    },
    Kind {
        version: "policy/v1beta1",
        name: "PodSecurityPolicy",
        node: 137,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1",
        name: "ClusterRole",
        node: 138,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1",
        name: "ClusterRoleBinding",
        node: 139,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1",
        name: "Role",
        node: 140,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1",
        name: "RoleBinding",
        node: 141,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1beta1",
        name: "ClusterRole",
        node: 142,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1beta1",
        name: "ClusterRoleBinding",
        node: 143,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1beta1",
        name: "Role",
        node: 144,
    },
    Kind {
        version: "rbac.authorization.k8s.io/v1beta1",
        name: "RoleBinding",
        node: 145,
    },
    Kind {
        version: "scheduling.k8s.io/v1",
        name: "PriorityClass",
        node: 146,
    },
    Kind {
        version: "scheduling.k8s.io/v1beta1",
        name: "PriorityClass",
        node: 147,
    },
    Kind {
        version: "storage.k8s.io/v1",
        name: "CSIDriver",
        node: 148,
    },
    Kind {
        version: "storage.k8s.io/v1",
        name: "CSINode",
        node: 149,
    },
    Kind {
        version: "storage.k8s.io/v1",
        name: "StorageClass",
        node: 152,
    },
    Kind {
        version: "storage.k8s.io/v1",
        name: "VolumeAttachment",
        node: 153,
    },
    Kind {
        version: "storage.k8s.io/v1beta1",
        name: "CSIDriver",
        node: 154,
    },
    Kind {
        version: "storage.k8s.io/v1beta1",
        name: "CSINode",
        node: 155,
    },
    Kind {
        version: "storage.k8s.io/v1beta1",
        name: "CSIStorageCapacity",
        node: 158,
    },
    Kind {
        version: "storage.k8s.io/v1beta1",
        name: "StorageClass",
        node: 159,
    },
    Kind {
        version: "storage.k8s.io/v1beta1",
        name: "VolumeAttachment",
        node: 160,
    },
    Kind {
        version: "v1",
        name: "Binding",
        node: 78,
    },
    Kind {
        version: "v1",
        name: "ComponentStatus",
        node: 79,
    },
    Kind {
        version: "v1",
        name: "ConfigMap",
        node: 81,
    },
    Kind {
        version: "v1",
        name: "Endpoints",
        node: 82,
    },
    Kind {
        version: "v1",
        name: "Event",
        node: 83,
    },
    Kind {
        version: "v1",
        name: "LimitRange",
        node: 84,
    },
    Kind {
        version: "v1",
        name: "Namespace",
        node: 85,
    },
    Kind {
        version: "v1",
        name: "Node",
        node: 88,
    },
    Kind {
        version: "v1",
        name: "PersistentVolume",
        node: 94,
    },
    Kind {
        version: "v1",
        name: "PersistentVolumeClaim",
        node: 95,
    },
    Kind {
        version: "v1",
        name: "Pod",
        node: 98,
    },
    Kind {
        version: "v1",
        name: "PodTemplate",
        node: 102,
    },
    Kind {
        version: "v1",
        name: "ReplicationController",
        node: 103,
    },
    Kind {
        version: "v1",
        name: "ResourceQuota",
        node: 107,
    },
    Kind {
        version: "v1",
        name: "Secret",
        node: 108,
    },
    Kind {
        version: "v1",
        name: "Service",
        node: 109,
    },
    Kind {
        version: "v1",
        name: "ServiceAccount",
        node: 114,
    },
];

/// The types without a namespace, sorted.
pub(super) static CLUSTER: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("apiregistration.k8s.io/v1beta1", "APIService"),
    ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration"),
    ("networking.k8s.io/v1", "IngressClass"),
    ("networking.k8s.io/v1beta1", "IngressClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("node.k8s.io/v1beta1", "RuntimeClass"),
    ("policy/v1beta1", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("scheduling.k8s.io/v1beta1", "PriorityClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("storage.k8s.io/v1beta1", "CSIDriver"),
    ("storage.k8s.io/v1beta1", "CSINode"),
    ("storage.k8s.io/v1beta1", "StorageClass"),
    ("storage.k8s.io/v1beta1", "VolumeAttachment"),
    ("v1", "ComponentStatus"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "NodeProxyOptions"),
    ("v1", "PersistentVolume"),
];
