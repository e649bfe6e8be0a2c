//! Objects that must be read whole: they name other APIs, which their metadata does not show.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use portolan_audit::{Checker, Evidence, Finding, Site};
use portolan_cluster::{ManagedBy, Metadata, Resource};
use portolan_yaml::Node;
use serde_json::Value;

use super::written;

/// What the control plane makes for itself, and changes with its release.
const BOOTSTRAPPED: &str = "kubernetes.io/bootstrapping";

/// How much of a resource's objects is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Metadata are enough.
    Metadata,
    /// The whole objects, in pages.
    Whole,
    /// The whole objects, one at a time: definitions can be large.
    OneByOne,
}

/// How much of a resource's objects has to be read.
pub(crate) fn reading(resource: &Resource) -> Reading {
    match resource.kind.as_str() {
        "CustomResourceDefinition" => Reading::OneByOne,
        kind if Checker::reads_contents(kind) => Reading::Whole,
        _ => Reading::Metadata,
    }
}

/// An object's metadata, and what is wrong with all of it.
pub(super) fn check(
    checker: &Checker,
    resource: &Resource,
    mut object: Value,
) -> (Metadata, Vec<Finding>) {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let metadata: Metadata = serde_json::from_value(metadata).unwrap_or_default();
    let mut findings = written::check(checker, resource, &metadata);
    if !metadata.labels.contains_key(BOOTSTRAPPED) {
        // The objects of a list do not say what they are.
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), resource.api_version.clone().into());
            map.insert("kind".to_owned(), resource.kind.clone().into());
        }
        findings.extend(inside(checker, resource, &object));
    }
    (metadata, findings)
}

/// What the object says of other APIs. In which version we read it ourselves says nothing.
fn inside(checker: &Checker, resource: &Resource, object: &Value) -> Vec<Finding> {
    let site = Site {
        evidence: vec![Evidence::Live {
            api_version: resource.api_version.clone(),
        }],
        ..Site::default()
    };
    let node: Option<Node> = portolan_yaml::from_json(&object.to_string()).ok();
    let findings = node.map_or_else(Vec::new, |node| checker.check(&node, &site));
    findings
        .into_iter()
        .filter(|finding| finding.path.is_some())
        .collect()
}

/// Changes when the contents may have changed.
///
/// An autoscaler's status changes every few seconds, which would mean to read it as often. Its managers tell when the
/// status was written and when the rest, to the second: what is not clearly the status alone counts as all of it.
pub(crate) fn stamp(resource: &Resource, metadata: &Metadata) -> u64 {
    let is_autoscaler = resource.kind.ends_with("Autoscaler") || resource.kind == "ScaledObject";
    let (status, rest): (Vec<&ManagedBy>, Vec<&ManagedBy>) = metadata
        .managed_fields
        .iter()
        .partition(|entry| entry.subresource == "status");
    let newest = |entries: &[&ManagedBy]| entries.iter().map(|entry| entry.time.clone()).max();
    let mut hasher = DefaultHasher::new();
    if is_autoscaler && newest(&status) > newest(&rest) {
        (metadata.generation, rest).hash(&mut hasher);
    } else {
        metadata.resource_version.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(api_version: &str, kind: &str) -> Resource {
        Resource {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: format!("{}s", kind.to_lowercase()),
            namespaced: true,
            watchable: true,
        }
    }

    #[test]
    fn a_role_that_names_a_group_no_longer_served_is_found_unless_the_server_made_it() {
        let roles = resource("rbac.authorization.k8s.io/v1", "ClusterRole");
        let role = |labels: Value| {
            json!({
                "metadata": {"name": "web", "labels": labels},
                "rules": [{"apiGroups": ["extensions"], "resources": ["ingresses"], "verbs": ["get"]}],
            })
        };
        let (metadata, findings) = check(&Checker::default(), &roles, role(json!({})));
        assert_eq!(metadata.name, "web");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path.as_deref(), Some("rules"));
        let own = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        assert!(check(&Checker::default(), &roles, role(own)).1.is_empty());
    }

    #[test]
    fn an_autoscalers_status_does_not_change_its_stamp() {
        let autoscalers = resource("autoscaling/v2", "HorizontalPodAutoscaler");
        let entry = |subresource: &str, time: &str| ManagedBy {
            subresource: subresource.to_owned(),
            time: time.to_owned(),
            ..ManagedBy::default()
        };
        let metadata = |rest: &str, status: &str, resource_version: &str| Metadata {
            resource_version: resource_version.to_owned(),
            managed_fields: vec![entry("", rest), entry("status", status)],
            ..Metadata::default()
        };
        let stamp = |rest: &str, status: &str, resource_version: &str| {
            stamp(&autoscalers, &metadata(rest, status, resource_version))
        };
        assert_eq!(stamp("1", "2", "a"), stamp("1", "3", "b"));
        assert_ne!(stamp("1", "3", "b"), stamp("3", "3", "c"));
        // Within one second nobody can tell.
        assert_ne!(stamp("3", "3", "c"), stamp("3", "3", "d"));
    }
}
