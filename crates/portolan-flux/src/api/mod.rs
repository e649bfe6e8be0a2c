//! Flux's own kinds as typed views of rendered objects.
//!
//! Only fields that change a render are read. A field of the wrong type is an error that names its path and place.
//! All errors of an object are collected, so the user can fix the file in one go.

mod fields;
mod helm_release;
mod kustomization;
mod resource_set;
mod source;

pub use fields::FieldError;
pub use helm_release::{
    Chart, ChartSpec, CommonMetadata, CrdsPolicy, HelmRelease, PostRenderer, ValuesReference,
};
pub use kustomization::{
    Decryption, Dependency, Kustomization, PostBuild, SubstituteReference, SubstituteStrategy,
};
pub use resource_set::{
    FluxInstance, InputProvider, InputStrategy, InputsFrom, ResourceSet, Sync, Template,
};
pub use source::{GitRef, HelmRepositoryType, OciRef, Source, SourceSpec};

use std::fmt;

use portolan_yaml::Text;

/// The name of an object of a known kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: Text,
    /// The name.
    pub name: Text,
}

/// A reference to a source by kind and name, the namespace filled in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceRef {
    /// `GitRepository`, `OCIRepository`, `HelmRepository`, `HelmChart`, `Bucket` or `ExternalArtifact`.
    pub kind: Text,
    /// Which one.
    pub id: NamespacedName,
}

/// Which kind of object holds data for substitution or values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKind {
    /// A `ConfigMap`.
    ConfigMap,
    /// A `Secret`.
    Secret,
}

impl DataKind {
    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

impl NamespacedName {
    /// A name in a namespace.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}
