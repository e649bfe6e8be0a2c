//! Charts and their dependencies while Portolan determines which of them are enabled.
//!
//! In Helm, charts point to each other. A chart that gets another name is copied, but not its subcharts. This has
//! visible effects: a chart used under two names shares its unlisted subcharts, which then belong to the name that
//! was handled last, and shares its list of dependencies, in which aliases are applied once. To reproduce this,
//! charts are places in a table here, and lists hold places in another table.

use std::rc::Rc;
use std::sync::Arc;

use portolan_gotmpl::{Map, Value};

use super::plan::{Plan, value_at};
use super::{Listed, Selection, is_compatible};
use crate::package::{Dependency, Package};
use crate::profile::Profile;
use crate::values::Tree;
use crate::values::coalesce::{Coalescer, Nulls, TypeMismatch};

/// The charts, the top one first.
pub(super) struct Graph {
    charts: Vec<Chart>,
    entries: Vec<Entry>,
    profile: Profile,
}

type ChartId = usize;
type EntryId = usize;

#[derive(Clone)]
struct Chart {
    package: Arc<Package>,
    /// The place among the subcharts of the package it lies in.
    place: usize,
    name: String,
    parent: Option<ChartId>,
    dependencies: Vec<ChartId>,
    listed: Option<Vec<EntryId>>,
}

/// An entry of a chart's list, shared by all copies of the chart.
struct Entry {
    package: Arc<Package>,
    index: usize,
    name: String,
    enabled: bool,
}

impl Graph {
    pub(super) fn new(package: &Arc<Package>, profile: Profile) -> Self {
        let mut graph = Self {
            charts: Vec::new(),
            entries: Vec::new(),
            profile,
        };
        graph.add(package, 0, None);
        graph
    }

    fn add(&mut self, package: &Arc<Package>, place: usize, parent: Option<ChartId>) -> ChartId {
        let id = self.charts.len();
        let listed = package.metadata.dependencies.as_ref().map(|listed| {
            let first = self.entries.len();
            for (index, dependency) in listed.iter().enumerate() {
                self.entries.push(Entry {
                    package: Arc::clone(package),
                    index,
                    name: dependency.name.clone(),
                    enabled: dependency.enabled,
                });
            }
            (first..self.entries.len()).collect()
        });
        self.charts.push(Chart {
            package: Arc::clone(package),
            place,
            name: package.name().to_owned(),
            parent,
            dependencies: Vec::new(),
            listed,
        });
        for (place, subchart) in package.subcharts.iter().enumerate() {
            let below = self.add(subchart, place, Some(id));
            self.charts[id].dependencies.push(below);
        }
        id
    }

    /// Applies aliases, and removes what tags and conditions disable.
    pub(super) fn process(
        &mut self,
        values: &Tree,
        warnings: &mut Vec<String>,
    ) -> Result<(), TypeMismatch> {
        self.chart(0, values, "", warnings)
    }

    fn chart(
        &mut self,
        id: ChartId,
        values: &Tree,
        path: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(), TypeMismatch> {
        let Some(listed) = self.charts[id].listed.clone() else {
            return Ok(());
        };
        let candidates = self.candidates(id, &listed);
        self.adopt(id, candidates);
        for entry in &listed {
            self.entries[*entry].enabled = true;
        }
        let seen = if depends_on_values(&self.charts[id].package) {
            let coalesced = self.coalesce(id, values, warnings)?;
            for entry in &listed {
                self.entries[*entry].enabled = self.is_enabled(*entry, &coalesced, path, warnings);
            }
            &Tree::freeze(&Value::Map(coalesced))
        } else {
            values
        };
        let removed: Vec<String> = listed
            .iter()
            .filter(|entry| !self.entries[**entry].enabled)
            .map(|entry| self.entries[*entry].name.clone())
            .collect();
        let mut kept = self.charts[id].dependencies.clone();
        kept.retain(|below| !removed.contains(&self.charts[*below].name));
        let mut stays = listed;
        stays.retain(|entry| !removed.contains(&self.entries[*entry].name));
        // The charts below see this chart's values, and their conditions begin with the path to them.
        for below in &kept {
            let path = format!("{path}{}.", self.charts[*below].name);
            self.chart(*below, seen, &path, warnings)?;
        }
        self.charts[id].listed = Some(stays).filter(|stays| !stays.is_empty());
        self.adopt(id, kept);
        Ok(())
    }

    /// The charts that no entry speaks of, then a copy for each entry that has a fitting chart.
    fn candidates(&mut self, id: ChartId, listed: &[EntryId]) -> Vec<ChartId> {
        let existing = self.charts[id].dependencies.clone();
        let mut candidates: Vec<ChartId> = existing
            .iter()
            .copied()
            .filter(|below| listed.iter().all(|entry| !self.fits(*entry, *below)))
            .collect();
        for entry in listed {
            let fitting = existing.iter().find(|below| self.fits(*entry, **below));
            let alias = self.dependency(*entry).alias.clone();
            if let Some(below) = fitting {
                let mut copy = self.charts[*below].clone();
                if !alias.is_empty() {
                    copy.name.clone_from(&alias);
                }
                candidates.push(self.charts.len());
                self.charts.push(copy);
            }
            if !alias.is_empty() {
                self.entries[*entry].name = alias;
            }
        }
        candidates
    }

    fn fits(&self, entry: EntryId, chart: ChartId) -> bool {
        let chart = &self.charts[chart];
        self.entries[entry].name == chart.name
            && is_compatible(
                &self.dependency(entry).version,
                &chart.package.metadata.version,
            )
    }

    fn dependency(&self, entry: EntryId) -> &Dependency {
        let Entry { package, index, .. } = &self.entries[entry];
        let listed = package.metadata.dependencies.as_deref();
        &listed.expect("an entry is made from a list")[*index]
    }

    fn adopt(&mut self, id: ChartId, dependencies: Vec<ChartId>) {
        for below in &dependencies {
            self.charts[*below].parent = Some(id);
        }
        self.charts[id].dependencies = dependencies;
    }

    fn coalesce(
        &self,
        id: ChartId,
        values: &Tree,
        warnings: &mut Vec<String>,
    ) -> Result<Rc<Map>, TypeMismatch> {
        let chart = &self.charts[id];
        let plan = Plan::of(&chart.package, &self.selection_of(id), self.profile);
        let mut coalescer = Coalescer {
            profile: self.profile,
            warnings,
        };
        coalescer.values(&plan, values, Nulls::Delete)
    }

    /// Tags first; the first path of the condition that leads to a boolean has the last word.
    fn is_enabled(
        &self,
        entry: EntryId,
        values: &Rc<Map>,
        path: &str,
        warnings: &mut Vec<String>,
    ) -> bool {
        let dependency = self.dependency(entry);
        let name = &self.entries[entry].name;
        let by_tags = enabled_by_tags(dependency, name, values, warnings);
        for condition in dependency.condition.trim().split(',') {
            if condition.is_empty() {
                continue;
            }
            match value_at(values, &format!("{path}{condition}")) {
                Some(Value::Bool(enabled)) => return enabled,
                None | Some(Value::Map(_)) => {}
                Some(_) => warnings.push(format!(
                    "Warning: Condition path '{condition}' for chart {name} returned non-bool value"
                )),
            }
        }
        by_tags
    }

    /// What is left.
    pub(super) fn selection(&self) -> Selection {
        self.selection_of(0)
    }

    fn selection_of(&self, id: ChartId) -> Selection {
        let chart = &self.charts[id];
        let listed = chart.listed.as_ref().map(|listed| {
            let entry = |id: &EntryId| {
                let entry = &self.entries[*id];
                Listed {
                    index: entry.index,
                    name: entry.name.clone(),
                    enabled: entry.enabled,
                }
            };
            listed.iter().map(entry).collect()
        });
        let kept = chart.dependencies.iter();
        Selection {
            name: chart.name.clone(),
            path: self.path(id),
            kept: kept
                .map(|below| (self.charts[*below].place, self.selection_of(*below)))
                .collect(),
            listed,
        }
    }

    fn path(&self, id: ChartId) -> String {
        let chart = &self.charts[id];
        match chart.parent {
            Some(parent) => format!("{}/charts/{}", self.path(parent), chart.name),
            None => chart.name.clone(),
        }
    }
}

fn enabled_by_tags(
    dependency: &Dependency,
    name: &str,
    values: &Rc<Map>,
    warnings: &mut Vec<String>,
) -> bool {
    let Some(Value::Map(tags)) = values.get("tags") else {
        return true;
    };
    let (mut on, mut off) = (false, false);
    for tag in &dependency.tags {
        match tags.get(tag) {
            Some(Value::Bool(true)) => on = true,
            Some(Value::Bool(false)) => off = true,
            Some(_) => warnings.push(format!(
                "Warning: Tag '{tag}' for chart {name} returned non-bool value"
            )),
            None => {}
        }
    }
    on || !off
}

/// Whether any dependency, here or below, has a condition or tags.
fn depends_on_values(package: &Package) -> bool {
    let mut listed = package.metadata.dependencies.iter().flatten();
    listed.any(|d| !d.condition.trim().is_empty() || !d.tags.is_empty())
        || package
            .subcharts
            .iter()
            .any(|below| depends_on_values(below))
}
