//! The lifecycle of one API version of one kind: when it was introduced, deprecated and removed, and what to use
//! instead.

use std::borrow::Cow;
use std::fmt;

use crate::release::Release;

/// The component whose releases most rows speak of.
pub const KUBERNETES: &str = "k8s";

/// A text that is compiled in, or read from a user's rules.
pub type Str = Cow<'static, str>;

/// An API version of a kind, as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Api {
    /// The group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The kind.
    pub kind: Str,
}

/// How it is known when an API goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Its source states the release.
    Declared,
    /// It follows from the API server's own rule, and moves when the source is changed.
    Implied,
    /// It was read off from what releases served.
    Observed,
    /// A user's rule says so.
    Rule,
}

/// One row of the lifecycle table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    /// Whose releases the row speaks of: `k8s`, `cert-manager`, `flux` and so on.
    pub component: Str,
    /// What the row is about.
    pub api: Api,
    /// The first release that serves it.
    pub introduced: Option<Release>,
    /// The first release that calls it deprecated.
    pub deprecated: Option<Release>,
    /// The first release that no longer serves it by default.
    pub removed: Option<Release>,
    /// How `removed` is known.
    pub basis: Basis,
    /// What replaces it.
    pub replacement: Option<Api>,
    /// Its name in URLs and RBAC rules; empty when it is not a resource.
    pub resource: Str,
    /// Whether it lives in namespaces; `None` when it is not a resource.
    pub namespaced: Option<bool>,
    /// Why the row differs from other sources; mostly empty.
    pub note: Str,
}

/// The state of an API in one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The release does not serve it yet.
    NotYet,
    /// Served and not deprecated.
    Live,
    /// Served, but to be left.
    Deprecated,
    /// No longer served.
    Removed,
}

impl Api {
    /// An API of compiled-in texts.
    pub(crate) const fn fixed(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
        }
    }

    /// Takes `apiVersion` apart at its slash.
    pub fn of(api_version: &str, kind: &str) -> Self {
        let (group, version) = split(api_version);
        Self {
            group: Cow::Owned(group.to_owned()),
            version: Cow::Owned(version.to_owned()),
            kind: Cow::Owned(kind.to_owned()),
        }
    }

    /// What a manifest writes as `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Group, kind, version: the order of the table.
    pub(crate) fn key(&self) -> (&str, &str, &str) {
        (&self.group, &self.kind, &self.version)
    }
}

/// Group and version of an `apiVersion`.
pub(crate) fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

impl Lifecycle {
    /// Whether the row speaks of Kubernetes itself.
    pub fn is_kubernetes(&self) -> bool {
        self.component == KUBERNETES
    }

    /// The state in a release of the row's component.
    pub fn stage(&self, release: Release) -> Stage {
        let since = |start: Option<Release>| start.is_some_and(|start| start <= release);
        if since(self.removed) {
            Stage::Removed
        } else if self.introduced.is_some_and(|start| start > release) {
            Stage::NotYet
        } else if since(self.deprecated) {
            Stage::Deprecated
        } else {
            Stage::Live
        }
    }

    /// What replaces it, as short as it can be said: the API version alone when the kind stays.
    pub fn replacement_text(&self) -> Option<String> {
        let replacement = self.replacement.as_ref()?;
        Some(if replacement.kind == self.api.kind {
            replacement.api_version()
        } else {
            replacement.to_string()
        })
    }
}
