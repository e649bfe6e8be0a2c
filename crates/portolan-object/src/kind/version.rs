//! A Kubernetes release: the parts of its version that decide which kinds are served.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::kind::served::RELEASES;

/// The major and minor number of a Kubernetes release.
///
/// Reads what clusters and people say: `1.29`, `v1.29.3`, `1.29+`, `v1.29.3-eks-abc`, `1.31.0-rc.1+k3s1`.
///
/// ```
/// # use portolan_object::KubeVersion;
/// assert_eq!("v1.29.3-eks-abc".parse(), Ok(KubeVersion::new(1, 29)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubeVersion {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

/// Why a text is not a Kubernetes version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a Kubernetes version like `1.36` or `v1.36.3`")]
pub struct KubeVersionError(String);

impl KubeVersion {
    /// The oldest release whose kinds and types are known.
    pub const OLDEST_KNOWN: Self = Self::new(1, RELEASES.0);

    /// The newest release whose kinds and types are known.
    pub const NEWEST_KNOWN: Self = Self::new(1, RELEASES.1);

    /// What every command assumes when neither the user nor the repository says which release runs.
    pub const DEFAULT: Self = Self::NEWEST_KNOWN;

    /// The release of these numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The release this many after it.
    #[must_use]
    pub const fn plus(self, minors: u32) -> Self {
        Self::new(self.major, self.minor.saturating_add(minors))
    }

    /// The known release that stands in for this one: itself, or else the nearest.
    #[must_use]
    pub fn nearest_known(self) -> Self {
        self.clamp(Self::OLDEST_KNOWN, Self::NEWEST_KNOWN)
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for KubeVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KubeVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl FromStr for KubeVersion {
    type Err = KubeVersionError;

    fn from_str(text: &str) -> Result<Self, KubeVersionError> {
        parse(text).ok_or_else(|| KubeVersionError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<KubeVersion> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let numbers = text.split(['-', '+']).next()?;
    let mut parts = numbers.split('.');
    let version = KubeVersion::new(number(parts.next()?)?, number(parts.next()?)?);
    let patch_is_number = parts.next().is_none_or(|patch| number(patch).is_some());
    (patch_is_number && parts.next().is_none()).then_some(version)
}

fn number(text: &str) -> Option<u32> {
    // `parse` alone would accept a sign.
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(())?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clusters_report_is_read() {
        for text in [
            "1.29",
            "v1.29",
            "v1.29.3",
            "1.29+",
            "v1.29.3-eks-abc",
            "1.29.0-rc.1+k3s1",
        ] {
            assert_eq!(text.parse(), Ok(KubeVersion::new(1, 29)), "{text}");
        }
    }

    #[test]
    fn the_nearest_known_release_stands_in_for_others() {
        let check = |asked: KubeVersion, expected| assert_eq!(asked.nearest_known(), expected);
        check(KubeVersion::new(1, 31), KubeVersion::new(1, 31));
        check(KubeVersion::new(1, 20), KubeVersion::OLDEST_KNOWN);
        check(KubeVersion::new(0, 99), KubeVersion::OLDEST_KNOWN);
        check(KubeVersion::new(1, 99), KubeVersion::NEWEST_KNOWN);
        check(KubeVersion::new(2, 0), KubeVersion::NEWEST_KNOWN);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "v", "1", "1.", "1.x", "1.29.x", "1.29.3.4", "+1.29", "1.+29", "latest",
        ] {
            assert!(text.parse::<KubeVersion>().is_err(), "{text}");
        }
    }
}
