//! The API server's own record of deprecated requests: `apiserver_requested_deprecated_apis`.

use crate::cluster::Cluster;
use crate::error::ClusterError;

/// A deprecated API that was requested since the API server started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct DeprecatedRequest {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource.
    pub resource: String,
    /// The subresource; mostly empty.
    pub subresource: String,
    /// The release that removes it; may be empty.
    pub removed_release: String,
}

impl Cluster {
    /// What was requested of this replica of the API server since it started.
    pub async fn deprecated_requests(&self) -> Result<Vec<DeprecatedRequest>, ClusterError> {
        let text = self.get("/metrics", "text/plain").await?;
        Ok(deprecated_requests(&String::from_utf8_lossy(&text)))
    }
}

/// The deprecated requests among metrics in Prometheus' text format.
pub fn deprecated_requests(text: &str) -> Vec<DeprecatedRequest> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("apiserver_requested_deprecated_apis{"));
    let mut requests: Vec<DeprecatedRequest> = lines
        .filter_map(|line| line.rsplit_once('}'))
        .filter(|(_, value)| value.trim() != "0")
        .map(|(labels, _)| request(labels))
        .collect();
    requests.sort();
    requests
}

fn request(labels: &str) -> DeprecatedRequest {
    let mut request = DeprecatedRequest::default();
    // The values are names and numbers: no quotes, no commas.
    for (name, value) in labels.split(',').filter_map(|label| label.split_once('=')) {
        let value = value.trim_matches('"').to_owned();
        match name {
            "group" => request.group = value,
            "version" => request.version = value,
            "resource" => request.resource = value,
            "subresource" => request.subresource = value,
            "removed_release" => request.removed_release = value,
            _ => {}
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_is_read_among_others() {
        let text = "# TYPE a counter\na 1\napiserver_requested_deprecated_apis{group=\"policy\",removed_release=\"1.25\",resource=\"poddisruptionbudgets\",subresource=\"\",version=\"v1beta1\"} 1\nb{c=\"d\"} 2\n";
        let requests = deprecated_requests(text);
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].version, "v1beta1");
        assert_eq!(requests[0].removed_release, "1.25");
    }
}
