//! Says what an API server would refuse in an object, without asking one.
//!
//! A [`Catalogue`] holds the types of one Kubernetes release, of Flux, and of every `CustomResourceDefinition` it is
//! given; [`Catalogue::check`] walks through an object together with its type:
//!
//! ```text
//! data/kubernetes.txt ──┐
//! data/flux.jsonl ──────┼─▶ Catalogue ──check(object)──▶ Violation (path, position, problem) …
//! definitions ──────────┘        └── rules in CEL
//! ```
//!
//! It must not report false errors: what it cannot check passes, and is reported as not checked. It knows nothing
//! about files, repositories or findings of other kinds, and prints no value of an object.
//!
//! No JSON-schema crate is used: Kubernetes' types are a small table that is read in place, and its rules for nulls,
//! quantities, unknown fields and list keys are not those of JSON schema.

#![warn(missing_docs)]

mod trail;
mod violation;

mod check;
mod pattern;
mod schema;

mod flux;
mod kubernetes;
mod structural;

mod rules;
mod validate;

mod catalogue;

pub use catalogue::{Catalogue, Verdict};
pub use check::is_cidr;
pub use violation::{Problem, Violation};
