//! What Go's standard library does, where tools written in Go depend on it.
//!
//! [`path`] and [`wildcard`] hold what `path/filepath` does by text, [`regexp`] writes regular expressions anew for the `regex` crate.

#![warn(missing_docs)]

pub mod path;
pub mod regexp;
pub mod wildcard;
