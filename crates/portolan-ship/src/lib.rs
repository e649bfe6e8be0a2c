//! Builds artifacts, with one result for each, whatever happens to the others.
//!
//! ```text
//! portolan.yaml ──▶ Ship ──plan──▶ units of the engine ──observe──▶ builders ──▶ images in the store
//!                                        └▶ journal: queued, started, done, failed, skipped, cancelled
//! ```
//!
//! Begin at [`Ship::read`], [`plan`] and [`finish`]. A [`Builder`] gets a [`Task`] and returns a result: it has no event
//! code, and neither the journal nor the engine can be reached from it. Builders and deployers of other programs are added to
//! a run by [`OwnWork`].

#![warn(missing_docs)]

mod document;
mod draft;
mod schema;

mod announce;
mod api;
mod runs;

mod base;
mod batch;
mod build;
mod builder;
mod check;
mod commit_files;
mod context;
mod deploy;
mod dev;
mod explain;
mod extension;
mod flux_objects;
mod git_facts;
mod git_images;
mod helm_chart;
mod inputs;
mod observe;
mod orphans;
mod outcome;
mod output_log;
mod parts;
mod preview;
mod process;
mod push;
mod render;
mod selection;
mod skaffold;
mod task;

pub use announce::{ShipOutcome, ship_stopped};
pub use api::{Addresses, EventApi, LiveRun, ServedRun, SessionError, serve_skaffold};
pub use base::{BaseImageError, BaseImages, base_names};
pub use batch::{Batch, BatchBuilder, BatchError};
pub use build::{finish, plan, stop_at_first_failure};
pub use builder::{BuildSetup, Builder, ShipError};
pub use check::{
    CheckError, CheckResult, CheckStatus, Passed, Tester, Verifier, VerifySetup, finish_tests,
    finish_verify, needs_cluster, plan_tests, plan_verify, tested,
};
pub use commit_files::{CommitError, CommitFiles};
pub use context::{ContextError, choose_context};
pub use deploy::{
    DeployError, DeploySetup, DeployedStep, Deployer, ObjectResult, ObjectStatus, StepResult,
    StepStatus, delete_step, finish_deploy, plan_deploy, try_delete_step,
};
pub use dev::{
    ChangedFiles, DevEvent, DevEvents, DevProject, DevSession, DirtySet, FileChanges, FluxError,
    FluxOwner, SuspendedFlux, SyncCount, SyncError, flux_owners, guard_suspended, resume_left,
    sync_files,
};
pub use document::{
    API_VERSION, Adjustments, AfterFailure, Artifact, ArtifactSource, ArtifactTest, BaseImage,
    ClusterCheck, CommandCheck, CommandOutput, CommandSource, ConfigCheck, DeployCheck,
    DeploySource, DeployStep, DevSettings, DockerfileEngine, DockerfileSource, DocumentError,
    Effective, EffectiveValue, Fault, FileCheck, FileTime, FluxSource, ForwardRule, GitSource,
    HelmSource, HttpCheck, HttpTarget, ImageCheck, KIND, MAX_ARTIFACTS, MAX_DOCUMENT_BYTES,
    OciSource, RolloutSource, SecretPlace, SecretSource, Ship, SyncRule, TestSource, VerifySource,
    effective, has_document, parse_namespace, parse_registry, parse_set,
};
pub use draft::{Draft, DraftError, SkaffoldError, draft_of_directory, draft_of_skaffold};
pub use explain::{ArtifactExplanation, ArtifactPlan, finish_explain, finish_plans, plan_explain};
pub use extension::{OwnWork, own_artifact, own_step, own_test, own_verification};
pub use git_facts::GitFacts;
pub use outcome::{ArtifactResult, ArtifactStatus, BuildResult, Built};
pub use output_log::KeptOutput;
pub use preview::{
    ComparedArtifact, ImageDifference, ImagePreview, compare_artifacts, finish_preview,
    plan_preview,
};
pub use process::{End, Ended, Program};
pub use push::{PushError, Pushed, Pusher, finish_push, plan_push};
pub use render::{RenderError, RenderedStep, manifests_yaml, read_manifests, render, unnamed};
pub use runs::{RunError, ShipRun};
pub use schema::schema;
pub use selection::{UnknownArtifact, choose_artifacts, select_steps, select_verifications};
pub use skaffold::{DevControl, DevStages, OutlinedArtifact, RunOutline, SkaffoldTurns};
pub use task::Task;
