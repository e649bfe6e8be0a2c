//! Says what an API server would refuse in an object, before one is asked.
//!
//! A [`Catalogue`] holds the types of one Kubernetes release, of Flux, and of every `CustomResourceDefinition` it is
//! given; [`Catalogue::check`] walks an object beside its type:
//!
//! ```text
//! data/kubernetes.txt ──┐
//! data/flux.jsonl ──────┼─▶ Catalogue ──check(object)──▶ Violation (path, position, problem) …
//! definitions ──────────┘        └── rules in CEL
//! ```
//!
//! It must not cry wolf: what it cannot judge it lets pass, and says so. It knows nothing of files, repositories or findings of other
//! kinds, and prints no value of an object.
//!
//! Own code rather than a JSON-schema crate: Kubernetes' types are a small table that is walked in place, and its rules
//! for nulls, quantities, unknown fields and list keys are not JSON schema's.

#![warn(missing_docs)]

mod path;
mod violation;

mod check;
mod pattern;
mod schema;

mod flux;
mod kubernetes;
mod structural;

mod cel;
mod rules;
mod validate;

mod catalogue;

pub use catalogue::{Catalogue, Verdict};
pub use check::is_cidr;
pub use path::{FieldPath, Segment};
pub use violation::{Problem, Violation};
