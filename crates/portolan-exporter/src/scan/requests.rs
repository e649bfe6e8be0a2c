//! The API server's own count of deprecated requests.

use portolan_audit::{Checker, Evidence, Finding, Site, Subject};
use portolan_cluster::{Cluster, DeprecatedRequest, ErrorKind, Resource};

use super::ScanError;
use super::knowledge::Knowledge;

/// What somebody has asked the API server for since it started. What we list ourselves says nothing about others.
pub(super) async fn scan(
    cluster: &Cluster,
    checker: &Checker,
    resources: &[Resource],
    knowledge: &mut Knowledge,
) -> Result<(), ScanError> {
    let requests = match cluster.deprecated_requests().await {
        Ok(requests) => requests,
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            let warning = format!("the API server's metrics cannot be read: {error}");
            knowledge.warnings.push(warning);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let ours = |request: &DeprecatedRequest| {
        let api_version = api_version_of(request);
        resources.iter().any(|resource| {
            resource.api_version == api_version && resource.name == request.resource
        })
    };
    let others = requests.iter().filter(|request| !ours(request));
    knowledge
        .requests
        .extend(others.filter_map(|request| check_request(checker, resources, request)));
    Ok(())
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
            watchable: true,
        };
        let request = request("example.com", "v1alpha1", "lights");
        let found = check_request(&Checker::default(), &[served], &request).unwrap();
        assert_eq!(found.subject.kind, "Light");
        assert_eq!(found.subject.api_version, "example.com/v1alpha1");
        assert_eq!(found.level, portolan_audit::Level::Deprecated);
    }
}
