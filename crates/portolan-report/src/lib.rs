//! Findings written for people and programs: CSV, Markdown, SARIF, `JUnit`, GitHub annotations.
//!
//! ```text
//! what a command found ──▶ Finding, Case, Grid ──▶ text of one format
//! ```
//!
//! Findings with one cause are reported together ([`group`]), and a finding of several clusters is reported once
//! ([`merge_clusters`]).
//!
//! This crate does not know what was checked: a [`Finding`](portolan_object::Finding) has a place, a rule and a
//! message.

#![warn(missing_docs)]

mod github;
mod grid;
mod group;
mod junit;
mod sarif;

pub use github::github;
pub use grid::Grid;
pub use group::{Group, cause_key, group, merge_clusters};
pub use junit::{Case, Outcome, Suite, junit};
pub use sarif::{Run, Tool, sarif};
