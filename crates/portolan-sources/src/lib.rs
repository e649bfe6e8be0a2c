//! Fetches everything remote that a repository or a chart names, once, and pins it.
//!
//! ```text
//!   ChartRequest ┐                ┌─▶ HTTP repository (index.yaml, .tgz)
//!   OciRequest   │   Sources      ├─▶ OCI registry
//!   GitRequest   ├──▶ pin? ──no──▶┤─▶ git remote
//!   FileRequest  │     │yes       └─▶ web server, bucket
//!   BucketRequest┘     ▼                  │
//!                   Lock ◀────── Pin ◀────┤
//!                   Cache ◀───── bytes ◀──┘
//! ```
//!
//! A request is resolved to a [`Pin`] (kind, address, version, digest), and a pin to content in the [`Cache`], which
//! is named by its digest and checked whenever it is read. Pinned and cached content needs no network; offline,
//! everything else is refused with an error that names it. A cache may be shared by any number of processes and
//! threads.
//!
//! This crate knows nothing about Flux objects or rendering. It reads no environment: logins and the cache directory
//! are given in [`Options`].

#![warn(missing_docs)]

mod archive;
mod bucket;
mod cache;
mod cache_entries;
mod chart;
mod dependencies;
mod error;
mod file;
mod git;
mod limits;
mod lock;
mod oci;
mod options;
mod sources;
mod time;
mod version_choice;

pub use archive::{ArchiveError, unpack};
pub use bucket::{BucketFiles, BucketPage, BucketRequest};
pub use cache::Cache;
pub use cache_entries::{CacheEntry, CacheRules, Collected};
pub use chart::{ChartArchive, ChartRequest};
pub use dependencies::{VendoredChart, lock_text};
pub use error::SourceError;
pub use file::{FetchedFile, FileRequest};
pub use git::{GitRef, GitRequest, GitTree};
pub use limits::Limits;
pub use lock::{Lock, LockError, Pin, PinKind};
pub use oci::{OciArtifact, OciRef, OciRequest};
pub use options::{Access, Options, Pinning, Watch};
pub use sources::Sources;
