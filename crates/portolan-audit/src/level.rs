//! How bad a finding is.

use std::fmt;
use std::str::FromStr;

use portolan_object::{Rule, Severity};

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
        self.rule().id
    }

    /// The rule that findings of this level are instances of; it says how much they matter.
    pub fn rule(self) -> &'static Rule {
        match self {
            Self::Deprecated => &DEPRECATED,
            Self::Field => &FIELD,
            Self::Reference => &REFERENCE,
            Self::RemovedNext => &REMOVED_NEXT,
            Self::UnknownApi => &UNKNOWN_API,
            Self::Removed => &REMOVED,
            Self::NotYetServed => &NOT_YET_SERVED,
            Self::StoredVersion => &STORED_VERSION,
            Self::Unparsed => &UNPARSED,
        }
    }
}

static DEPRECATED: Rule = Rule {
    id: "deprecated",
    severity: Severity::Note,
    summary: "The target release deprecates this API version",
    help: "It still works. The message names what replaces it, and since when that is served: switch while the \
           cluster serves both.",
};

static FIELD: Rule = Rule {
    id: "field",
    severity: Severity::Note,
    summary: "A field, value, annotation or label is deprecated or without effect",
    help: "The API server takes the object and may ignore the field. The message names what to write instead.",
};

static REFERENCE: Rule = Rule {
    id: "reference",
    severity: Severity::Note,
    summary: "The object refers to an API that is deprecated or no longer served",
    help: "A scale target, an RBAC rule or a webhook names an API by its group and version; once that is gone, the \
           reference leads nowhere.",
};

static REMOVED_NEXT: Rule = Rule {
    id: "removed-next",
    severity: Severity::Warning,
    summary: "A release soon after the target no longer serves this API version",
    help: "The object works with the target and is refused a few releases later: switch to the replacement before \
           the next upgrade.",
};

static UNKNOWN_API: Rule = Rule {
    id: "unknown-api",
    severity: Severity::Warning,
    summary: "No release ever served this kind in this API version",
    help: "The kind is known, the version is not: usually it is mistyped.",
};

static REMOVED: Rule = Rule {
    id: "removed",
    severity: Severity::Error,
    summary: "The target release no longer serves this API version",
    help: "The API server refuses the object, and Flux stops at it. Switch to the replacement before the upgrade.",
};

static NOT_YET_SERVED: Rule = Rule {
    id: "not-yet-served",
    severity: Severity::Error,
    summary: "The target release does not serve this API version yet",
    help: "The API server refuses the object until the cluster is upgraded to the release that the message names.",
};

static STORED_VERSION: Rule = Rule {
    id: "stored-version",
    severity: Severity::Error,
    summary: "Objects are stored in a version that the definition drops",
    help: "The API server refuses the definition. Have every object written once in a version that stays, and take \
           the old one out of `status.storedVersions`.",
};

static UNPARSED: Rule = Rule {
    id: "unparsed",
    severity: Severity::Error,
    summary: "The input could not be read",
    help: "Nothing is known about what it holds. Fix it, or leave it out by its path.",
};

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
