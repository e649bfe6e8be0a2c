//! Steps: their names, their one action, their options, and the blocks and handlers that hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portolan_yaml::{Entry, Map, Node, Position};

use super::super::read_options::{OPTIONS, OptionReader};
use super::super::{Barrier, Block, ModuleCall, RunOn, Step, StepOptions, Work};
use super::{BookReader, json_map, places};
use crate::decision::Decision;
use crate::fault::{Place, advice};

/// How deep books may include each other, and blocks may nest.
const MAX_DEPTH: usize = 16;

/// The most steps of a book, those that it includes too.
const MAX_STEPS: usize = 10_000;

/// Actions that are not modules.
const ACTIONS: &[&str] = &["steps", "include", "flush", "barrier"];

/// Modules that the schema has and that do not exist yet.
const NOT_YET: &[&str] = &["module"];

/// Where a step stands.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) parent: &'a str,
    pub(super) tags: &'a BTreeSet<String>,
    defaults: Option<&'a Node>,
    in_loop: bool,
    in_rescue: bool,
    in_handler: bool,
    pub(super) depth: usize,
}

impl BookReader<'_> {
    /// The steps and handlers of a document. Handlers come first, so that steps can name them.
    pub(super) fn steps_of(
        &mut self,
        file: &Arc<str>,
        spec: &Node,
        parent: &str,
        tags: &BTreeSet<String>,
        depth: usize,
    ) -> Vec<Step> {
        let defaults = spec.get("defaults").filter(|node| node.as_map().is_some());
        self.check_defaults(file, defaults);
        let around = Around {
            parent,
            tags,
            defaults,
            in_loop: false,
            in_rescue: false,
            in_handler: false,
            depth,
        };
        let written = spec.get("handlers").and_then(Node::as_list);
        let nodes: Vec<&Node> = written.into_iter().flatten().collect();
        let first = self.handlers.len();
        let mut scope = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            if let Some(name) = node.get("name").and_then(Node::as_str) {
                scope.entry(name.to_owned()).or_insert(first + index);
            }
            self.handlers.push(None);
        }
        self.scopes.push(scope);
        let prefix = if parent.is_empty() {
            "handlers".to_owned()
        } else {
            format!("{parent}/handlers")
        };
        let handlers = Around {
            parent: &prefix,
            in_handler: true,
            ..around
        };
        let mut names = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            let step = self.step(file, node, handlers, &mut names);
            self.handlers[first + index] = step;
        }
        let steps = spec.get("steps").map(|node| self.list(file, node, around));
        self.scopes.pop();
        steps.unwrap_or_default()
    }

    fn check_defaults(&mut self, file: &Arc<str>, defaults: Option<&Node>) {
        for Entry { key, .. } in defaults.and_then(Node::as_map).into_iter().flatten() {
            if !OPTIONS.contains(&key.as_str()) {
                let hint = advice(key.as_str(), OPTIONS);
                let message = format!("`{}` is not an option of steps", key.as_str());
                self.faults
                    .add_hint(Place::new(file, key.at), message, hint);
            }
        }
    }

    fn list(&mut self, file: &Arc<str>, node: &Node, around: Around<'_>) -> Vec<Step> {
        let Some(items) = node.as_list() else {
            self.faults
                .add(Place::new(file, node.at), "must be a list of steps");
            return Vec::new();
        };
        if around.depth > MAX_DEPTH {
            let message = format!("steps nest deeper than {MAX_DEPTH} levels");
            self.faults.add(Place::new(file, node.at), message);
            return Vec::new();
        }
        let mut names = BTreeMap::new();
        let steps = items
            .iter()
            .filter_map(|item| self.step(file, item, around, &mut names));
        steps.collect()
    }

    fn step(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        around: Around<'_>,
        names: &mut BTreeMap<String, Position>,
    ) -> Option<Step> {
        let place = Place::new(file, node.at);
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.faults
                .add(place, format!("the book has more than {MAX_STEPS} steps"));
            return None;
        }
        let Some(map) = node.as_map() else {
            self.faults
                .add(place, "must be a step: a map with a name and an action");
            return None;
        };
        let name = self.step_name(file, node, names);
        let shown = name.as_deref().unwrap_or("?");
        let id = if around.parent.is_empty() {
            shown.to_owned()
        } else {
            format!("{}/{shown}", around.parent)
        };
        let action = self.action(file, node, map, shown)?;
        let mut options = self.options(file, map, around);
        options.tags.extend(around.tags.iter().cloned());
        self.check_barrier(file, node, &options, around);
        self.check_block_keys(file, map, action);
        let is_written = |key: &str| map.iter().any(|entry| entry.key.as_str() == key);
        let is_block = matches!(
            action.key.as_str(),
            "steps" | "include" | "flush" | "barrier"
        );
        // Defaults of these are for the steps inside.
        if is_block && !is_written("runOn") {
            options.run_on = RunOn::All;
        }
        if is_block && !is_written("throttle") {
            options.throttle = 0;
        }
        let work = self.work(file, node, action, &id, &options, around)?;
        name.is_some().then_some(Step {
            id,
            place,
            work,
            options,
        })
    }

    /// The one action of a step: a module, a block, an include, a flush; or a barrier, if it has nothing else.
    fn action<'n>(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        map: &'n Map,
        shown: &str,
    ) -> Option<&'n Entry> {
        let mut actions: Vec<&Entry> = Vec::new();
        let mut has_unknown = false;
        for entry in map {
            let key = entry.key.as_str();
            let is_module = self.modules.iter().any(|module| module.name == key);
            if is_module || NOT_YET.contains(&key) || matches!(key, "steps" | "include" | "flush") {
                actions.push(entry);
            } else if !OPTIONS.contains(&key) && !matches!(key, "name" | "rescue" | "always") {
                has_unknown = true;
                self.add_unknown_key(file, entry);
            }
        }
        if actions.is_empty() {
            actions.extend(map.iter().find(|entry| entry.key.as_str() == "barrier"));
        }
        match actions.as_slice() {
            [action] => Some(*action),
            // A misspelt module was told already.
            [] if has_unknown => None,
            [] => {
                let message = format!("the step `{shown}` does nothing: it has no action");
                self.faults.add(Place::new(file, node.at), message);
                None
            }
            [_, second, ..] => {
                let all: Vec<String> = actions
                    .iter()
                    .map(|entry| format!("`{}`", entry.key.as_str()))
                    .collect();
                let message = format!("the step `{shown}` has several actions: {}", all.join(", "));
                let hint = "make one step of each".to_owned();
                self.faults
                    .add_hint(Place::new(file, second.key.at), message, Some(hint));
                None
            }
        }
    }

    fn add_unknown_key(&mut self, file: &Arc<str>, entry: &Entry) {
        let key = entry.key.as_str();
        let mut known: Vec<&str> = OPTIONS.to_vec();
        known.extend(self.modules.iter().map(|module| module.name));
        known.extend(ACTIONS);
        let near = portolan_object::similar(key, known.iter(), |name| name);
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "docs/fleet-modules.md lists the modules".to_owned(),
        };
        let message = format!("`{key}` is neither a module nor an option");
        self.faults
            .add_hint(Place::new(file, entry.key.at), message, Some(hint));
    }

    fn check_block_keys(&mut self, file: &Arc<str>, map: &Map, action: &Entry) {
        if action.key.as_str() == "steps" {
            return;
        }
        for key in ["rescue", "always"] {
            if let Some(entry) = map.iter().find(|entry| entry.key.as_str() == key) {
                let message = format!("`{key}` belongs to a block: a step with `steps`");
                self.faults.add(Place::new(file, entry.key.at), message);
            }
        }
    }

    fn step_name(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        names: &mut BTreeMap<String, Position>,
    ) -> Option<String> {
        let Some(written) = node.get("name") else {
            self.faults
                .add(Place::new(file, node.at), "the step has no `name`");
            return None;
        };
        let place = Place::new(file, written.at);
        let name = written.as_str().unwrap_or_default();
        let is_plain = !name.is_empty()
            && name.len() <= 100
            && !name.contains(['/', '\n', '\'', '"', '{', '}', '[', ']', '#']);
        if !is_plain {
            let message = "the name of a step must be a text of at most 100 characters without `/`, quotes and brackets";
            self.faults.add(place, message);
            return None;
        }
        if let Some(first) = names.insert(name.to_owned(), written.at) {
            let message = format!(
                "there are two steps named `{name}` in this list; the first is in line {}",
                first.line
            );
            self.faults.add(place, message);
        }
        Some(name.to_owned())
    }

    fn options(&mut self, file: &Arc<str>, map: &Map, around: Around<'_>) -> StepOptions {
        let defaults = around.defaults.and_then(Node::as_map).into_iter().flatten();
        let mut reader = OptionReader {
            file,
            faults: &mut self.faults,
            scopes: &self.scopes,
        };
        let mut options = StepOptions::default();
        // Options of a step replace the defaults of the book.
        for entry in defaults.chain(map) {
            reader.read(entry, &mut options);
        }
        options
    }

    fn check_barrier(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        options: &StepOptions,
        around: Around<'_>,
    ) {
        if options.barrier == Barrier::None {
            return;
        }
        let reason = if around.in_loop || options.for_each.is_some() {
            "inside a `forEach`: nodes may have different items"
        } else if around.in_rescue {
            "in `rescue`: not every node comes here"
        } else if around.in_handler {
            "in a handler: not every node comes here"
        } else if options.run_on != RunOn::All {
            "on a step that does not run on all nodes"
        } else {
            return;
        };
        let at = node.get("barrier").map_or(node.at, |barrier| barrier.at);
        self.faults.add(
            Place::new(file, at),
            format!("a barrier cannot be {reason}"),
        );
    }

    fn work(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        action: &Entry,
        id: &str,
        options: &StepOptions,
        around: Around<'_>,
    ) -> Option<Work> {
        let inner = Around {
            parent: id,
            tags: &options.tags,
            in_loop: around.in_loop || options.for_each.is_some(),
            depth: around.depth + 1,
            ..around
        };
        let place = Place::new(file, action.key.at);
        match action.key.as_str() {
            "steps" => {
                let steps = self.list(file, &action.value, inner);
                let rescue = Around {
                    in_rescue: true,
                    ..inner
                };
                let rescued = node.get("rescue").map(|node| self.list(file, node, rescue));
                // Not every node comes to `always` in the same way either.
                let always = node.get("always").map(|node| self.list(file, node, rescue));
                Some(Work::Block(Block {
                    steps,
                    rescue: rescued.unwrap_or_default(),
                    always: always.unwrap_or_default(),
                    included: None,
                }))
            }
            "include" => self.include(file, &action.value, inner),
            "flush" => {
                if action.value.as_str() != Some("handlers") {
                    self.faults.add(place, "`flush` must be `handlers`");
                }
                if around.in_handler {
                    self.faults.add(
                        Place::new(file, action.key.at),
                        "a handler cannot flush handlers",
                    );
                }
                Some(Work::Flush)
            }
            "barrier" => Some(Work::Barrier),
            name if NOT_YET.contains(&name) => {
                self.faults
                    .add(place, format!("`{name}` is not available yet"));
                None
            }
            name => {
                let module = self.modules.iter().find(|module| module.name == name)?;
                let Some(mut parameters) = json_map(&action.value) else {
                    let message = format!("`{name}` must be a map of its parameters");
                    self.faults.add(Place::new(file, action.value.at), message);
                    return None;
                };
                self.move_files(file, name, &mut parameters);
                let asserted = match name {
                    "assert" => self.asserted(file, &action.value),
                    _ => Vec::new(),
                };
                Some(Work::Module(ModuleCall {
                    module,
                    parameters,
                    places: places(file, &action.value),
                    asserted,
                }))
            }
        }
    }

    /// The expressions that an `assert` names: one, or a list of them.
    fn asserted(&mut self, file: &Arc<str>, parameters: &Node) -> Vec<Decision> {
        let mut reader = OptionReader {
            file,
            faults: &mut self.faults,
            scopes: &self.scopes,
        };
        let Some(that) = parameters.get("that") else {
            return Vec::new();
        };
        let expressions: Vec<&Node> = match that.as_list() {
            Some(list) => list.iter().collect(),
            None => vec![that],
        };
        let read = expressions.into_iter();
        read.filter_map(|node| reader.decision(node)).collect()
    }
}
