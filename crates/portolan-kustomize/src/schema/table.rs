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

/// Where each definition starts, sorted by name.
pub(super) static DEFINITIONS: &[(&str, u16)] = &[
    ("io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration", 0),
    ("io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration", 5),
    ("io.k8s.api.admissionregistration.v1beta1.MutatingWebhookConfiguration", 7),
    ("io.k8s.api.admissionregistration.v1beta1.ValidatingWebhookConfiguration", 9),
    ("io.k8s.api.apps.v1.ControllerRevision", 11),
    ("io.k8s.api.apps.v1.DaemonSet", 12),
    ("io.k8s.api.apps.v1.DaemonSetSpec", 13),
    ("io.k8s.api.apps.v1.DaemonSetStatus", 35),
    ("io.k8s.api.apps.v1.Deployment", 37),
    ("io.k8s.api.apps.v1.DeploymentSpec", 38),
    ("io.k8s.api.apps.v1.DeploymentStatus", 39),
    ("io.k8s.api.apps.v1.ReplicaSet", 41),
    ("io.k8s.api.apps.v1.ReplicaSetSpec", 42),
    ("io.k8s.api.apps.v1.ReplicaSetStatus", 43),
    ("io.k8s.api.apps.v1.StatefulSet", 45),
    ("io.k8s.api.apps.v1.StatefulSetSpec", 46),
    ("io.k8s.api.apps.v1.StatefulSetStatus", 47),
    ("io.k8s.api.authentication.v1.TokenRequest", 49),
    ("io.k8s.api.authentication.v1.TokenReview", 50),
    ("io.k8s.api.authentication.v1beta1.TokenReview", 51),
    ("io.k8s.api.authorization.v1.LocalSubjectAccessReview", 52),
    ("io.k8s.api.authorization.v1.SelfSubjectAccessReview", 53),
    ("io.k8s.api.authorization.v1.SelfSubjectRulesReview", 54),
    ("io.k8s.api.authorization.v1.SubjectAccessReview", 55),
    ("io.k8s.api.authorization.v1beta1.LocalSubjectAccessReview", 56),
    ("io.k8s.api.authorization.v1beta1.SelfSubjectAccessReview", 57),
    ("io.k8s.api.authorization.v1beta1.SelfSubjectRulesReview", 58),
    ("io.k8s.api.authorization.v1beta1.SubjectAccessReview", 59),
    ("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", 60),
    ("io.k8s.api.autoscaling.v1.Scale", 61),
    ("io.k8s.api.autoscaling.v2beta1.HorizontalPodAutoscaler", 62),
    ("io.k8s.api.autoscaling.v2beta2.HorizontalPodAutoscaler", 63),
    ("io.k8s.api.batch.v1.CronJob", 64),
    ("io.k8s.api.batch.v1.CronJobSpec", 65),
    ("io.k8s.api.batch.v1.Job", 68),
    ("io.k8s.api.batch.v1.JobSpec", 67),
    ("io.k8s.api.batch.v1.JobStatus", 69),
    ("io.k8s.api.batch.v1.JobTemplateSpec", 66),
    ("io.k8s.api.batch.v1beta1.CronJob", 71),
    ("io.k8s.api.batch.v1beta1.CronJobSpec", 72),
    ("io.k8s.api.batch.v1beta1.JobTemplateSpec", 73),
    ("io.k8s.api.certificates.v1.CertificateSigningRequest", 74),
    ("io.k8s.api.certificates.v1beta1.CertificateSigningRequest", 75),
    ("io.k8s.api.coordination.v1.Lease", 76),
    ("io.k8s.api.coordination.v1beta1.Lease", 77),
    ("io.k8s.api.core.v1.Binding", 78),
    ("io.k8s.api.core.v1.ComponentStatus", 79),
    ("io.k8s.api.core.v1.ConfigMap", 81),
    ("io.k8s.api.core.v1.Container", 17),
    ("io.k8s.api.core.v1.Endpoints", 82),
    ("io.k8s.api.core.v1.EphemeralContainer", 23),
    ("io.k8s.api.core.v1.EphemeralVolumeSource", 33),
    ("io.k8s.api.core.v1.Event", 83),
    ("io.k8s.api.core.v1.LimitRange", 84),
    ("io.k8s.api.core.v1.Namespace", 85),
    ("io.k8s.api.core.v1.NamespaceStatus", 86),
    ("io.k8s.api.core.v1.Node", 88),
    ("io.k8s.api.core.v1.NodeSpec", 89),
    ("io.k8s.api.core.v1.NodeStatus", 91),
    ("io.k8s.api.core.v1.PersistentVolume", 94),
    ("io.k8s.api.core.v1.PersistentVolumeClaim", 95),
    ("io.k8s.api.core.v1.PersistentVolumeClaimStatus", 96),
    ("io.k8s.api.core.v1.PersistentVolumeClaimTemplate", 34),
    ("io.k8s.api.core.v1.Pod", 98),
    ("io.k8s.api.core.v1.PodSpec", 15),
    ("io.k8s.api.core.v1.PodStatus", 99),
    ("io.k8s.api.core.v1.PodTemplate", 102),
    ("io.k8s.api.core.v1.PodTemplateSpec", 14),
    ("io.k8s.api.core.v1.ReplicationController", 103),
    ("io.k8s.api.core.v1.ReplicationControllerSpec", 104),
    ("io.k8s.api.core.v1.ReplicationControllerStatus", 105),
    ("io.k8s.api.core.v1.ResourceQuota", 107),
    ("io.k8s.api.core.v1.Secret", 108),
    ("io.k8s.api.core.v1.Service", 109),
    ("io.k8s.api.core.v1.ServiceAccount", 114),
    ("io.k8s.api.core.v1.ServiceSpec", 110),
    ("io.k8s.api.core.v1.ServiceStatus", 112),
    ("io.k8s.api.core.v1.Volume", 32),
    ("io.k8s.api.discovery.v1.EndpointSlice", 116),
    ("io.k8s.api.discovery.v1beta1.EndpointSlice", 117),
    ("io.k8s.api.events.v1.Event", 118),
    ("io.k8s.api.events.v1beta1.Event", 119),
    ("io.k8s.api.extensions.v1beta1.Ingress", 120),
    ("io.k8s.api.flowcontrol.v1beta1.FlowSchema", 121),
    ("io.k8s.api.flowcontrol.v1beta1.PriorityLevelConfiguration", 122),
    ("io.k8s.api.networking.v1.Ingress", 123),
    ("io.k8s.api.networking.v1.IngressClass", 124),
    ("io.k8s.api.networking.v1.NetworkPolicy", 125),
    ("io.k8s.api.networking.v1beta1.Ingress", 126),
    ("io.k8s.api.networking.v1beta1.IngressClass", 127),
    ("io.k8s.api.node.v1.RuntimeClass", 128),
    ("io.k8s.api.node.v1beta1.RuntimeClass", 129),
    ("io.k8s.api.policy.v1.PodDisruptionBudget", 130),
    ("io.k8s.api.policy.v1.PodDisruptionBudgetStatus", 131),
    ("io.k8s.api.policy.v1beta1.Eviction", 133),
    ("io.k8s.api.policy.v1beta1.PodDisruptionBudget", 134),
    ("io.k8s.api.policy.v1beta1.PodDisruptionBudgetStatus", 135),
    ("io.k8s.api.policy.v1beta1.PodSecurityPolicy", 137),
    ("io.k8s.api.rbac.v1.ClusterRole", 138),
    ("io.k8s.api.rbac.v1.ClusterRoleBinding", 139),
    ("io.k8s.api.rbac.v1.Role", 140),
    ("io.k8s.api.rbac.v1.RoleBinding", 141),
    ("io.k8s.api.rbac.v1beta1.ClusterRole", 142),
    ("io.k8s.api.rbac.v1beta1.ClusterRoleBinding", 143),
    ("io.k8s.api.rbac.v1beta1.Role", 144),
    ("io.k8s.api.rbac.v1beta1.RoleBinding", 145),
    ("io.k8s.api.scheduling.v1.PriorityClass", 146),
    ("io.k8s.api.scheduling.v1beta1.PriorityClass", 147),
    ("io.k8s.api.storage.v1.CSIDriver", 148),
    ("io.k8s.api.storage.v1.CSINode", 149),
    ("io.k8s.api.storage.v1.CSINodeSpec", 150),
    ("io.k8s.api.storage.v1.StorageClass", 152),
    ("io.k8s.api.storage.v1.VolumeAttachment", 153),
    ("io.k8s.api.storage.v1beta1.CSIDriver", 154),
    ("io.k8s.api.storage.v1beta1.CSINode", 155),
    ("io.k8s.api.storage.v1beta1.CSINodeSpec", 156),
    ("io.k8s.api.storage.v1beta1.CSIStorageCapacity", 158),
    ("io.k8s.api.storage.v1beta1.StorageClass", 159),
    ("io.k8s.api.storage.v1beta1.VolumeAttachment", 160),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", 161),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition", 162),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", 1),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService", 163),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceStatus", 164),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1beta1.APIService", 166),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1beta1.APIServiceStatus", 167),
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
