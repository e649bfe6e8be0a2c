//! Who wrote a live object and in which API version, read from its metadata alone.

use std::collections::BTreeMap;

use portolan_audit::{Checker, Evidence, Finding, Site, Subject};
use portolan_cluster::{ManagedBy, Metadata, Resource};
use serde::Deserialize;

/// Annotations in which tools keep what they last applied.
const LAST_APPLIED: [&str; 2] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "config.kubernetes.io/last-applied-configuration",
];

/// Writers that come with the release of Kubernetes they run in: what they write in an old version changes when they do,
/// and nobody else can change it.
const CONTROL_PLANE: [&str; 5] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "cloud-controller-manager",
];

/// Who wrote a live object, and in which API version: the newest entry of each manager, and what was last applied.
pub(crate) fn check(checker: &Checker, resource: &Resource, metadata: &Metadata) -> Vec<Finding> {
    let finding = |(api_version, evidence): (String, Evidence)| {
        let subject = Subject {
            api_version,
            kind: resource.kind.clone(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        };
        let site = Site {
            evidence: vec![evidence],
            ..Site::default()
        };
        checker.check_api(subject, &site)
    };
    written(metadata)
        .into_iter()
        .chain(last_applied(metadata))
        .filter_map(finding)
        .collect()
}

/// The API version that each manager wrote in last. A manager's older entries say what it once did.
fn written(metadata: &Metadata) -> Vec<(String, Evidence)> {
    let mut newest: BTreeMap<(&str, &str), &ManagedBy> = BTreeMap::new();
    for entry in &metadata.managed_fields {
        let key = (entry.manager.as_str(), entry.subresource.as_str());
        let older = newest
            .get(&key)
            .is_some_and(|known| known.time > entry.time);
        if !older && !CONTROL_PLANE.contains(&key.0) {
            newest.insert(key, entry);
        }
    }
    let evidence = |entry: &ManagedBy| Evidence::ManagedFields {
        manager: entry.manager.clone(),
        operation: entry.operation.clone(),
        time: entry.time.clone(),
        api_version: entry.api_version.clone(),
    };
    newest
        .into_values()
        .map(|entry| (entry.api_version.clone(), evidence(entry)))
        .collect()
}

fn last_applied(metadata: &Metadata) -> Vec<(String, Evidence)> {
    let said = |annotation: &str| {
        let api_version = api_version(metadata.annotations.get(annotation)?)?;
        let evidence = Evidence::LastApplied {
            annotation: annotation.to_owned(),
            api_version: api_version.clone(),
        };
        Some((api_version, evidence))
    };
    LAST_APPLIED.into_iter().filter_map(said).collect()
}

/// The API version that a manifest says.
fn api_version(manifest: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        api_version: String,
    }
    let head: Head = serde_json::from_str(manifest).ok()?;
    Some(head.api_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_entry_of_a_manager_counts_and_the_control_plane_does_not() {
        let entry = |manager: &str, time: &str, api_version: &str| ManagedBy {
            manager: manager.to_owned(),
            time: time.to_owned(),
            api_version: api_version.to_owned(),
            ..ManagedBy::default()
        };
        let metadata = Metadata {
            managed_fields: vec![
                entry("script", "2026-01-01T00:00:00Z", "policy/v1beta1"),
                entry("script", "2026-02-01T00:00:00Z", "policy/v1"),
                entry(
                    "kube-controller-manager",
                    "2026-02-01T00:00:00Z",
                    "policy/v1beta1",
                ),
            ],
            ..Metadata::default()
        };
        let versions: Vec<String> = written(&metadata)
            .into_iter()
            .map(|(version, _)| version)
            .collect();
        assert_eq!(versions, ["policy/v1"]);
    }
}
