//! Pulls from OCI registries and pushes to them: tags, manifests and blobs, every byte checked against its digest.
//!
//! ```text
//!   Reference ──▶ Registry ──401──▶ Challenge ──▶ token service ─┐
//!                   ▲   ▲                ▲                       │
//!        DockerConfig   └────────────────┴──── Authorization ◀───┘
//!                   │
//!                   └──▶ tags · Manifest · blobs
//! ```
//!
//! Why not the crate `oci-client`: pulling needs only four GET requests, while that crate has its own HTTP set-up
//! (with a second TLS provider beside ring), no credential helpers, reads tag lists one page at a time, and reads
//! manifests without a size limit. The code here is small, and we control every limit and message.
//!
//! This crate knows nothing about charts or Flux, and caches only tokens.

#![warn(missing_docs)]

mod challenge;
mod docker_config;
mod error;
mod manifest;
mod push;
mod reference;
mod registry;

pub use challenge::Challenge;
pub use docker_config::{DockerConfig, Login};
pub use error::{DockerConfigError, OciError, ReferenceError};
pub use manifest::{Descriptor, Image, Manifest, ManifestContent, Platform, media_type};
pub use portolan_digest::{Digest, Hasher};
pub use push::PushedBlob;
pub use reference::{Pointer, Reference, Repository};
pub use registry::{Registry, RegistryOptions, Transport};
