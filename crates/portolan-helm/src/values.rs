//! Values: the configuration of a chart's templates, before and during a render.
//!
//! ```text
//! values.yaml ─▶ Tree ─┐
//! -f files    ─▶ Tree ─┤ overrides        coalesce            render
//! --set …     ─▶ Tree ─┴──────────▶ Tree ──────────▶ gotmpl maps ──────▶ templates
//! ```
//!
//! A [`Tree`] is immutable and shared between threads and renders; coalescing turns it into the mutable, aliased
//! maps that templates work on.

pub(crate) mod coalesce;
pub(crate) mod json;
mod overrides;
pub mod schema;
mod strvals;
mod table;
mod tree;

pub use overrides::{Overrides, OverridesError};
pub use strvals::{MAX_INDEX, MAX_NESTING, SetError, SetKind, set};
pub use table::{Table, TableIter};
pub use tree::Tree;
