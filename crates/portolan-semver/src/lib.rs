//! Semantic versions and constraints by the rules of Masterminds semver 3.3, which Helm, sprig and Flux use.
//!
//! Versions may omit parts and begin with `v`; constraints have their own rules for ranges, wildcards and
//! pre-releases. Error texts are those of the original.

#![warn(missing_docs)]

mod constraint;
mod form;
mod version;

pub use constraint::{ConstraintError, Constraints};
pub use version::{Version, VersionError};
