//! The versions of Flux and Kubernetes that a cluster is rendered for: how they are written, who chose them, and what
//! differs between them.

pub(crate) mod chosen;
pub(crate) mod flux_version;
pub(crate) mod profile;
pub(crate) mod settings;
