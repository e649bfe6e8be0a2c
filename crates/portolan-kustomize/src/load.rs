//! Loads kustomization files and resources from paths and URLs.

pub(crate) mod decode;
pub(crate) mod deprecation;
pub(crate) mod fetch;
pub(crate) mod kustomization;
pub(crate) mod loader;
pub(crate) mod read;
