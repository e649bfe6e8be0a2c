//! Which charts below a chart take part in a render, under which names and with which defaults.
//!
//! ```text
//! Chart + values ──tags, conditions──▶ Selection ──aliases, import-values──▶ Plan
//! ```
//!
//! A [`Selection`] depends on the values, a [`Plan`] on the selection alone: a chart rendered with many values makes
//! a few plans and uses each of them again.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use portolan_gotmpl::{Map, MapType, Value};
use portolan_semver::{Constraints, Version};

use crate::package::{Dependency, ImportValues, Package};
use crate::profile::Profile;
use crate::values::Tree;
use crate::values::coalesce::{Coalescer, Nulls, TypeMismatch};

/// The dependencies that the values leave enabled, for one chart and those below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Selection {
    /// The charts that stay.
    kept: Vec<Kept>,
    /// Which entries of the chart's list of dependencies stay; none where the chart has no list.
    listed: Option<Vec<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kept {
    /// The place among the chart's subcharts.
    subchart: usize,
    /// The name here: the alias, where there is one.
    name: String,
    below: Selection,
}

/// A chart as one render sees it: its name here, its defaults, and the dependencies that are enabled.
#[derive(Debug)]
pub struct Plan {
    package: Arc<Package>,
    name: String,
    path: String,
    values: Tree,
    listed: Option<Vec<Dependency>>,
    dependencies: Vec<Self>,
}

/// Whether a version lies in a range; what cannot be read lies in none.
pub(crate) fn is_compatible(range: &str, version: &str) -> bool {
    match (Constraints::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.check(&version),
        _ => false,
    }
}

// === impl Selection ===

impl Selection {
    /// Finds the dependencies that the values enable.
    pub(crate) fn of(
        chart: &Arc<Package>,
        values: &Tree,
        profile: Profile,
        warnings: &mut Vec<String>,
    ) -> Result<Self, TypeMismatch> {
        let mut selector = Selector { profile, warnings };
        selector.select(chart, chart.name(), values, "")
    }
}

struct Selector<'w> {
    profile: Profile,
    warnings: &'w mut Vec<String>,
}

/// A subchart under the name it would have.
struct Candidate {
    subchart: usize,
    name: String,
}

impl Selector<'_> {
    fn select(
        &mut self,
        chart: &Arc<Package>,
        name: &str,
        values: &Tree,
        path: &str,
    ) -> Result<Selection, TypeMismatch> {
        let Some(listed) = &chart.metadata.dependencies else {
            return Ok(Selection::everything(chart));
        };
        let candidates = candidates(chart, listed);
        if !depends_on_values(chart) {
            return self.keep(chart, candidates, (0..listed.len()).collect(), values, path);
        }
        let provisional = Plan::provisional(chart, name, &candidates);
        let mut coalescer = Coalescer {
            profile: self.profile,
            warnings: self.warnings,
        };
        let coalesced = coalescer.values(&provisional, values, Nulls::Delete)?;
        let enabled: Vec<usize> = (0..listed.len())
            .filter(|index| {
                let dependency = &listed[*index];
                let by_tags = self.enabled_by_tags(dependency, &coalesced);
                self.enabled_by_condition(dependency, &coalesced, path)
                    .unwrap_or(by_tags)
            })
            .collect();
        let removed: Vec<&str> = (0..listed.len())
            .filter(|index| !enabled.contains(index))
            .map(|index| listed[index].key())
            .collect();
        let kept = candidates
            .into_iter()
            .filter(|candidate| !removed.contains(&candidate.name.as_str()))
            .collect();
        let coalesced = Tree::freeze(&Value::Map(coalesced));
        self.keep(chart, kept, enabled, &coalesced, path)
    }

    /// Goes on with the dependencies of the charts that stay. As in Helm, they see the parent's values, and their
    /// conditions begin with the path to them.
    fn keep(
        &mut self,
        chart: &Arc<Package>,
        candidates: Vec<Candidate>,
        listed: Vec<usize>,
        values: &Tree,
        path: &str,
    ) -> Result<Selection, TypeMismatch> {
        let mut kept = Vec::new();
        for Candidate { subchart, name } in candidates {
            let Some(below) = chart.subcharts.get(subchart) else {
                continue;
            };
            let below = self.select(below, &name, values, &format!("{path}{name}."))?;
            kept.push(Kept {
                subchart,
                name,
                below,
            });
        }
        let listed = Some(listed).filter(|listed| !listed.is_empty());
        Ok(Selection { kept, listed })
    }

    fn enabled_by_tags(&mut self, dependency: &Dependency, values: &Rc<Map>) -> bool {
        let Some(Value::Map(tags)) = values.get("tags") else {
            return true;
        };
        let (mut on, mut off) = (false, false);
        for tag in &dependency.tags {
            match tags.get(tag) {
                Some(Value::Bool(true)) => on = true,
                Some(Value::Bool(false)) => off = true,
                Some(_) => self.warnings.push(format!(
                    "Warning: Tag '{tag}' for chart {} returned non-bool value",
                    dependency.key()
                )),
                None => {}
            }
        }
        on || !off
    }

    /// The first path of the condition that leads to a boolean decides.
    fn enabled_by_condition(
        &mut self,
        dependency: &Dependency,
        values: &Rc<Map>,
        path: &str,
    ) -> Option<bool> {
        for condition in dependency.condition.trim().split(',') {
            if condition.is_empty() {
                continue;
            }
            match value_at(values, &format!("{path}{condition}")) {
                Some(Value::Bool(enabled)) => return Some(enabled),
                None | Some(Value::Map(_)) => {}
                Some(_) => self.warnings.push(format!(
                    "Warning: Condition path '{condition}' for chart {} returned non-bool value",
                    dependency.key()
                )),
            }
        }
        None
    }
}

impl Selection {
    /// A chart without a list of dependencies keeps whatever lies in `charts/`.
    fn everything(chart: &Arc<Package>) -> Self {
        let kept = chart.subcharts.iter().enumerate();
        let kept = kept
            .map(|(subchart, below)| Kept {
                subchart,
                name: below.name().to_owned(),
                below: Self::everything(below),
            })
            .collect();
        let listed = chart.metadata.dependencies.as_ref();
        let listed = listed.map(|listed| (0..listed.len()).collect());
        Self { kept, listed }
    }
}

/// The charts in `charts/` that no entry of the list speaks of, then one for each entry that has a fitting chart.
fn candidates(chart: &Package, listed: &[Dependency]) -> Vec<Candidate> {
    let fits = |dependency: &Dependency, chart: &Package| {
        dependency.name == chart.name()
            && is_compatible(&dependency.version, &chart.metadata.version)
    };
    let subcharts = || chart.subcharts.iter().enumerate();
    let unlisted = subcharts()
        .filter(|(_, subchart)| listed.iter().all(|d| !fits(d, subchart)))
        .map(|(index, subchart)| (index, subchart.name()));
    let fitting = listed.iter().filter_map(|dependency| {
        let (index, _) = subcharts().find(|(_, subchart)| fits(dependency, subchart))?;
        Some((index, dependency.key()))
    });
    unlisted
        .chain(fitting)
        .map(|(subchart, name)| Candidate {
            subchart,
            name: name.to_owned(),
        })
        .collect()
}

/// Whether any dependency, here or below, has a condition or tags.
fn depends_on_values(chart: &Package) -> bool {
    let mut listed = chart.metadata.dependencies.iter().flatten();
    listed.any(|d| !d.condition.trim().is_empty() || !d.tags.is_empty())
        || chart.subcharts.iter().any(|below| depends_on_values(below))
}

fn value_at(values: &Rc<Map>, path: &str) -> Option<Value> {
    let mut parts = path.split('.');
    let first = values.get(parts.next()?)?;
    parts.try_fold(first, |value, key| value.as_map()?.get(key))
}

fn table_at(values: &Rc<Map>, path: &str) -> Option<Rc<Map>> {
    value_at(values, path)?.as_map().cloned()
}

// === impl Plan ===

impl Plan {
    /// The plan of a selection: aliases given, values imported.
    pub(crate) fn new(
        chart: &Arc<Package>,
        selection: &Selection,
        profile: Profile,
        warnings: &mut Vec<String>,
    ) -> Result<Self, TypeMismatch> {
        let name = chart.name().to_owned();
        let mut plan = Self::select(chart, name.clone(), name, selection);
        let mut coalescer = Coalescer { profile, warnings };
        plan.import_values(&mut coalescer)?;
        Ok(plan)
    }

    fn select(chart: &Arc<Package>, name: String, path: String, selection: &Selection) -> Self {
        let dependencies = selection.kept.iter().filter_map(|kept| {
            let below = chart.subcharts.get(kept.subchart)?;
            let path = format!("{path}/charts/{}", kept.name);
            Some(Self::select(below, kept.name.clone(), path, &kept.below))
        });
        let all = chart.metadata.dependencies.as_deref().unwrap_or_default();
        let listed = selection.listed.as_ref().map(|indices| {
            let kept = indices.iter().filter_map(|index| all.get(*index));
            kept.map(renamed).collect()
        });
        Self {
            dependencies: dependencies.collect(),
            values: chart.values.clone(),
            package: Arc::clone(chart),
            name,
            path,
            listed,
        }
    }

    /// All candidates with all their subcharts: what conditions are evaluated on.
    fn provisional(chart: &Arc<Package>, name: &str, candidates: &[Candidate]) -> Self {
        let kept = candidates.iter().map(|candidate| Kept {
            subchart: candidate.subchart,
            name: candidate.name.clone(),
            below: match chart.subcharts.get(candidate.subchart) {
                Some(below) => Selection::everything(below),
                None => Selection::default(),
            },
        });
        let selection = Selection {
            kept: kept.collect(),
            listed: None,
        };
        Self::select(chart, name.to_owned(), name.to_owned(), &selection)
    }

    /// Merges the dependencies' defaults into this chart's, and what it imports below that.
    fn import_values(&mut self, coalescer: &mut Coalescer<'_>) -> Result<(), TypeMismatch> {
        for dependency in &mut self.dependencies {
            dependency.import_values(coalescer)?;
        }
        let Some(listed) = &self.listed else {
            return Ok(());
        };
        let merged = coalescer.values(self, &Tree::empty_table(), Nulls::Keep)?;
        let imported = Rc::new(Map::new(MapType::Any, BTreeMap::new()));
        for dependency in listed {
            for import in &dependency.import_values {
                import_one(coalescer, dependency, import, &merged, &imported);
            }
        }
        let own = Tree::freeze(&Value::Map(merged)).thaw();
        if let Value::Map(own) = &own {
            coalescer.tables(own, &imported, "", Nulls::Keep);
        }
        self.values = Tree::freeze(&own);
        Ok(())
    }

    /// The chart as loaded.
    pub fn package(&self) -> &Arc<Package> {
        &self.package
    }

    /// The name here: the alias, where there is one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path from the top chart, such as `web/charts/db`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The defaults, imports included.
    pub fn values(&self) -> &Tree {
        &self.values
    }

    /// The enabled entries of the chart's list, renamed by their aliases.
    pub fn listed(&self) -> &[Dependency] {
        self.listed.as_deref().unwrap_or_default()
    }

    /// The enabled charts below it.
    pub fn dependencies(&self) -> &[Self] {
        &self.dependencies
    }
}

fn renamed(dependency: &Dependency) -> Dependency {
    Dependency {
        name: dependency.key().to_owned(),
        enabled: true,
        ..dependency.clone()
    }
}

fn import_one(
    coalescer: &mut Coalescer<'_>,
    dependency: &Dependency,
    import: &ImportValues,
    merged: &Rc<Map>,
    imported: &Rc<Map>,
) {
    let (child, parent) = match import {
        ImportValues::Export(key) => (format!("exports.{key}"), "."),
        ImportValues::Path { child, parent } => (child.clone(), parent.as_str()),
        ImportValues::Other(_) => return,
    };
    let Some(table) = table_at(merged, &format!("{}.{child}", dependency.name)) else {
        coalescer.warnings.push(format!(
            "Warning: ImportValues missing table from chart {}: \"{child}\" is not a table",
            dependency.name
        ));
        return;
    };
    let table = match parent {
        "." => table,
        path => path.rsplit('.').fold(table, |below, key| {
            let above = Rc::new(Map::new(MapType::Any, BTreeMap::new()));
            above.insert(key, Value::Map(below));
            above
        }),
    };
    coalescer.tables(imported, &table, "", Nulls::Keep);
}
