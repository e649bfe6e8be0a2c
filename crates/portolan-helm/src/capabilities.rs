//! The capabilities of the cluster, as templates see them: its version and the API versions that it serves.

mod client_versions;

use portolan_object::KubeVersion;
use portolan_semver::Version;

use crate::profile::Profile;

/// The cluster a chart is rendered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The Kubernetes version.
    pub kube_version: ReportedVersion,
    /// Group versions (`apps/v1`) and kinds (`apps/v1/Deployment`) that are served, in the order given.
    pub api_versions: Vec<String>,
}

/// A Kubernetes version as a cluster reports it to templates, with all that follows its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedVersion {
    version: String,
    release: KubeVersion,
}

/// The text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid kube version '{0}': Invalid Semantic Version")]
pub struct BadKubeVersion(pub String);

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

    /// The same with another Kubernetes version, which Helm 4 keeps as it was written.
    pub fn built_into_for(profile: Profile, version: &str) -> Result<Self, BadKubeVersion> {
        let kube_version = match profile {
            Profile::Helm3 => ReportedVersion::parse(version)?,
            Profile::Helm4 => ReportedVersion::parse_as_written(version)?,
        };
        Ok(Self {
            kube_version,
            ..Self::built_into(profile)
        })
    }

    /// Helm's defaults with another Kubernetes version. As in Helm, the group versions stay those of the Go client.
    pub fn for_version(version: ReportedVersion) -> Self {
        Self {
            kube_version: version,
            ..Self::default()
        }
    }

    /// What a real cluster of that version answers: every group version it serves by default, and every kind as
    /// `group/version/Kind`. Helm knows these only when it talks to a cluster.
    pub fn of_cluster(version: &str) -> Result<Self, BadKubeVersion> {
        let kube_version = ReportedVersion::parse(version)?;
        let release = kube_version.release;
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

impl ReportedVersion {
    /// The first version of a release: `v1.32.0`.
    pub fn first_of(release: KubeVersion) -> Self {
        Self {
            version: format!("v{release}.0"),
            release,
        }
    }

    /// The whole version: `v1.32.0`, `v1.31.4+k3s1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The release that it is a version of.
    pub fn release(&self) -> KubeVersion {
        self.release
    }

    /// Reads a version of two numbers or more and keeps whatever follows them.
    fn parse_as_written(text: &str) -> Result<Self, BadKubeVersion> {
        let bad = || BadKubeVersion(text.to_owned());
        let version = text.trim_start();
        let version = format!("v{}", version.strip_prefix('v').unwrap_or(version));
        let mut numbers = numbers(&version).split('.');
        let mut number = || {
            let number = numbers.next().filter(|number| !number.is_empty())?;
            let is_plain = number == "0" || !number.starts_with('0');
            is_plain.then(|| number.parse().ok()).flatten()
        };
        let (major, minor) = number().zip(number()).ok_or_else(bad)?;
        Ok(Self {
            version,
            release: KubeVersion::new(major, minor),
        })
    }

    /// The version without what follows its numbers: what Helm 4 prints, and compares with a chart's range.
    pub(crate) fn normalized(&self) -> &str {
        let length = numbers(&self.version).len();
        self.version.get(..=length).unwrap_or(&self.version)
    }

    /// Reads a version, with or without a leading `v`.
    pub fn parse(text: &str) -> Result<Self, BadKubeVersion> {
        let bad = || BadKubeVersion(text.to_owned());
        let version = Version::parse(text).map_err(|_| bad())?;
        let number = |number: u64| u32::try_from(number).map_err(|_| bad());
        Ok(Self {
            version: format!("v{version}"),
            release: KubeVersion::new(number(version.major())?, number(version.minor())?),
        })
    }
}

/// The numbers behind the `v` of a version, with the points between them.
fn numbers(version: &str) -> &str {
    let version = version.strip_prefix('v').unwrap_or(version);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.');
    let numbers = version.get(..end.unwrap_or(version.len()));
    numbers.unwrap_or_default().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_completed() {
        let version = ReportedVersion::parse("1.29").unwrap();
        assert_eq!(version.version, "v1.29.0");
        assert_eq!(version.release, KubeVersion::new(1, 29));
        assert!(ReportedVersion::parse("new").is_err());
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

    /// As helm 4.2.4 prints them.
    #[test]
    fn helm_4_keeps_a_version_as_it_is_written() {
        let read = |text: &str| {
            let version = Capabilities::built_into_for(Profile::Helm4, text)?.kube_version;
            Ok::<_, BadKubeVersion>(format!("{} {}", version.version, version.normalized()))
        };
        assert_eq!(read("1.29").unwrap(), "v1.29 v1.29");
        assert_eq!(read("v1.30.1-gke.100").unwrap(), "v1.30.1-gke.100 v1.30.1");
        assert_eq!(read("1.31.0+x").unwrap(), "v1.31.0+x v1.31.0");
        for bad in ["1", "abc", "v01.2", ""] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let versions = Capabilities::built_into(Profile::Helm4).api_versions;
        assert!(
            versions
                .iter()
                .any(|version| version == "resource.k8s.io/v1")
        );
    }
}
