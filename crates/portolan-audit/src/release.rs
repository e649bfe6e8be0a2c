//! A release of Kubernetes or of an add-on: the three numbers that lifecycles need.

use std::fmt;
use std::str::FromStr;

use portolan_object::KubeVersion;

/// A release by its numbers; what follows them (`-eks-abc`, `+k3s1`) says nothing about the APIs it serves.
///
/// ```
/// use portolan_audit::Release;
///
/// let release: Release = "v1.29.3-eks-abc".parse()?;
/// assert_eq!(release.minor(), Release::new(1, 29, 0));
/// assert_eq!(Release::new(1, 29, 0).to_string(), "1.29");
/// # Ok::<(), portolan_audit::BadRelease>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    major: u32,
    minor: u32,
    patch: u32,
}

/// Why a text is not a release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a release such as `1.32`")]
pub struct BadRelease(String);

impl Release {
    /// The release of these numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// The same release without its patch number: Kubernetes changes its APIs in minor releases only.
    #[must_use]
    pub const fn minor(self) -> Self {
        Self::new(self.major, self.minor, 0)
    }

    /// The minor release this many after it.
    #[must_use]
    pub const fn plus(self, minors: u32) -> Self {
        Self::new(self.major, self.minor.saturating_add(minors), 0)
    }

    /// The minor release before it; the first has none.
    pub fn before(self) -> Option<Self> {
        let minor = self.minor.checked_sub(1)?;
        Some(Self::new(self.major, minor, 0))
    }
}

impl From<KubeVersion> for Release {
    fn from(version: KubeVersion) -> Self {
        Self::new(version.major, version.minor, 0)
    }
}

impl From<Release> for KubeVersion {
    /// The release without its patch number.
    fn from(release: Release) -> Self {
        Self::new(release.major, release.minor)
    }
}

impl FromStr for Release {
    type Err = BadRelease;

    fn from_str(text: &str) -> Result<Self, BadRelease> {
        let bad = || BadRelease(text.to_owned());
        let trimmed = text.trim();
        let numbers = trimmed.strip_prefix('v').unwrap_or(trimmed);
        let end = numbers
            .find(|c: char| c != '.' && !c.is_ascii_digit())
            .unwrap_or(numbers.len());
        let (numbers, rest) = numbers.split_at(end);
        if !(rest.is_empty() || rest.starts_with(['-', '+'])) {
            return Err(bad());
        }
        let mut parts = numbers.split('.').map(|part| part.parse().ok());
        let mut next = |default: Option<u32>| parts.next().unwrap_or(default).ok_or_else(bad);
        let release = Self::new(next(None)?, next(None)?, next(Some(0))?);
        if parts.next().is_some() {
            return Err(bad());
        }
        Ok(release)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch > 0 {
            write!(f, ".{}", self.patch)?;
        }
        Ok(())
    }
}

impl serde::Serialize for Release {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Release {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clusters_and_people_write_is_understood() {
        for (text, printed) in [
            ("1.29", "1.29"),
            ("v1.29.3", "1.29.3"),
            ("1.29+", "1.29"),
            ("v1.29.3-eks-abc", "1.29.3"),
            ("1.31.0-rc.1+k3s1", "1.31"),
        ] {
            assert_eq!(text.parse::<Release>().unwrap().to_string(), printed);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "1",
            "latest",
            "1.x",
            "1.2.3.4",
            "1.99999999999",
            "1.29 beta",
        ] {
            assert!(text.parse::<Release>().is_err(), "{text}");
        }
    }
}
