//! A finding: what is wrong with one object, and all the evidence for it.
//!
//! `-o json` prints these field names and snapshots on disk contain them, so they must stay stable.

use portolan_object::{Gvk, ObjectId, Place};
use portolan_yaml::Position;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::level::Level;
use crate::release::Release;

/// What names an object, as it writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `apiVersion` as written.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty when it has none or does not say.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// One thing that is wrong with one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stays the same as long as the finding does: for baselines and code scanning.
    pub id: String,
    /// How bad it is.
    pub level: Level,
    /// The file that says it.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The object.
    #[serde(flatten)]
    pub subject: Subject,
    /// Whose releases are meant: `k8s`, `flux` and so on.
    pub component: String,
    /// The first release that deprecates it.
    pub deprecated_in: Option<Release>,
    /// The first release without it.
    pub removed_in: Option<Release>,
    /// What to use instead: an API version, or what to write.
    pub replacement: Option<String>,
    /// The field concerned; absent when the API version itself is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What else changes with the replacement: fields, defaults, meaning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The releases that serve both the old and the new API version, oldest and newest: the time to switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrate_between: Option<(Release, Release)>,
    /// Whether `--fix` can write the change.
    #[serde(default)]
    pub fixable: bool,
    /// Why it is accepted, when a baseline accepts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// What shows it, the best first.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
}

/// Something that shows a finding. Ordered by how much it is to be trusted, the best first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(
    tag = "source",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Evidence {
    /// A file says it.
    File {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
    },
    /// A rendered chart says it.
    Chart {
        /// The chart's name and version.
        chart: String,
        /// The template.
        template: String,
    },
    /// A Flux unit renders it.
    Unit {
        /// `HelmRelease apps/web`
        unit: String,
        /// Where its text came from.
        origin: String,
    },
    /// A Helm release in a cluster holds it.
    Helm {
        /// The release.
        release: String,
        /// Its namespace.
        namespace: String,
        /// The revision.
        revision: i64,
        /// The revision's status.
        status: String,
        /// The chart's name and version.
        chart: String,
        /// Whether it is a hook.
        hook: bool,
        /// The API version it says.
        api_version: String,
    },
    /// Somebody wrote the live object in this API version.
    ManagedFields {
        /// Who.
        manager: String,
        /// `Apply` or `Update`.
        operation: String,
        /// When, in RFC 3339.
        time: String,
        /// The API version they used.
        api_version: String,
    },
    /// An annotation holds what was last applied.
    LastApplied {
        /// The annotation.
        annotation: String,
        /// The API version it says.
        api_version: String,
    },
    /// The object as the cluster stores it.
    Live {
        /// The API version it was read in.
        api_version: String,
    },
    /// The API server counted requests for it.
    Metric {
        /// The resource, with its subresource.
        resource: String,
        /// The release that removes it, as the server says.
        removed_release: String,
    },
}

impl Finding {
    /// Gives the finding the id that follows from what it says; the line may move without changing it.
    #[must_use]
    pub fn with_id(mut self) -> Self {
        let mut hash = Sha256::new();
        let subject = &self.subject;
        for part in [
            self.level_family(),
            self.file.as_deref().unwrap_or_default(),
            &subject.api_version,
            &subject.kind,
            &subject.namespace,
            &subject.name,
            self.path.as_deref().unwrap_or_default(),
        ] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        self.id = short_hex(&hash.finalize());
        self
    }

    /// A finding that gets worse with the target is still the same finding.
    fn level_family(&self) -> &'static str {
        match self.level {
            Level::Deprecated | Level::RemovedNext | Level::Removed => "lifecycle",
            other => other.name(),
        }
    }

    /// The finding as every report format takes it, with its id for a fingerprint.
    pub fn plain(&self) -> portolan_object::Finding {
        let Subject {
            api_version,
            kind,
            namespace,
            name,
        } = &self.subject;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = Gvk::new(group.to_owned(), version.to_owned(), kind.clone());
        let is_named = !(kind.is_empty() && namespace.is_empty() && name.is_empty());
        let at = Position {
            line: self.line.unwrap_or(0),
            column: self.column.unwrap_or(0),
        };
        let file = self.file.as_ref();
        portolan_object::Finding {
            object: is_named.then(|| ObjectId::new(gvk, namespace.clone(), name.clone())),
            field: self.path.clone(),
            place: file.map(|file| Place::new(file.clone(), at)),
            accepted: self.accepted.clone(),
            known_fingerprint: Some(self.id.clone()),
            ..portolan_object::Finding::new(self.level.rule(), self.advice())
        }
    }

    /// What is wrong, and what to use instead.
    pub(crate) fn advice(&self) -> String {
        match &self.replacement {
            Some(replacement) => format!("{}; use {replacement}", self.message),
            None => self.message.clone(),
        }
    }

    /// `namespace/name`, or the name alone.
    pub fn object(&self) -> String {
        match (&*self.subject.namespace, &*self.subject.name) {
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        }
    }

    /// `file:line`, a Helm release, or whatever else shows it best.
    pub fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => self
                .evidence
                .first()
                .map(Evidence::place)
                .unwrap_or_default(),
        }
    }
}

/// The first bytes of a digest: enough to tell a few thousand things apart.
pub(crate) fn short_hex(digest: &[u8]) -> String {
    let bytes = digest.iter().take(6);
    bytes.fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

impl Evidence {
    /// Where it was seen, in a few words.
    pub fn place(&self) -> String {
        match self {
            Self::File { file, line } => format!("{file}:{line}"),
            Self::Chart { chart, template } => format!("chart {chart} ({template})"),
            Self::Unit { unit, origin } if origin.is_empty() => unit.clone(),
            Self::Unit { unit, origin } => format!("{unit} ({origin})"),
            Self::Helm {
                release,
                namespace,
                revision,
                ..
            } => format!("Helm release {namespace}/{release} r{revision}"),
            Self::ManagedFields { manager, time, .. } => format!("written by {manager} at {time}"),
            Self::LastApplied { annotation, .. } => format!("annotation {annotation}"),
            Self::Live { .. } => "live object".to_owned(),
            Self::Metric { resource, .. } => format!("requests for {resource}"),
        }
    }
}
