//! Fields that the API server refuses to change.

use portolan_object::{FieldPath, Gvk, Object, Rule, Severity};
use portolan_yaml::Node;

use super::{Finder, text};
use crate::field::{Difference, Field};

pub(super) static FIELD: Rule = Rule {
    id: "immutable-field",
    severity: Severity::Error,
    summary: "the API server refuses the change, and Flux fails until the object is deleted and made anew",
    help: "Give the object another name, delete it first, or let Flux make it anew with the annotation \
           `kustomize.toolkit.fluxcd.io/force: enabled`; it is gone for a moment then.",
};

pub(super) static SHRUNK: Rule = Rule {
    id: "storage-shrunk",
    severity: Severity::Error,
    summary: "a volume can grow, never shrink; the API server refuses the change",
    help: "Make a new claim of the smaller size and copy the data.",
};

pub(super) static DEFINITION_VERSION: Rule = Rule {
    id: "crd-version-removed",
    severity: Severity::Error,
    summary: "objects of a version that a CustomResourceDefinition no longer serves cannot be read or applied",
    help: "Move every object to a version that is served, and have stored ones migrated, before it goes.",
};

/// What of a kind cannot be changed.
struct Immutable {
    group: &'static str,
    kind: &'static str,
    /// Paths that are refused.
    fields: &'static [&'static str],
    /// Paths below them that are allowed all the same.
    except: &'static [&'static str],
}

const fn kind(
    group: &'static str,
    kind: &'static str,
    fields: &'static [&'static str],
    except: &'static [&'static str],
) -> Immutable {
    Immutable {
        group,
        kind,
        fields,
        except,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// As the validation of Kubernetes 1.34 has it.
const KINDS: &[Immutable] = &[
    kind("apps", "DaemonSet", &["spec.selector"], &[]),
    kind("apps", "Deployment", &["spec.selector"], &[]),
    kind("apps", "ReplicaSet", &["spec.selector"], &[]),
    kind(
        "apps",
        "StatefulSet",
        &["spec"],
        &[
            "spec.minReadySeconds",
            "spec.ordinals",
            "spec.persistentVolumeClaimRetentionPolicy",
            "spec.replicas",
            "spec.revisionHistoryLimit",
            "spec.template",
            "spec.updateStrategy",
        ],
    ),
    kind(
        "batch",
        "Job",
        &[
            "spec.backoffLimitPerIndex",
            "spec.completionMode",
            "spec.completions",
            "spec.managedBy",
            "spec.podFailurePolicy",
            "spec.podReplacementPolicy",
            "spec.selector",
            "spec.successPolicy",
            "spec.template",
        ],
        &[],
    ),
    kind(
        "",
        "PersistentVolumeClaim",
        &["spec"],
        &["spec.resources", "spec.volumeAttributesClassName"],
    ),
    kind(
        "",
        "PersistentVolume",
        &[
            "spec.awsElasticBlockStore",
            "spec.cephfs",
            "spec.csi",
            "spec.fc",
            "spec.hostPath",
            "spec.iscsi",
            "spec.local",
            "spec.nfs",
            "spec.nodeAffinity",
            "spec.rbd",
            "spec.volumeMode",
        ],
        &[],
    ),
    kind(
        "",
        "Pod",
        &["spec"],
        &[
            "spec.activeDeadlineSeconds",
            "spec.containers.image",
            "spec.initContainers.image",
            "spec.tolerations",
        ],
    ),
    kind("", "Secret", &["type"], &[]),
    kind("", "ReplicationController", &[], &[]),
    kind(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &[
            "spec.group",
            "spec.names.kind",
            "spec.names.plural",
            "spec.scope",
        ],
        &[],
    ),
    kind("discovery.k8s.io", "EndpointSlice", &["addressType"], &[]),
    kind(
        "networking.k8s.io",
        "IngressClass",
        &["spec.controller"],
        &[],
    ),
    kind("node.k8s.io", "RuntimeClass", &["handler"], &[]),
    kind(RBAC, "ClusterRoleBinding", &["roleRef"], &[]),
    kind(RBAC, "RoleBinding", &["roleRef"], &[]),
    kind("resource.k8s.io", "ResourceClaim", &["spec"], &[]),
    kind("resource.k8s.io", "ResourceClaimTemplate", &["spec"], &[]),
    kind(
        "scheduling.k8s.io",
        "PriorityClass",
        &["preemptionPolicy", "value"],
        &[],
    ),
    kind(
        "storage.k8s.io",
        "StorageClass",
        &[
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        ],
        &[],
    ),
    kind(
        "storage.k8s.io",
        "VolumeAttributesClass",
        &["driverName", "parameters"],
        &[],
    ),
];

pub(super) fn lint(finder: &mut Finder<'_, '_>) {
    let Some((old, new)) = finder.both() else {
        return;
    };
    if old.object.id().name != new.object.id().name {
        // A generated object under a new name is another object.
        return;
    }
    let (old, new) = (old.object, new.object);
    let mut refused: Vec<FieldPath> = Vec::new();
    for field in &finder.subject.fields {
        if is_refused(old, new, field) {
            refused.push(field.path.clone());
        }
    }
    for path in refused {
        report(finder, new, &path);
    }
    lint_shrunk(finder, old, new);
    lint_versions(finder, old, new);
}

fn report(finder: &mut Finder<'_, '_>, new: &Object, path: &FieldPath) {
    let shown = path.dotted();
    let kind = new.kind();
    let forced = new.annotation("kustomize.toolkit.fluxcd.io/force") == Some("enabled");
    if forced {
        finder
            .report(&FIELD, format!("`{shown}` of a {kind} cannot be changed: Flux deletes the object and makes it anew"))
            .at(path)
            .severity(Severity::Warning);
    } else {
        finder
            .report(&FIELD, format!("`{shown}` of a {kind} cannot be changed: applying it fails"))
            .at(path)
            .hint("give the object another name, delete it first, or let Flux make it anew with the annotation `kustomize.toolkit.fluxcd.io/force: enabled`");
    }
}

fn is_refused(old: &Object, new: &Object, field: &Field) -> bool {
    if field.path.is_under("metadata") || field.path.is_under("apiVersion") {
        return false;
    }
    is_listed(old.gvk(), &field.path)
        || is_frozen(old, &field.path)
        || is_cluster_ip(old, new, field)
}

fn is_listed(gvk: &Gvk, path: &FieldPath) -> bool {
    let row = KINDS.iter().find(|row| gvk.is(row.group, row.kind));
    row.is_some_and(|row| {
        let under = |paths: &[&str]| paths.iter().any(|dotted| path.is_under(dotted));
        under(row.fields) && !under(row.except)
    })
}

/// A ConfigMap or Secret that says so itself.
fn is_frozen(old: &Object, path: &FieldPath) -> bool {
    let is_data = old.gvk().is("", "ConfigMap") || old.gvk().is("", "Secret");
    let frozen = old.node().get("immutable").and_then(Node::as_bool) == Some(true);
    let fields = ["data", "stringData", "binaryData", "immutable"];
    is_data && frozen && fields.iter().any(|field| path.is_under(field))
}

/// A Service keeps its address, unless it becomes one without.
fn is_cluster_ip(old: &Object, new: &Object, field: &Field) -> bool {
    let is_external =
        |object: &Object| text(object.node(), &["spec", "type"]) == Some("ExternalName");
    let is_address =
        field.path.is_under("spec.clusterIP") || field.path.is_under("spec.clusterIPs");
    old.gvk().is("", "Service")
        && is_address
        && !is_external(old)
        && !is_external(new)
        && matches!(field.difference, Difference::Changed(..))
}

fn lint_shrunk(finder: &mut Finder<'_, '_>, old: &Object, new: &Object) {
    if !old.gvk().is("", "PersistentVolumeClaim") {
        return;
    }
    let size = |object: &Object| {
        let node = object
            .node()
            .at_path(&["spec", "resources", "requests", "storage"])?;
        quantity(&node.as_scalar()?.text)
    };
    if let (Some(before), Some(after)) = (size(old), size(new))
        && after < before
    {
        let path = FieldPath::parse("spec.resources.requests.storage");
        finder
            .report(&SHRUNK, "a volume cannot shrink: applying it fails")
            .at(&path)
            .hint("make a new claim of the smaller size and copy the data");
    }
}

/// A quantity as bytes, near enough to compare two.
fn quantity(text: &str) -> Option<f64> {
    let split = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let factor = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

fn lint_versions(finder: &mut Finder<'_, '_>, old: &Object, new: &Object) {
    let after = served_versions(new);
    for version in served_versions(old) {
        if !after.contains(&version) {
            finder
                .report(&DEFINITION_VERSION, format!("version `{version}` is no longer served: objects that use it cannot be applied"))
                .hint("move every object to a version that is served, and have stored ones migrated, before it goes");
        }
    }
}

fn served_versions(object: &Object) -> Vec<String> {
    let kinds = portolan_object::defined_kinds(object.node());
    kinds
        .into_iter()
        .map(|kind| kind.gvk.version.to_string())
        .collect()
}
