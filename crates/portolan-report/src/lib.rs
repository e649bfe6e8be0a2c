//! Findings written for people and programs: CSV, Markdown, SARIF, `JUnit`, GitHub annotations.
//!
//! ```text
//! what a command found ──▶ Finding, Case, Grid ──▶ text of one format
//! ```
//!
//! Nothing here knows what is checked: a [`Finding`](portolan_object::Finding) has a place, a rule and a message.

#![warn(missing_docs)]

mod github;
mod grid;
mod junit;
mod sarif;

pub use github::github;
pub use grid::Grid;
pub use junit::{Case, Outcome, junit};
pub use sarif::{Tool, sarif};
