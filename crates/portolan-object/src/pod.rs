//! Pods: where a kind has its pod templates, and which container images they name.

pub(crate) mod image;
pub(crate) mod images;
pub(crate) mod pod_template;
