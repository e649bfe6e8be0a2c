//! Behaviour of Go's standard library that tools written in Go depend on.
//!
//! [`path`] and [`wildcard`] do what `path/filepath` does with the text of paths; [`regexp`] translates regular
//! expressions for the `regex` crate.

#![warn(missing_docs)]

pub mod path;
pub mod regexp;
pub mod wildcard;
