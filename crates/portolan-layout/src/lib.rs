//! An OCI image layout on disk that many processes write to, and directories as sources of images.
//!
//! ```text
//! Directory (files to build from) ──▶ portolan-image ──▶ Run (holds what it uses) ──▶ Store
//! ```
//!
//! portolan-image makes the bytes and uses no disk; this crate stores them. The store is itself a valid layout:
//! `skopeo copy oci:STORE:web …` works. Its other files are below `portolan/` in it.

#![warn(missing_docs)]

mod action;
mod blocks;
mod directory;
mod error;
mod gc;
mod import;
mod lock;
mod refs;
mod run;
mod store;

pub use action::ActionResult;
pub use blocks::KnownBlocks;
pub use directory::Directory;
pub use error::StoreError;
pub use gc::Collected;
pub use import::ImportError;
pub use run::Run;
pub use store::Store;
