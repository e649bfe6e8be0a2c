//! Which subcharts take part in a render, under which names and with which defaults.
//!
//! ```text
//! Package + values ──tags, conditions, aliases──▶ Selection ──import-values──▶ Plan
//! ```
//!
//! A [`Selection`] depends on the values, a [`Plan`] only on the selection. So a chart that is rendered with many
//! values needs only a few plans.

mod graph;
mod plan;

use std::sync::Arc;

use portolan_semver::{Constraints, Version};

use crate::package::Package;
use crate::profile::Profile;
use crate::values::Tree;
use crate::values::coalesce::TypeMismatch;
use graph::Graph;

pub use plan::Plan;

/// A chart as the values leave it: its name and place, its list of dependencies and the charts below it that stay.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    /// The name here: the alias, where there is one.
    name: String,
    /// The path from the top chart, such as `web/charts/db`.
    path: String,
    /// The entries of the chart's list that stay; none where there is no list, or nothing stays of it.
    listed: Option<Vec<Listed>>,
    /// The charts that stay: each by its place among the package's subcharts.
    kept: Vec<(usize, Self)>,
}

/// An entry of a list of dependencies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Listed {
    /// The place in the package's list.
    index: usize,
    /// The name: the alias, once that has been applied.
    name: String,
    enabled: bool,
}

impl Selection {
    /// Finds the dependencies that the values enable.
    pub(crate) fn of(
        package: &Arc<Package>,
        values: &Tree,
        profile: Profile,
        warnings: &mut Vec<String>,
    ) -> Result<Self, TypeMismatch> {
        let mut graph = Graph::new(package, profile);
        graph.process(values, warnings)?;
        Ok(graph.selection())
    }
}

/// Whether a version lies in a range; what cannot be read lies in none.
pub(crate) fn is_compatible(range: &str, version: &str) -> bool {
    match (Constraints::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.check(&version),
        _ => false,
    }
}
