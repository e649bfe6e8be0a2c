//! Group, version and kind: what an object is.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use portolan_yaml::Text;
use thiserror::Error;

/// A group, version and kind; the core group is the empty text.
///
/// Written as `apps/v1/Deployment`, or `v1/Pod` in the core group. Sorts by group, kind and then version, so that the
/// versions of one kind stand together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gvk {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version inside the group.
    pub version: Text,
    /// The kind.
    pub kind: Text,
}

/// Why a text is not a group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a group, version and kind like `apps/v1/Deployment` or `v1/Pod`")]
pub struct GvkError(String);

impl Gvk {
    /// A group, version and kind.
    pub fn new(group: impl Into<Text>, version: impl Into<Text>, kind: impl Into<Text>) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// From an object's two fields: everything before the first slash of `apiVersion` is the group.
    pub fn from_api_version(api_version: &str, kind: impl Into<Text>) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// The `apiVersion` field: `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether group and kind are these, in any version.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.kind == kind && self.group == group
    }

    fn sort_key(&self) -> (&str, &str, &str) {
        (&self.group, &self.kind, &self.version)
    }
}

impl Ord for Gvk {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialOrd for Gvk {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.kind)
    }
}

impl FromStr for Gvk {
    type Err = GvkError;

    fn from_str(text: &str) -> Result<Self, GvkError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [version, kind] if !version.is_empty() && !kind.is_empty() => {
                Ok(Self::new("", *version, *kind))
            }
            [group, version, kind] if parts.iter().all(|part| !part.is_empty()) => {
                Ok(Self::new(*group, *version, *kind))
            }
            _ => Err(GvkError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_group_has_no_name() {
        let pod = Gvk::from_api_version("v1", "Pod");
        assert_eq!(
            (pod.group.as_str(), pod.to_string().as_str()),
            ("", "v1/Pod")
        );
        assert_eq!("v1/Pod".parse(), Ok(pod));
    }

    #[test]
    fn versions_of_one_kind_stand_together() {
        let mut kinds: Vec<Gvk> = ["batch/v1/Job", "batch/v1beta1/CronJob", "batch/v1/CronJob"]
            .iter()
            .map(|text| text.parse().expect("a group, version and kind"))
            .collect();
        kinds.sort();
        let sorted: Vec<String> = kinds.iter().map(Gvk::to_string).collect();
        assert_eq!(
            sorted,
            ["batch/v1/CronJob", "batch/v1beta1/CronJob", "batch/v1/Job"]
        );
    }

    #[test]
    fn empty_parts_are_refused() {
        for text in ["", "Pod", "/Pod", "v1/", "apps//Deployment", "a/b/c/d"] {
            assert!(text.parse::<Gvk>().is_err(), "{text}");
        }
    }
}
