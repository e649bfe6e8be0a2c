//! The files that Kustomizations and charts are made of: artifacts as Flux packs them, those that are generated of others,
//! and those that lie outside of the repository.

pub(crate) mod artifact;
pub(crate) mod artifact_generator;
pub(crate) mod mapped_sources;
pub(crate) mod outside;
