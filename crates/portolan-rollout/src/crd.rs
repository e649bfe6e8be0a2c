//! The definition of the kind, for an API server.
//!
//! It is a file, `crd.yaml`, because people read and review it as one. Tests hold it against the types in `spec`: every
//! field of the one is a field of the other, and what it must refuse is refused.

/// Returns the `CustomResourceDefinition` of the kind as YAML.
pub fn crd_yaml() -> &'static str {
    include_str!("crd.yaml")
}
