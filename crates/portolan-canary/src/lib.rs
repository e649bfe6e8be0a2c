//! What people do with canaries: lint, adopt, convert, explain.
//!
//! ```text
//! files, objects ──review, lint──▶ what the CRD refuses, and advice on what it allows
//! Deployment ──adopt──▶ IstioCanaryDeployment, and the steps that take it over without an outage
//! Canary of Flagger, Rollout of Argo ──convert──▶ IstioCanaryDeployment, and what has no counterpart
//! IstioCanaryDeployment with a status ──Standing, explain──▶ its state and why, in words
//! ```
//!
//! Pure: knows no cluster and no clock, and prints nothing.

#![warn(missing_docs)]

mod adopt;
mod convert;
mod explain;
mod lint;
mod review;
mod rollout;
mod standing;

pub use adopt::adopt;
pub use convert::{Conversion, convert};
pub use explain::{explain, metric_line};
pub use lint::{Advice, RULES, lint};
pub use review::{Review, definitions, review, review_objects};
pub use rollout::{Rollout, RolloutError};
pub use standing::{RevisionWait, Standing};
