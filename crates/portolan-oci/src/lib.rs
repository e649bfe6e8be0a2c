//! Pulls from OCI registries: tags, manifests and blobs, every byte checked against its digest.
//!
//! ```text
//!   Reference ──▶ Registry ──401──▶ Challenge ──▶ token service ─┐
//!                   ▲   ▲                ▲                       │
//!        DockerConfig   └────────────────┴──── Authorization ◀───┘
//!                   │
//!                   └──▶ tags · Manifest · blobs
//! ```
//!
//! Why an own client and not `oci-client`: pulling is four GET requests, while that crate brings its own HTTP set-up
//! (whose TLS provider is a second one beside ring), knows no credential helpers, reads tag lists one page at a time
//! and manifests without a bound on their size. What is left to write fits a few screens, and every limit and message
//! is ours.
//!
//! This crate knows nothing of charts or Flux, and caches nothing but tokens.

#![warn(missing_docs)]

mod challenge;
mod docker_config;
mod error;
mod manifest;
mod reference;
mod registry;

pub use challenge::Challenge;
pub use docker_config::{DockerConfig, Login};
pub use error::{DockerConfigError, OciError, ReferenceError};
pub use manifest::{Descriptor, Image, Manifest, ManifestContent, Platform, media_type};
pub use portolan_digest::{Digest, Hasher};
pub use reference::{Pointer, Reference, Repository};
pub use registry::{Registry, RegistryOptions, Transport};
