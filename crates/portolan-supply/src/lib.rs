//! Supplies what a Flux repository needs and does not contain.
//!
//! ```text
//! portolan-flux ──asks──▶ Remote ──▶ portolan-sources: git, registries, chart repositories, buckets
//!      │                    └──────▶ the work tree, when a source is this very repository
//!      └──────asks─────▶ Opener ──▶ portolan-sops: decrypted values, or placeholders without a key
//!                           └─────▶ KnownSecrets: what was decrypted, so that it is never printed
//! ```
//!
//! portolan-flux knows Flux but no network, portolan-sources knows the network but not Flux; this crate connects
//! them. It reads no environment: the caller gives keys, logins and the cache.

#![warn(missing_docs)]

mod address;
mod bases;
mod lazy_runtime;
mod login;
mod netrc;
mod opener;
mod remote;
mod source_mapping;

pub use address::same_repository;
pub use lazy_runtime::LazyRuntime;
pub use netrc::Netrc;
pub use opener::{Opener, WithoutKeys};
pub use remote::{ChartsAtHand, OwnTree, Remote};
pub use source_mapping::{SourceMapping, SourceMappingError};
