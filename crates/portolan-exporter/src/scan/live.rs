//! What lives in a cluster: who wrote each object and in which API version, definitions and the versions they store, and
//! the API server's own count of deprecated requests.

use std::collections::HashMap;

use portolan_audit::{Checker, Evidence, Finding, Site, Subject};
use portolan_cluster::{
    Cluster, ClusterError, DeprecatedRequest, ErrorKind, ManagedBy, Metadata, Resource,
};
use serde::Deserialize;

use super::{MAX_LIVE_FINDINGS, Scan, ScanError, ScanOptions};

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

pub(super) async fn scan(
    cluster: &Cluster,
    checker: &Checker,
    options: &ScanOptions,
    scan: &mut Scan,
) -> Result<(), ScanError> {
    let (resources, troubles) = cluster.resources().await?;
    scan.warnings.extend(troubles);
    let namespace = options.namespace.as_deref();
    for resource in &resources {
        // Events are many, short-lived and nobody's to change.
        if resource.name != "events" && (resource.namespaced || namespace.is_none()) {
            objects(cluster, checker, resource, namespace, scan).await?;
        }
    }
    // These two belong to no namespace.
    if namespace.is_none() {
        definitions(cluster, checker, scan).await?;
        requests(cluster, checker, &resources, scan).await?;
    }
    if scan.live.len() >= MAX_LIVE_FINDINGS {
        scan.warnings.push(format!(
            "there are more than {MAX_LIVE_FINDINGS} findings in live objects; the rest is left out"
        ));
    }
    Ok(())
}

/// Every object of a resource, by its metadata.
async fn objects(
    cluster: &Cluster,
    checker: &Checker,
    resource: &Resource,
    namespace: Option<&str>,
    scan: &mut Scan,
) -> Result<(), ScanError> {
    let mut count = 0;
    let live = &mut scan.live;
    let take = |metadata: Metadata| {
        count += 1;
        if live.len() < MAX_LIVE_FINDINGS {
            live.extend(check_live(checker, resource, &metadata));
        }
    };
    let listed = cluster.each_of(resource, namespace, take).await;
    scan.live_objects += count;
    match listed {
        Ok(()) => Ok(()),
        // Least privilege: what may not be listed is told, and the rest is still looked at.
        Err(error) if matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::Other) => {
            let Resource {
                api_version, name, ..
            } = resource;
            scan.warnings
                .push(format!("{api_version} {name} cannot be listed: {error}"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Definitions: the versions that objects are stored in may be in the way of an upgrade.
async fn definitions(
    cluster: &Cluster,
    checker: &Checker,
    scan: &mut Scan,
) -> Result<(), ScanError> {
    let site = Site {
        evidence: vec![Evidence::Live {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
        }],
        ..Site::default()
    };
    let mut found = Vec::new();
    let take = |text: &[u8]| found.extend(checker.check_text(text, &site).findings);
    optional(cluster.each_definition(take).await, "definitions", scan)?;
    scan.live.extend(found);
    Ok(())
}

/// What somebody has asked the API server for since it started. What we list ourselves says nothing about others.
async fn requests(
    cluster: &Cluster,
    checker: &Checker,
    resources: &[Resource],
    scan: &mut Scan,
) -> Result<(), ScanError> {
    let requests = optional(
        cluster.deprecated_requests().await,
        "the API server's metrics",
        scan,
    )?;
    let ours = |request: &DeprecatedRequest| {
        let api_version = api_version_of(request);
        resources.iter().any(|resource| {
            resource.api_version == api_version && resource.name == request.resource
        })
    };
    let others = requests.iter().flatten().filter(|request| !ours(request));
    scan.live
        .extend(others.filter_map(|request| check_request(checker, resources, request)));
    Ok(())
}

/// What may be forbidden without spoiling the scan.
fn optional<T>(
    answer: Result<T, ClusterError>,
    what: &str,
    scan: &mut Scan,
) -> Result<Option<T>, ScanError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            scan.warnings
                .push(format!("{what} cannot be read: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Who wrote a live object, and in which API version: the newest entry of each manager, and what was last applied.
fn check_live(checker: &Checker, resource: &Resource, metadata: &Metadata) -> Vec<Finding> {
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
    let mut newest: HashMap<(&str, &str), &ManagedBy> = HashMap::new();
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

fn api_version_of(request: &DeprecatedRequest) -> String {
    match request.group.as_str() {
        "" => request.version.clone(),
        group => format!("{group}/{}", request.version),
    }
}

/// The metric names resources; the table or discovery knows their kinds.
fn check_request(
    checker: &Checker,
    resources: &[Resource],
    request: &DeprecatedRequest,
) -> Option<Finding> {
    let row = checker
        .table
        .resource(&request.group, &request.resource)
        .next();
    let served = resources.iter().find(|resource| is_of(resource, request));
    let kind = row
        .map(|row| row.api.kind.to_string())
        .or_else(|| served.map(|resource| resource.kind.clone()));
    let subject = Subject {
        api_version: api_version_of(request),
        kind: kind.unwrap_or_else(|| request.resource.clone()),
        ..Subject::default()
    };
    let resource = match request.subresource.as_str() {
        "" => request.resource.clone(),
        subresource => format!("{}/{subresource}", request.resource),
    };
    let evidence = Evidence::Metric {
        resource,
        removed_release: request.removed_release.clone(),
    };
    let site = Site {
        evidence: vec![evidence],
        ..Site::default()
    };
    checker.check_requested(subject, request.removed_release.parse().ok(), &site)
}

/// Whether a request was for this resource, in whatever version.
fn is_of(resource: &Resource, request: &DeprecatedRequest) -> bool {
    let group = resource
        .api_version
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    group == request.group && resource.name == request.resource
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(group: &str, version: &str, resource: &str) -> DeprecatedRequest {
        DeprecatedRequest {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            ..DeprecatedRequest::default()
        }
    }

    #[test]
    fn a_request_for_what_no_table_knows_is_told_as_the_server_tells_it() {
        let served = Resource {
            api_version: "example.com/v1".to_owned(),
            kind: "Light".to_owned(),
            name: "lights".to_owned(),
            namespaced: true,
        };
        let request = request("example.com", "v1alpha1", "lights");
        let found = check_request(&Checker::default(), &[served], &request).unwrap();
        assert_eq!(found.subject.kind, "Light");
        assert_eq!(found.subject.api_version, "example.com/v1alpha1");
        assert_eq!(found.level, portolan_audit::Level::Deprecated);
    }

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
