//! Behaviour of Go's standard library that tools written in Go depend on.
//!
//! | module | does what Go's package does |
//! | --- | --- |
//! | [`fmt`] | `fmt`: values in their default format and under the verbs of `Printf` |
//! | [`json`] | `encoding/json`: texts and numbers as its encoder writes them |
//! | [`path`], [`wildcard`] | `path/filepath`, on the text of paths |
//! | [`regexp`] | `regexp`: translates expressions for the `regex` crate |
//! | [`strconv`] | `strconv`: numbers and quoted texts, read and written |
//! | [`time`] | `time`: durations, layouts and zones |
//!
//! Go's strings are any bytes; [`marked`] holds them in Rust's strings.

#![warn(missing_docs)]

pub mod fmt;
pub mod json;
pub mod marked;
pub mod path;
pub mod regexp;
pub mod strconv;
pub mod time;
pub mod wildcard;
