//! The Kustomization, HelmRelease or other Flux object that applies an object.

use std::fmt;

use portolan_yaml::Text;

use crate::gvk::Gvk;

/// The kinds of objects that apply other objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// A Flux Kustomization.
    Kustomization,
    /// A HelmRelease.
    Release,
    /// A ResourceSet.
    ResourceSet,
    /// A FluxInstance.
    Instance,
}

/// What applies an object, and in which cluster.
///
/// It is written `HelmRelease apps/podinfo`; the cluster is written apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The cluster's name; empty where only one cluster is looked at.
    pub cluster: Text,
    /// Its kind.
    pub kind: OwnerKind,
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

impl OwnerKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Kustomization,
        Self::Release,
        Self::ResourceSet,
        Self::Instance,
    ];

    /// The kind as Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kustomization => "Kustomization",
            Self::Release => "HelmRelease",
            Self::ResourceSet => "ResourceSet",
            Self::Instance => "FluxInstance",
        }
    }

    /// The API group of its objects.
    pub fn group(self) -> &'static str {
        match self {
            Self::Kustomization => "kustomize.toolkit.fluxcd.io",
            Self::Release => "helm.toolkit.fluxcd.io",
            Self::ResourceSet | Self::Instance => "fluxcd.controlplane.io",
        }
    }

    /// The kind of owner that an object of a kind is; `None` if it applies nothing.
    pub fn of(gvk: &Gvk) -> Option<Self> {
        let mut kinds = Self::ALL.into_iter();
        kinds.find(|kind| gvk.is(kind.group(), kind.as_str()))
    }
}

impl Owner {
    /// The owner of these names, in no cluster in particular.
    pub fn new(kind: OwnerKind, namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self {
            cluster: Text::default(),
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The same owner in a cluster.
    #[must_use]
    pub fn in_cluster(self, cluster: impl Into<Text>) -> Self {
        Self {
            cluster: cluster.into(),
            ..self
        }
    }
}

impl fmt::Display for OwnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_written_without_its_cluster() {
        let owner = Owner::new(OwnerKind::Release, "apps", "podinfo").in_cluster("production");
        assert_eq!(owner.to_string(), "HelmRelease apps/podinfo");
    }

    #[test]
    fn only_flux_kinds_own_objects() {
        let of = |text: &str| OwnerKind::of(&text.parse().unwrap());
        assert_eq!(
            of("kustomize.toolkit.fluxcd.io/v1/Kustomization"),
            Some(OwnerKind::Kustomization)
        );
        assert_eq!(of("kustomize.config.k8s.io/v1beta1/Kustomization"), None);
    }
}
