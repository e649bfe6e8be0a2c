//! The capabilities of the cluster, as templates see them: its version and the API versions that it serves.

mod client_versions;

use portolan_object::{KubeVersion, served};

use crate::profile::Profile;
use crate::reported_version::ReportedVersion;

/// The cluster a chart is rendered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The Kubernetes version.
    pub kube_version: ReportedVersion,
    /// Group versions (`apps/v1`) and kinds (`apps/v1/Deployment`) that are served, in the order given.
    pub api_versions: Vec<String>,
}

impl Default for Capabilities {
    /// What Helm 3.17.3 assumes without a cluster.
    fn default() -> Self {
        Self::built_into(Profile::Helm3)
    }
}

impl Capabilities {
    /// What a Helm assumes without a cluster: the Kubernetes version and the group versions of its Go client.
    pub fn built_into(profile: Profile) -> Self {
        let (minor, versions) = match profile {
            Profile::Helm3 => (32, client_versions::OF_1_32),
            Profile::Helm4 => (36, client_versions::OF_1_36),
        };
        Self {
            kube_version: ReportedVersion::first_of(KubeVersion::new(1, minor)),
            api_versions: versions.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    /// The same with another Kubernetes version. As in Helm, the group versions stay those of the Go client.
    #[must_use]
    pub fn with_version(self, kube_version: ReportedVersion) -> Self {
        Self {
            kube_version,
            ..self
        }
    }

    /// Adds what a cluster of a release serves by default: every group version, and every kind as `group/version/Kind`.
    /// Helm knows these only when it talks to a cluster, and its Go client lacks groups such as
    /// `apiregistration.k8s.io`.
    pub fn add_served_by(&mut self, release: KubeVersion) {
        for kind in served(release).filter(|kind| kind.on_by_default) {
            let slash = if kind.group.is_empty() { "" } else { "/" };
            let group_version = format!("{}{slash}{}", kind.group, kind.version);
            let with_kind = format!("{group_version}/{}", kind.kind);
            self.add_api_versions([group_version, with_kind]);
        }
    }

    /// Adds group versions or kinds that are served as well, each once.
    pub fn add_api_versions<T: Into<String>>(&mut self, versions: impl IntoIterator<Item = T>) {
        for version in versions {
            let version = version.into();
            if !self.api_versions.contains(&version) {
                self.api_versions.push(version);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_serves_kinds_as_well() {
        let mut cluster = Capabilities {
            api_versions: Vec::new(),
            ..Capabilities::default()
        };
        cluster.add_served_by(KubeVersion::new(1, 31));
        let serves = |version: &str| cluster.api_versions.iter().any(|v| v == version);
        assert!(serves("apps/v1/Deployment") && serves("v1/Pod") && serves("batch/v1"));
        assert!(!serves("batch/v1beta1"));
    }

    #[test]
    fn the_default_is_what_helm_has_built_in() {
        let capabilities = Capabilities::default();
        assert_eq!(capabilities.api_versions.len(), 56);
        assert!(
            capabilities
                .api_versions
                .contains(&"batch/v1beta1".to_owned())
        );
        assert!(
            !capabilities
                .api_versions
                .contains(&"apps/v1/Deployment".to_owned())
        );
    }

    #[test]
    fn helm_4_has_newer_group_versions_built_in() {
        let versions = Capabilities::built_into(Profile::Helm4).api_versions;
        assert!(
            versions
                .iter()
                .any(|version| version == "resource.k8s.io/v1")
        );
    }
}
