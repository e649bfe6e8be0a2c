//! What identifies a resource: group, version, kind, name and namespace.

use std::fmt;

use portolan_yaml::Text;

/// The namespace that stands for "has none", in comparisons and in selectors.
pub(crate) const NO_NAMESPACE: &str = "_non_namespaceable_";
const DEFAULT_NAMESPACE: &str = "default";

/// A type: group, version and kind. As a pattern, an empty part matches anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Gvk {
    /// The API group, empty for the core group.
    pub group: Text,
    /// The version.
    pub version: Text,
    /// The kind.
    pub kind: Text,
}

/// A resource's identity at some moment of a build.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceId {
    /// The type.
    pub gvk: Gvk,
    /// The name.
    pub name: Text,
    /// The namespace as written; empty where there is none.
    pub namespace: Text,
}

// === impl Gvk ===

impl Gvk {
    /// Splits an `apiVersion`.
    pub(crate) fn new(api_version: &Text, kind: Text) -> Self {
        let (group, version) = match api_version.split_once('/') {
            Some((group, version)) => (Text::from(group), Text::from(version)),
            None => (Text::default(), api_version.clone()),
        };
        Self {
            group,
            version,
            kind,
        }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether the pattern's parts that are set are the same here.
    pub(crate) fn is_selected(&self, pattern: &Self) -> bool {
        let same = |own: &Text, wanted: &Text| wanted.is_empty() || own == wanted;
        same(&self.group, &pattern.group)
            && same(&self.version, &pattern.version)
            && same(&self.kind, &pattern.kind)
    }
}

/// `Kind.version.group`, the way kustomize writes it.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |text: &Text, none: &'static str| match text.as_str() {
            "" => none.to_owned(),
            text => text.to_owned(),
        };
        let kind = part(&self.kind, "[noKind]");
        let version = part(&self.version, "[noVer]");
        write!(f, "{kind}.{version}.{}", part(&self.group, "[noGrp]"))
    }
}

// === impl ResourceId ===

impl ResourceId {
    /// The identity for comparisons: no namespace is the default one, and a cluster-scoped type has none at all.
    pub(crate) fn comparable(mut self, is_cluster_scoped: bool) -> Self {
        self.namespace = effective_namespace(&self.namespace, is_cluster_scoped);
        self
    }

    /// Whether a selector of exact parts takes this resource; empty parts take all.
    pub(crate) fn is_selected_by(&self, selector: &Self) -> bool {
        let namespace = |id: &Self| effective_namespace(&id.namespace, false);
        (selector.name.is_empty() || selector.name == self.name)
            && (selector.namespace.is_empty() || namespace(selector) == namespace(self))
            && self.gvk.is_selected(&selector.gvk)
    }
}

/// `Kind.version.group/name.namespace`, the way kustomize writes it.
impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() {
            "[noName]"
        } else {
            &self.name
        };
        let namespace = if self.namespace.is_empty() {
            "[noNs]"
        } else {
            &self.namespace
        };
        write!(f, "{}/{name}.{namespace}", self.gvk)
    }
}

/// The namespace that counts in comparisons.
pub(crate) fn effective_namespace(namespace: &Text, is_cluster_scoped: bool) -> Text {
    match namespace.as_str() {
        _ if is_cluster_scoped => Text::from_static(NO_NAMESPACE),
        "" => Text::from_static(DEFAULT_NAMESPACE),
        _ => namespace.clone(),
    }
}
