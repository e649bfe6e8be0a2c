//! One Kustomization, from the files of its source to objects.

pub(crate) mod build;
pub(crate) mod generate;
pub(crate) mod metadata;
pub(crate) mod variables;
