//! Builds artifacts, with one result for each, whatever happens to the others.
//!
//! ```text
//! portolan.yaml ──▶ Ship ──plan──▶ units of the engine ──observe──▶ builders ──▶ images in the store
//!                                        └▶ journal: queued, started, done, failed, skipped, cancelled
//! ```
//!
//! Begin at [`Ship::read`], [`plan`] and [`finish`]. A [`Builder`] gets a [`Task`] and returns a result: it has no event
//! code, and neither the journal nor the engine can be reached from it.

#![warn(missing_docs)]

mod build;
mod builder;
mod document;
mod inputs;
mod observe;
mod outcome;
mod process;
mod task;

pub use build::{finish, plan};
pub use builder::{BuildSetup, Builder, ShipError};
pub use document::{
    API_VERSION, Artifact, ArtifactSource, BaseImage, CommandOutput, CommandSource, DocumentError,
    Fault, KIND, MAX_ARTIFACTS, MAX_DOCUMENT_BYTES, OciSource, Ship,
};
pub use outcome::{ArtifactResult, ArtifactStatus, Built};
pub use process::{End, Ended, Program};
pub use task::Task;
