//! Values that no template of a chart can read, whatever the other values are: found in the templates, without a
//! render.
//!
//! [`crate::unread_values`] tries each value and so also finds those that only this release does not read. Here a
//! value is reported only if it is certain: no branch of a template reads it, the chart does not declare the key, and
//! its schema does not name it.

use std::collections::BTreeSet;

use memchr::memmem;
use portolan_gotmpl::{PathId, ReadPaths, Text};

use crate::chart::{Chart, Prepared};
use crate::dependency::Plan;
use crate::package::{ImportValues, Package};
use crate::profile::Profile;
use crate::render::Error;
use crate::values::{Table, Tree};

/// How a template in a text begins.
const ACTION: &str = "{{";

/// A file beyond this is no template that a chart executes.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// A value that no template reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeverRead {
    /// The keys that lead to it.
    pub path: Vec<Text>,
    /// The keys that the chart knows in its place.
    pub known_keys: BTreeSet<Text>,
}

/// Returns the given values that no template of the chart reads, in key order.
pub fn never_read(chart: &Chart, values: &Tree, profile: Profile) -> Result<Vec<NeverRead>, Error> {
    let preparation = chart.prepare(values, profile, &mut Vec::new(), |_| ())?;
    let prepared = preparation.prepared?;
    let defaults = prepared.plan.values().as_table();
    let Some(given) = values.as_table().filter(|given| has_more(given, defaults)) else {
        return Ok(Vec::new());
    };
    let known = prepared.read_paths.get_or_init(|| read_paths(&prepared));
    if known.is_whole(known.top()) {
        return Ok(Vec::new());
    }
    let texts = if known.executes_texts() {
        texts_in(values)
    } else {
        Vec::new()
    };
    let more = (!texts.is_empty()).then(|| {
        let Prepared {
            plan, templates, ..
        } = prepared.as_ref();
        templates.read_paths_of_texts(plan, known.clone(), &texts)
    });
    let mut search = Search {
        plan: &prepared.plan,
        paths: more.as_ref().unwrap_or(known),
        at: Vec::new(),
        found: Vec::new(),
    };
    search.table(given, search.paths.top(), defaults);
    Ok(search.found)
}

/// Whether a key is given that is not declared. Nearly all releases of most charts give none, and their templates need
/// not be looked at.
fn has_more(given: &Table, defaults: Option<&Table>) -> bool {
    given.iter().any(|(key, value)| {
        let default = defaults.and_then(|defaults| defaults.get(key));
        match (value, default) {
            (Tree::Table(given), Some(default)) => has_more(given, default.as_table()),
            (_, Some(_)) => false,
            (_, None) => true,
        }
    })
}

/// What the chart reads with whichever values.
fn read_paths(prepared: &Prepared) -> ReadPaths {
    let mut known = ReadPaths::default();
    // Shared with every chart below, and often given for charts that come later.
    known.read_keys(["global"]);
    read_by_helm(&prepared.plan, &[], &mut known);
    let mut texts = texts_in(prepared.plan.values());
    texts_of_files(&prepared.plan, &mut texts);
    prepared.templates.read_paths(&prepared.plan, known, &texts)
}

/// Notes what Helm itself reads: conditions, tags, imports, and the values of charts that take no part.
fn read_by_helm(plan: &Plan, above: &[&str], known: &mut ReadPaths) {
    let below = |known: &mut ReadPaths, keys: &[&str]| {
        known.read_keys(above.iter().chain(keys).copied());
    };
    let package = plan.package();
    below(known, &["tags"]);
    if !above.is_empty() {
        below(known, &["global"]);
    }
    for dependency in package.metadata.dependencies.iter().flatten() {
        for condition in dependency.condition.split(',') {
            let keys: Vec<&str> = condition.trim().split('.').collect();
            below(known, &keys);
        }
        let names = [dependency.alias.as_str(), &dependency.name];
        let name = names.into_iter().find(|name| !name.is_empty());
        let name = name.unwrap_or_default();
        for import in &dependency.import_values {
            match import {
                ImportValues::Export(_) => below(known, &[name, "exports"]),
                ImportValues::Path { child, .. } => {
                    let keys: Vec<&str> = [name].into_iter().chain(child.split('.')).collect();
                    below(known, &keys);
                }
                ImportValues::Other(_) => below(known, &[name]),
            }
        }
    }
    let is_rendered = |name: &str| {
        let mut rendered = plan.dependencies().iter();
        rendered.any(|below| below.name() == name && !below.package().metadata.is_library())
    };
    for name in names_below(package).filter(|name| !is_rendered(name)) {
        below(known, &[name]);
    }
    for dependency in plan.dependencies() {
        let above: Vec<&str> = above.iter().copied().chain([dependency.name()]).collect();
        read_by_helm(dependency, &above, known);
    }
}

/// Every name that a chart below this one may have.
fn names_below(package: &Package) -> impl Iterator<Item = &str> {
    let listed = package.metadata.dependencies.iter().flatten();
    let listed = listed.flat_map(|one| [one.name.as_str(), one.alias.as_str()]);
    let there = package.subcharts.iter();
    let there = there.map(|below| below.metadata.name.as_str());
    listed.chain(there).filter(|name| !name.is_empty())
}

/// The texts in values that are templates.
fn texts_in(values: &Tree) -> Vec<Text> {
    fn add(tree: &Tree, found: &mut BTreeSet<Text>) {
        match tree {
            Tree::Text(text) if text.contains(ACTION) => {
                found.insert(text.clone());
            }
            Tree::List(items) => {
                for item in items.iter() {
                    add(item, found);
                }
            }
            Tree::Table(table) => {
                for (key, value) in table.iter() {
                    if key.contains(ACTION) {
                        found.insert(key.clone());
                    }
                    add(value, found);
                }
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    add(values, &mut found);
    found.into_iter().collect()
}

/// The files of charts that a template may read and execute.
fn texts_of_files(plan: &Plan, texts: &mut Vec<Text>) {
    for file in &plan.package().files {
        let is_about_chart = file.name.contains(".md") || file.name.starts_with("crds/");
        let is_template = || memmem::find(&file.content, ACTION.as_bytes()).is_some();
        if !is_about_chart && file.content.len() <= MAX_TEXT_BYTES && is_template() {
            texts.push(Text::from(
                String::from_utf8_lossy(&file.content).into_owned(),
            ));
        }
    }
    for dependency in plan.dependencies() {
        texts_of_files(dependency, texts);
    }
}

/// Given values being held against what is read.
struct Search<'a> {
    plan: &'a Plan,
    paths: &'a ReadPaths,
    at: Vec<Text>,
    found: Vec<NeverRead>,
}

impl Search<'_> {
    fn table(&mut self, given: &Table, path: PathId, defaults: Option<&Table>) {
        if self.paths.is_whole(path) {
            return;
        }
        // Whether a table is empty may be all that a template asks.
        let is_never_empty = defaults.is_some_and(|defaults| !defaults.is_empty());
        let is_counted = self.paths.is_tested(path) && !is_never_empty;
        for (key, value) in given {
            let default = defaults.and_then(|defaults| defaults.get(key));
            self.at.push(key.clone());
            match (self.paths.find(path, key), value) {
                (Some(below), Tree::Table(given)) => {
                    self.table(given, below, default.and_then(Tree::as_table));
                }
                (Some(_), _) => {}
                (None, _) => {
                    let is_known = default.is_some() || is_for_the_author(key);
                    if !is_counted && !is_known && !names(self.plan, key) {
                        self.found.push(NeverRead {
                            path: self.at.clone(),
                            known_keys: self.known_keys(path, defaults),
                        });
                    }
                }
            }
            self.at.pop();
        }
    }

    fn known_keys(&self, path: PathId, defaults: Option<&Table>) -> BTreeSet<Text> {
        let declared = defaults.into_iter().flat_map(Table::keys);
        declared.chain(self.paths.keys(path)).cloned().collect()
    }
}

/// Whether a key is one that nobody expects a chart to read: a place for YAML anchors, a note.
fn is_for_the_author(key: &str) -> bool {
    let begins_with_letter = key.starts_with(|letter: char| letter.is_alphanumeric());
    !begins_with_letter || key.starts_with("x-") || key.to_lowercase().contains("anchor")
}

/// Whether the schema of a chart, or of one below it, has a word of this name.
fn names(plan: &Plan, key: &str) -> bool {
    let word = format!("\"{key}\"");
    let schema = plan.package().schema.as_ref();
    let is_named = schema.is_some_and(|schema| memmem::find(schema, word.as_bytes()).is_some());
    is_named || plan.dependencies().iter().any(|below| names(below, key))
}
