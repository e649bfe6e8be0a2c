//! From paths and addresses to kustomization files and resources.

pub(crate) mod decode;
pub(crate) mod deprecation;
pub(crate) mod fetch;
pub(crate) mod kustomization;
pub(crate) mod loader;
pub(crate) mod read;
