//! Carries rollouts out on a cluster.
//!
//! ```text
//! caches (watches) ──▶ Observed ──▶ portolan_rollout::step ──▶ Status, written first and under its version
//!      ▲                  ▲                                └─▶ Effects ──▶ objects applied, gates asked, people told
//!      │                  └── answers of metrics and gates, which come when they come
//!      └───────────────────────────── what was applied is seen again
//! ```
//!
//! Every decision is made in `portolan-rollout`; this crate sees and does. A look that finds no news writes nothing. What
//! is remembered between two looks can be lost: a process that dies anywhere is followed by one that goes on.

mod kinds;
mod point;
mod queue;
mod rollout;

mod caches;
mod contains;
mod context;
mod interests;
mod measure;
mod memory;
mod metrics;

mod announce;
mod apply;
mod effects;
mod measuring;
mod observe;
mod operator;
mod prometheus;
mod reconcile;
mod webhook;

pub use measure::{Measure, NoServer, Question, QuestionArm};
pub use operator::{Operator, OperatorOptions, serve};
pub use point::{Deadly, Point};
