//! What differs between two sets of rendered objects, and what that would do to a cluster.
//!
//! ```text
//! old objects ─┐
//!              ├─ pair ─▶ compare fields ─▶ lint ─▶ hide secrets ─▶ Report ─▶ text, JSON, Markdown, HTML, annotations
//! new objects ─┘
//! ```
//!
//! The entry point is [`diff`]; the functions of [`render`] print its [`Report`]. A report contains no secret: values
//! of Secrets are removed while it is made, so no format can show them.
//!
//! This crate knows Kubernetes' objects and what Flux does with them. It does not know where the objects come from.

#![warn(missing_docs)]

mod side;

mod field;
mod list_key;
mod sequence;

mod pairing;
mod strip;

mod danger;
mod failure;
mod image;
mod restart;

mod mask;
mod report;

pub mod render;

pub use danger::RULES;
pub use failure::{Effect, FailedSide, Failure, InputChange};
pub use field::{Difference, Field, Shown, compare};
pub use image::ImageChange;
pub use report::{Cause, Change, ChangeKind, Counts, Options, Report, Unserved, diff};
pub use restart::Restart;
pub use sequence::{Run, align};
pub use side::Batch;
pub use strip::{COMMON_ATTRIBUTES, StripAttributes};
