//! A chart as one render sees it: its name here, its defaults, and the dependencies that are enabled.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use portolan_gotmpl::{Map, MapType, Value};

use super::{Listed, Selection};
use crate::package::{Dependency, ImportValues, Package};
use crate::profile::Profile;
use crate::values::Tree;
use crate::values::coalesce::{Coalescer, Nulls, TypeMismatch};

/// A chart to render, with the charts below it.
#[derive(Debug)]
pub struct Plan {
    package: Arc<Package>,
    name: String,
    path: String,
    values: Tree,
    listed: Option<Vec<Dependency>>,
    dependencies: Vec<Self>,
}

/// How often the imports of a chart were handled, by the chart that all its aliases share.
type Handled = HashMap<*const Package, usize>;

impl Plan {
    /// The plan of a selection, values imported.
    pub(crate) fn new(
        package: &Arc<Package>,
        selection: &Selection,
        profile: Profile,
        warnings: &mut Vec<String>,
    ) -> Result<Self, TypeMismatch> {
        let mut plan = Self::of(package, selection, profile);
        let mut coalescer = Coalescer { profile, warnings };
        let mut handled = HashMap::new();
        plan.import_values(&mut coalescer, &mut handled)?;
        if handled.values().any(|times| *times > 1) {
            plan.forget_imports(&handled);
        }
        Ok(plan)
    }

    /// The plan of a selection with every chart's own defaults.
    pub(super) fn of(package: &Arc<Package>, selection: &Selection, profile: Profile) -> Self {
        let dependencies = selection.kept.iter().filter_map(|(place, below)| {
            let package = package.subcharts.get(*place)?;
            Some(Self::of(package, below, profile))
        });
        let all = package.metadata.dependencies.as_deref().unwrap_or_default();
        let listed = selection.listed.as_ref().map(|listed| {
            let dependency = |entry: &Listed| {
                Some(Dependency {
                    name: entry.name.clone(),
                    enabled: entry.enabled,
                    ..all.get(entry.index)?.clone()
                })
            };
            listed.iter().filter_map(dependency).collect()
        });
        Self {
            dependencies: dependencies.collect(),
            values: package.defaults(profile).clone(),
            package: Arc::clone(package),
            name: selection.name.clone(),
            path: selection.path.clone(),
            listed,
        }
    }

    /// Merges the dependencies' defaults into this chart's, and what it imports below that.
    ///
    /// Helm writes every import in its long form once it has handled it, in the list that all aliases of a chart share,
    /// and does not know the long form when it comes to the next alias: only the first imports anything.
    fn import_values(
        &mut self,
        coalescer: &mut Coalescer<'_>,
        handled: &mut Handled,
    ) -> Result<(), TypeMismatch> {
        for dependency in &mut self.dependencies {
            dependency.import_values(coalescer, handled)?;
        }
        let Some(listed) = &self.listed else {
            return Ok(());
        };
        let times = handled.entry(Arc::as_ptr(&self.package)).or_default();
        *times += 1;
        let is_first = *times == 1;
        let merged = coalescer.values(self, &Tree::empty_table(), Nulls::Keep)?;
        let imported = empty_map();
        for dependency in listed.iter().filter(|_| is_first) {
            for import in &dependency.import_values {
                import_one(coalescer, dependency, import, &merged, &imported);
            }
        }
        let own = Tree::freeze(&Value::Map(merged));
        self.values = if imported.is_empty() {
            own
        } else {
            let own = own.thaw();
            if let Value::Map(own) = &own {
                coalescer.tables(own, &imported, "", Nulls::Keep);
            }
            Tree::freeze(&own)
        };
        Ok(())
    }

    /// Empties the lists of imports that were handled twice, as Helm leaves them for templates to see.
    fn forget_imports(&mut self, handled: &Handled) {
        let times = handled.get(&Arc::as_ptr(&self.package));
        if times.is_some_and(|times| *times > 1) {
            for dependency in self.listed.iter_mut().flatten() {
                dependency.import_values.clear();
            }
        }
        for dependency in &mut self.dependencies {
            dependency.forget_imports(handled);
        }
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
    let table = value_at(merged, &format!("{}.{child}", dependency.name));
    let Some(Value::Map(table)) = table else {
        coalescer.warnings.push(format!(
            "Warning: ImportValues missing table from chart {}: \"{child}\" is not a table",
            dependency.name
        ));
        return;
    };
    let table = match parent {
        "." => table,
        path => path.rsplit('.').fold(table, |below, key| {
            let above = empty_map();
            above.insert(key, Value::Map(below));
            above
        }),
    };
    coalescer.tables(imported, &table, "", Nulls::Keep);
}

fn empty_map() -> Rc<Map> {
    Rc::new(Map::new(MapType::Any, BTreeMap::new()))
}

/// The value at the end of a path with dots.
pub(super) fn value_at(values: &Rc<Map>, path: &str) -> Option<Value> {
    let mut parts = path.split('.');
    let first = values.get(parts.next()?)?;
    parts.try_fold(first, |value, key| value.as_map()?.get(key))
}
