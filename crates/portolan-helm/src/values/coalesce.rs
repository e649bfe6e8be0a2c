//! Coalescing: adds a chart's defaults to the given values, for the chart and all its subcharts.
//!
//! It works on the same maps that templates will see, because Helm's method has visible effects: tables below
//! `global` are passed to subcharts by reference, so the parent sees what a subchart's defaults add to them.
//!
//! There are two variants. *Coalescing* removes a key whose value is null; *merging*, used while dependencies are
//! determined, keeps nulls for the coalescing that follows.

use std::collections::BTreeMap;
use std::rc::Rc;

use portolan_gotmpl::fmt::{display, sprintf};
use portolan_gotmpl::{Map, MapType, Value};

use crate::dependency::Plan;
use crate::profile::Profile;
use crate::values::Tree;
use crate::values::tree::thaw_table;

/// The longest value shown in an error.
const MAX_SHOWN: usize = 10_000;

/// What happens to nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// A null takes the default away.
    Delete,
    /// Nulls stay.
    Keep,
}

/// Coalesces values with a chart's and its dependencies' defaults; warnings are what Helm logs.
pub(crate) struct Coalescer<'w> {
    pub(crate) profile: Profile,
    pub(crate) warnings: &'w mut Vec<String>,
}

/// A subchart's name stands for something that is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("type mismatch on {name}: {found}")]
pub struct TypeMismatch {
    /// The subchart.
    pub name: String,
    /// What Go's `%t` prints of the value.
    pub found: String,
}

impl Coalescer<'_> {
    /// Coalesces a copy of the values with the chart's.
    pub(crate) fn values(
        &mut self,
        plan: &Plan,
        values: &Tree,
        nulls: Nulls,
    ) -> Result<Rc<Map>, TypeMismatch> {
        let top = values.as_table().map(thaw_table).unwrap_or_default();
        let top = Rc::new(Map::new(MapType::Any, top));
        self.chart(plan, &top, "", nulls)?;
        Ok(top)
    }

    fn chart(
        &mut self,
        plan: &Plan,
        target: &Rc<Map>,
        prefix: &str,
        nulls: Nulls,
    ) -> Result<(), TypeMismatch> {
        let prefix = joined(prefix, plan.name());
        self.defaults(plan, target, &prefix, nulls);
        for subchart in plan.dependencies() {
            let name = subchart.name();
            let table = match target.get(name) {
                None => {
                    let table = Rc::new(Map::new(MapType::Any, BTreeMap::new()));
                    target.insert(name, Value::Map(Rc::clone(&table)));
                    table
                }
                Some(Value::Map(table)) => table,
                Some(other) => {
                    let shown = sprintf("%t", &[other], MAX_SHOWN).unwrap_or_default();
                    return Err(TypeMismatch {
                        name: name.to_owned(),
                        found: display(&shown),
                    });
                }
            };
            self.globals(&table, target, &prefix);
            self.chart(subchart, &table, &prefix, nulls)?;
        }
        Ok(())
    }

    /// Puts the chart's own defaults below the target.
    fn defaults(&mut self, plan: &Plan, target: &Rc<Map>, prefix: &str, nulls: Nulls) {
        let Some(defaults) = plan.values().as_table() else {
            return;
        };
        for (key, default) in defaults {
            match target.get(key) {
                None => {
                    if let Some(default) = self.thaw_default(default, nulls) {
                        target.insert(key.clone(), default);
                    }
                }
                Some(Value::Nil) if nulls == Nulls::Delete => {
                    target.borrow_mut().remove(key);
                }
                Some(Value::Map(table)) => {
                    // What is meant for a subchart keeps its nulls: they delete the subchart's own defaults.
                    let is_subchart = plan.dependencies().iter().any(|c| c.name() == &**key);
                    let nulls = if is_subchart { Nulls::Keep } else { nulls };
                    match self.thaw_default(default, nulls) {
                        Some(Value::Map(source)) => {
                            self.tables(&table, &source, &joined(prefix, key), nulls);
                        }
                        None | Some(Value::Nil) => {}
                        Some(_) => self.warnings.push(format!(
                            "warning: skipped value for {prefix}.{key}: Not a table."
                        )),
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// A mutable copy of a default; Helm 4 leaves out nulls where they would not survive anyway.
    fn thaw_default(&self, default: &Tree, nulls: Nulls) -> Option<Value> {
        if self.profile == Profile::Helm4 && nulls == Nulls::Delete {
            return match default {
                Tree::Null => None,
                other => Some(without_nulls(other)),
            };
        }
        Some(default.thaw())
    }

    /// Merges a table below another; the target wins.
    pub(crate) fn tables(
        &mut self,
        target: &Rc<Map>,
        source: &Rc<Map>,
        prefix: &str,
        nulls: Nulls,
    ) {
        if Rc::ptr_eq(target, source) {
            return;
        }
        for (key, value) in source.snapshot() {
            match (target.get(&key), value) {
                (None, value) => target.insert(key, value),
                (Some(Value::Nil), value) if nulls == Nulls::Delete => {
                    // Helm 4 keeps a null where the default is null as well.
                    if self.profile == Profile::Helm3 || !value.is_nil() {
                        target.borrow_mut().remove(&key);
                    }
                }
                (Some(Value::Map(below)), Value::Map(value)) => {
                    self.tables(&below, &value, &joined(prefix, &key), nulls);
                }
                (Some(_), Value::Map(_)) => self.warnings.push(format!(
                    "warning: cannot overwrite table with non table for {} (table)",
                    joined(prefix, &key)
                )),
                (Some(Value::Map(_)), Value::Nil) | (Some(_), _) => {}
            }
        }
    }

    /// Hands the globals of a chart down to one of its subcharts.
    fn globals(&mut self, subchart: &Rc<Map>, parent: &Rc<Map>, prefix: &str) {
        let own = match subchart.get("global") {
            None => Rc::new(Map::new(MapType::Any, BTreeMap::new())),
            Some(Value::Map(table)) => table,
            Some(_) => {
                self.skipped_globals("destination");
                return;
            }
        };
        match parent.get("global") {
            None => {}
            Some(Value::Map(handed)) => self.hand_down(&own, &handed, prefix),
            Some(_) => {
                self.skipped_globals("source");
                return;
            }
        }
        subchart.insert("global", Value::Map(own));
    }

    fn hand_down(&mut self, own: &Rc<Map>, handed: &Rc<Map>, prefix: &str) {
        for (key, value) in handed.snapshot() {
            match (own.get(&key), value) {
                (None, Value::Map(table)) => own.insert(key, Value::Map(shallow_copy(&table))),
                (Some(Value::Map(below)), Value::Map(table)) => {
                    let copy = shallow_copy(&table);
                    self.tables(&copy, &below, &joined(prefix, &key), Nulls::Keep);
                    own.insert(key, Value::Map(copy));
                }
                (Some(_), Value::Map(_)) => self.warnings.push(format!(
                    "Conflict: cannot merge map onto non-map for {key:?}. Skipping."
                )),
                (Some(Value::Map(_)), _) => {
                    self.warnings.push(format!("key {key} is table. Skipping"));
                }
                (_, value) => own.insert(key, value),
            }
        }
    }

    fn skipped_globals(&mut self, which: &str) {
        self.warnings.push(format!(
            "warning: skipping globals because {which} global is not a table."
        ));
    }
}

/// A table with the same entries: tables inside stay shared.
fn shallow_copy(table: &Rc<Map>) -> Rc<Map> {
    Rc::new(Map::new(MapType::Any, table.borrow().clone()))
}

fn without_nulls(tree: &Tree) -> Value {
    match tree {
        Tree::Table(table) => Value::map(
            table
                .iter()
                .filter(|(_, value)| **value != Tree::Null)
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect(),
        ),
        other => other.thaw(),
    }
}

fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}
