//! The files of Kustomizations and charts: artifacts as Flux packs them, artifacts generated from others, and
//! artifacts outside the repository.

pub(crate) mod artifact;
pub(crate) mod artifact_generator;
pub(crate) mod mapped_sources;
pub(crate) mod outside;
