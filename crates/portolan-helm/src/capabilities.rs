//! What the cluster can do, as templates ask for it: its version and the API versions it serves.

use portolan_semver::Version;

/// The cluster a chart is rendered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The Kubernetes version.
    pub kube_version: KubeVersion,
    /// Group versions (`apps/v1`) and kinds (`apps/v1/Deployment`) that are served, in the order given.
    pub api_versions: Vec<String>,
}

/// A Kubernetes version in the three forms templates use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// `v1.32.0`
    pub version: String,
    /// `1`
    pub major: String,
    /// `32`
    pub minor: String,
}

/// The text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid kube version '{0}': Invalid Semantic Version")]
pub struct BadKubeVersion(pub String);

impl Default for Capabilities {
    /// What Helm 3.17.3 assumes without a cluster: Kubernetes 1.32 and the group versions of its Go client.
    fn default() -> Self {
        Self {
            kube_version: KubeVersion {
                version: "v1.32.0".to_owned(),
                major: "1".to_owned(),
                minor: "32".to_owned(),
            },
            api_versions: CLIENT_VERSIONS.iter().map(|v| (*v).to_owned()).collect(),
        }
    }
}

impl Capabilities {
    /// Helm's defaults with another Kubernetes version. As in Helm, the group versions stay those of the Go client.
    pub fn for_version(version: &str) -> Result<Self, BadKubeVersion> {
        Ok(Self {
            kube_version: KubeVersion::parse(version)?,
            ..Self::default()
        })
    }

    /// What a real cluster of that version answers: every group version it serves by default, and every kind as
    /// `group/version/Kind`. Helm knows these only when it talks to a cluster.
    pub fn of_cluster(version: &str) -> Result<Self, BadKubeVersion> {
        let kube_version = KubeVersion::parse(version)?;
        let number = |text: &str| text.parse().map_err(|_| BadKubeVersion(version.to_owned()));
        let release = portolan_object::KubeVersion {
            major: number(&kube_version.major)?,
            minor: number(&kube_version.minor)?,
        };
        let mut capabilities = Self {
            kube_version,
            api_versions: Vec::new(),
        };
        for served in portolan_object::served(release).filter(|kind| kind.on_by_default) {
            let group_version = match served.group {
                "" => served.version.to_owned(),
                group => format!("{group}/{}", served.version),
            };
            let kind = format!("{group_version}/{}", served.kind);
            capabilities.add_api_versions([group_version, kind]);
        }
        Ok(capabilities)
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

impl KubeVersion {
    /// Reads a version, with or without a leading `v`.
    pub fn parse(text: &str) -> Result<Self, BadKubeVersion> {
        let version = Version::parse(text).map_err(|_| BadKubeVersion(text.to_owned()))?;
        Ok(Self {
            version: format!("v{version}"),
            major: version.major().to_string(),
            minor: version.minor().to_string(),
        })
    }
}

/// The group versions known to the Go client of Kubernetes 1.32, in its order of priority.
const CLIENT_VERSIONS: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1alpha1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha1",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1alpha1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_completed() {
        let version = KubeVersion::parse("1.29").unwrap();
        assert_eq!(version.version, "v1.29.0");
        assert_eq!((&*version.major, &*version.minor), ("1", "29"));
        assert!(KubeVersion::parse("new").is_err());
    }

    #[test]
    fn a_cluster_serves_kinds_as_well() {
        let cluster = Capabilities::of_cluster("1.31").unwrap();
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
}
