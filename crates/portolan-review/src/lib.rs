//! Reviews of a Flux repository: what it contains, whether it would work, what a change of it changes and why.
//!
//! ```text
//! FluxRepository ──render──▶ RenderedRepository ──▶ inventory, graph, judge (Verdicts), explain (ObjectExplanation)
//!     ├─ Trees ──compare──▶ Comparison (a portolan_diff::Report with causes)
//!     └─ Watch ──render, again and again──▶ WatchedState
//! ```
//!
//! These are plain functions that return values; the command line, a page and other programs call the same ones.
//! Nothing is printed here: the caller's [`Runner`] decides how the engine's units are run and shown.
//! `examples/review` in the repository is an example program.
//!
//! portolan-flux renders, and portolan-supply fetches what a repository does not contain. This crate reads no
//! environment and knows no terminal.

#![warn(missing_docs)]

mod error;
mod repository;
mod runner;
mod settings_file;
mod source_check;

mod rendered;
mod status;

mod chart_info;
mod clip;
mod experiment;
pub mod inventory;
mod selectable;
mod selected_output;

pub mod compare;
pub mod explain;
mod graph;
pub mod judge;
pub mod watch;

pub use chart_info::{ChartInfo, source_name};
pub use clip::clip;
pub use error::ReviewError;
pub use graph::{Graph, GraphExtent, GraphFormat, TreeLine};
pub use rendered::{Missing, ProblemsAtHand, RenderedRepository, cluster_problems};
pub use repository::{FluxRepository, RenderOptions, RenderSettings, Supply};
pub use runner::{QuietRunner, Runner};
pub use selectable::{has_known_kinds, selectable, selectable_of};
pub use selected_output::{OwnerOutput, SelectedOutput};
pub use status::{Health, Statuses};
