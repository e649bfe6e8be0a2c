//! Findings written for people and programs: CSV, Markdown, SARIF, `JUnit`, GitHub annotations.
//!
//! ```text
//! what a command found ──▶ Entry, Rule, Case, Grid ──▶ text of one format
//! ```
//!
//! Nothing here knows what is checked: an [`Entry`] has a place, a rule and a message. Whatever finds things maps its
//! findings to entries and prints the text it gets.

#![warn(missing_docs)]

mod entry;
mod github;
mod grid;
mod junit;
mod sarif;

pub use entry::{Entry, Rule, Severity};
pub use github::github;
pub use grid::Grid;
pub use junit::{Case, Outcome, junit};
pub use sarif::{Tool, sarif};
