//! An OCI image layout on disk that many processes build into, and directories that images are made of.
//!
//! ```text
//! Directory (files to build from) ──▶ portolan-image ──▶ Run (holds what it uses) ──▶ Store
//! ```
//!
//! portolan-image knows how bytes are laid out and touches no disk; this crate knows where they lie. The store is itself a
//! valid layout: `skopeo copy oci:STORE:web …` works. What it keeps beside the blobs lies below `portolan/` in it.

#![warn(missing_docs)]

mod action;
mod directory;
mod error;
mod gc;
mod import;
mod lock;
mod refs;
mod run;
mod store;

pub use action::ActionResult;
pub use directory::Directory;
pub use error::StoreError;
pub use gc::Collected;
pub use import::ImportError;
pub use run::Run;
pub use store::Store;
