//! The `versions` section of a repository's `portolan.yaml`.
//!
//! ```yaml
//! versions:
//!   kubernetes: 1.34
//!   flux: 2.8
//! ```

use portolan_helm::ReportedVersion;
use portolan_object::{KubeVersion, Place};
use portolan_yaml::{Node, Position, Value};

use crate::version::chosen::{Chosen, ChosenBy};
use crate::version::flux_version::FluxVersion;

/// The versions that a settings file chooses for every cluster of its repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionSettings {
    /// The Kubernetes version.
    pub kubernetes: Option<Chosen<ReportedVersion>>,
    /// The Flux version.
    pub flux: Option<Chosen<FluxVersion>>,
}

/// Why `versions` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionSettingsError {
    /// It is not a map.
    #[error("`versions` must be a map")]
    NotAMap(Position),
    /// It has a field that does not exist.
    #[error("there is no setting `versions.{0}`")]
    UnknownField(String, Position),
    /// A value is no version.
    #[error("`versions.{0}` is not a version")]
    BadVersion(&'static str, Position),
}

impl VersionSettings {
    /// Reads `versions` of a settings file; a file without it chooses nothing.
    pub fn read(root: &Node, file: &str) -> Result<Self, VersionSettingsError> {
        let Some(versions) = root.get("versions").filter(|node| !node.is_null()) else {
            return Ok(Self::default());
        };
        let map = versions.as_map();
        let map = map.ok_or(VersionSettingsError::NotAMap(versions.at))?;
        let mut settings = Self::default();
        for entry in map {
            let by = ChosenBy::Settings(Place::new(file.to_owned(), entry.value.at));
            match entry.key.as_str() {
                "kubernetes" => {
                    let value = read_version(&entry.value, "kubernetes", kube_version)?;
                    settings.kubernetes = Some(Chosen { value, by });
                }
                "flux" => {
                    let value = read_version(&entry.value, "flux", |text| text.parse().ok())?;
                    settings.flux = Some(Chosen { value, by });
                }
                other => {
                    let field = other.to_owned();
                    return Err(VersionSettingsError::UnknownField(field, entry.key.at));
                }
            }
        }
        Ok(settings)
    }
}

impl VersionSettingsError {
    /// Where in the file the mistake stands.
    pub fn at(&self) -> Position {
        match self {
            Self::NotAMap(at) | Self::UnknownField(_, at) | Self::BadVersion(_, at) => *at,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAMap(_) | Self::UnknownField(..) => {
                "`versions` may have `kubernetes` and `flux`, such as `kubernetes: 1.36`"
            }
            Self::BadVersion(..) => "write it as in `1.36` or `v1.36.3`",
        }
    }
}

/// Versions may be written without quotes, where YAML reads numbers: what was written counts.
fn read_version<T>(
    node: &Node,
    field: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, VersionSettingsError> {
    let version = match &node.value {
        Value::Scalar(scalar) => read(&scalar.text),
        Value::Map(_) | Value::List(_) => None,
    };
    version.ok_or(VersionSettingsError::BadVersion(field, node.at))
}

fn kube_version(text: &str) -> Option<ReportedVersion> {
    text.parse::<KubeVersion>().ok()?;
    ReportedVersion::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    fn read(yaml: &str) -> Result<VersionSettings, VersionSettingsError> {
        VersionSettings::read(&parse_one(yaml, Dialect::Helm).unwrap(), "portolan.yaml")
    }

    #[test]
    fn versions_are_read_as_they_are_written() {
        let settings = read("versions:\n  kubernetes: 1.30\n  flux: v2.8.1\n").unwrap();
        let kubernetes = settings.kubernetes.unwrap();
        assert_eq!(kubernetes.value.to_string(), "v1.30.0");
        assert_eq!(kubernetes.by.to_string(), "portolan.yaml:2");
        let flux = settings.flux.unwrap();
        assert_eq!(flux.value.to_string(), "2.8.1");
        assert_eq!(read("test: {}").unwrap(), VersionSettings::default());
        assert_eq!(read("versions:\n").unwrap(), VersionSettings::default());
    }

    #[test]
    fn mistakes_are_told_where_they_stand() {
        let check = |yaml: &str, message: &str, line: u32, column: u32| {
            let error = read(yaml).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_eq!((error.at().line, error.at().column), (line, column));
        };
        check("versions: 1.30", "`versions` must be a map", 1, 11);
        check(
            "versions:\n  kubernets: 1.30\n",
            "there is no setting `versions.kubernets`",
            2,
            3,
        );
        for bad in ["latest", "'1'", "[1.30]"] {
            let yaml = format!("versions:\n  kubernetes: {bad}\n");
            check(&yaml, "`versions.kubernetes` is not a version", 2, 15);
        }
    }
}
