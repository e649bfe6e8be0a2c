//! Moves an application from one revision to the next, and back when the new one is worse.
//!
//! ```text
//! Spec (what the user writes) ──▶ Revision ──┐
//! Status (what is known) ────────────────────┼─▶ step ──▶ Status, Effects ──▶ objects (what the slots and routes are)
//! Observed (pods, routes, metrics, tokens) ──┘
//! ```
//!
//! The kind is `IstioCanaryDeployment`. An application has two slots; one serves, the other takes the next revision. A
//! promotion moves traffic from one to the other and touches no pod that has proven itself. [`step`] holds every decision,
//! and every file below `step/` one part of it; `portolan-judge` says what measurements mean.
//!
//! Nothing here knows a cluster, Prometheus or the clock.

#![warn(missing_docs)]

mod time;

mod config;
mod crd;
mod phase;
mod revision;
mod slot;
mod spec;
mod tokens;
mod traffic;

mod condition;
mod evidence;
mod history;
mod metric_state;
mod plan;
mod status;

mod effect;
mod notification;
mod observed;
mod step;

pub mod objects;

pub use condition::Condition;
pub use config::{
    ConfigKind, ConfigRef, ConfigVersion, MISSING, NOT_TRACKED, config_refs, content_hash, copy_of,
    use_copies,
};
pub use crd::{analysis_crds_yaml, crd_yaml};
pub use effect::Effect;
pub use history::{Actor, MetricSummary, Record};
pub use metric_state::{MetricState, MetricVerdict};
pub use notification::{notification_body, recipients};
pub use observed::{
    Deletion, GateAnswer, Measurement, Observed, ObservedSlot, Problem, Trouble, TroubleKind,
    Workload,
};
pub use phase::{HoldReason, Outcome, Phase};
pub use plan::{Plan, PlannedStep, peak_replicas};
pub use revision::{Revision, canonical_json};
pub use slot::{Slot, Slots};
pub use spec::*;
pub use status::{
    Canary, Comparison, Decision, Fence, Hold, Placed, SCHEMA, SlotPlan, Status, Tried,
};
pub use step::step;
pub use time::{Span, SpanError, Time};
pub use tokens::{ANNOTATION_PREFIX, ActedOn, Command, Tokens};
pub use traffic::{Mirror, Traffic};
