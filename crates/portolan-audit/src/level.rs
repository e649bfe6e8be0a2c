//! How bad a finding is.

use std::fmt;
use std::str::FromStr;

/// How bad a finding is, from advice to what stops an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The target still serves the API, but deprecates it.
    Deprecated,
    /// A field, value, annotation or label is deprecated or without effect in the target.
    Field,
    /// The object names an API elsewhere (a scale target, an RBAC rule, a webhook) that the target no longer serves.
    Reference,
    /// One of the releases right after the target no longer serves the API.
    RemovedNext,
    /// The kind is known, but no release ever had it in this version.
    UnknownApi,
    /// The target no longer serves the API.
    Removed,
    /// The target does not serve the API yet.
    NotYetServed,
    /// Objects are stored in a version that the definition drops: the upgrade would be refused.
    StoredVersion,
    /// The input could not be read, so nothing is known about it.
    Unparsed,
}

/// Why a text is not a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a level; there are {list}", list = names().join(", "))]
pub struct BadLevel(String);

impl Level {
    /// Every level, mildest first.
    pub const ALL: [Self; 9] = [
        Self::Deprecated,
        Self::Field,
        Self::Reference,
        Self::RemovedNext,
        Self::UnknownApi,
        Self::Removed,
        Self::NotYetServed,
        Self::StoredVersion,
        Self::Unparsed,
    ];

    /// Its name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deprecated => "deprecated",
            Self::Field => "field",
            Self::Reference => "reference",
            Self::RemovedNext => "removed-next",
            Self::UnknownApi => "unknown-api",
            Self::Removed => "removed",
            Self::NotYetServed => "not-yet-served",
            Self::StoredVersion => "stored-version",
            Self::Unparsed => "unparsed",
        }
    }

    /// What it means, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Deprecated => "The target release deprecates this API version",
            Self::Field => "A field, value, annotation or label is deprecated or without effect",
            Self::Reference => "The object refers to an API that is deprecated or no longer served",
            Self::RemovedNext => {
                "A release soon after the target no longer serves this API version"
            }
            Self::UnknownApi => "No release ever served this kind in this API version",
            Self::Removed => "The target release no longer serves this API version",
            Self::NotYetServed => "The target release does not serve this API version yet",
            Self::StoredVersion => "Objects are stored in a version that the definition drops",
            Self::Unparsed => "The input could not be read",
        }
    }
}

fn names() -> Vec<&'static str> {
    Level::ALL.iter().map(|level| level.name()).collect()
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Level {
    type Err = BadLevel;

    fn from_str(text: &str) -> Result<Self, BadLevel> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| BadLevel(text.to_owned()))
    }
}

impl serde::Serialize for Level {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for Level {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
