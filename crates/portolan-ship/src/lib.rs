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

mod document;
mod draft;
mod schema;

mod api;
mod runs;

mod base;
mod build;
mod builder;
mod deploy;
mod explain;
mod inputs;
mod observe;
mod orphans;
mod outcome;
mod output_log;
mod parts;
mod process;
mod push;
mod render;
mod task;

pub use api::{EventApi, ServedRun, SessionError};
pub use base::{BaseImageError, BaseImages, base_names};
pub use build::{finish, plan, stop_at_first_failure};
pub use builder::{BuildSetup, Builder, ShipError};
pub use deploy::{
    DeployError, DeploySetup, ObjectResult, ObjectStatus, StepResult, StepStatus, delete_step,
    finish_deploy, plan_deploy,
};
pub use document::{
    API_VERSION, Artifact, ArtifactSource, BaseImage, CommandOutput, CommandSource, DeploySource,
    DeployStep, DockerfileEngine, DockerfileSource, DocumentError, Effective, EffectiveValue,
    Fault, KIND, MAX_ARTIFACTS, MAX_DOCUMENT_BYTES, OciSource, SecretPlace, SecretSource, Ship,
    effective, has_document,
};
pub use draft::{Draft, DraftError, SkaffoldError, draft_of_directory, draft_of_skaffold};
pub use explain::{ArtifactExplanation, finish_explain, plan_explain};
pub use outcome::{ArtifactResult, ArtifactStatus, BuildResult, Built};
pub use output_log::KeptOutput;
pub use process::{End, Ended, Program};
pub use push::{PushError, Pushed, Pusher, finish_push, plan_push};
pub use render::{RenderError, RenderedStep, manifests_yaml, render, unnamed};
pub use runs::{RunError, ShipRun};
pub use schema::schema;
pub use task::Task;
