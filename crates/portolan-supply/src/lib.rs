//! What a Flux repository needs and does not hold.
//!
//! ```text
//! portolan-flux ──asks──▶ Remote ──▶ portolan-sources: git, registries, chart repositories, buckets
//!      │                    └──────▶ the work tree, when a source is this very repository
//!      └──────asks─────▶ Opener ──▶ portolan-sops: values opened, or placeholders without a key
//!                           └─────▶ KnownSecrets: what was opened, so that nothing of it is printed
//! ```
//!
//! portolan-flux knows the questions and no network, portolan-sources the network and no Flux; this crate stands
//! between them. It reads no environment: keys, logins and the cache are given by the caller.

#![warn(missing_docs)]

mod address;
mod bases;
mod login;
mod netrc;
mod opener;
mod remote;
mod source_mapping;

pub use address::same_repository;
pub use netrc::Netrc;
pub use opener::{Opener, WithoutKeys};
pub use remote::{ChartsAtHand, OwnTree, Remote};
pub use source_mapping::{SourceMapping, SourceMappingError};
