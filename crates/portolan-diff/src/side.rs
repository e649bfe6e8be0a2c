//! One side of a comparison: the objects of a rendered repository, by what renders them.

use std::fmt;
use std::sync::Arc;

use portolan_object::Object;
use portolan_yaml::Text;

/// What renders an object.
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

/// The Kustomization, HelmRelease or the like that renders an object, and in which cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The cluster's name; empty when there is only one.
    pub cluster: Text,
    /// What it is.
    pub kind: OwnerKind,
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

/// The objects of one owner.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Who renders them.
    pub owner: Owner,
    /// The objects. Two sides that share them are known to be equal there.
    pub objects: Arc<Vec<Object>>,
}

impl OwnerKind {
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
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::Kustomization => "kustomize.toolkit.fluxcd.io",
            Self::Release => "helm.toolkit.fluxcd.io",
            Self::ResourceSet | Self::Instance => "fluxcd.controlplane.io",
        }
    }
}

impl Owner {
    /// For people: `HelmRelease apps/podinfo`.
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// For programs: `HelmRelease/apps/podinfo`, after the cluster where there are several.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster.is_empty() {
            write!(f, "{}/", self.cluster)?;
        }
        write!(f, "{}/{}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}
