//! The parts of `portolan dev`: changed files become builds, deployments or copies into pods, while logs and ports of
//! the pods are followed.
//!
//! ```text
//! ChangedFiles ──▶ DevProject::dirty ──┬─▶ artifacts to build ──▶ DevProject::stale_steps ──▶ deploy
//!                                      └─▶ files to copy ──▶ sync
//! DevSession: a task for each log and each forwarded port ──▶ DevEvent
//! ```

mod changed_files;
mod event;
mod flux;
mod forwards;
mod logs;
mod project;
mod session;
mod sync;

pub use changed_files::{ChangedFiles, FileChanges};
pub use event::{DevEvent, DevEvents};
pub use flux::{FluxError, FluxOwner, SuspendedFlux, flux_owners, guard_suspended, resume_left};
pub use project::{DevProject, DirtySet};
pub use session::DevSession;
pub use sync::{SyncCount, SyncError, sync_files};
