//! Books inside books: the steps of an included book stand in the place of one step, with inputs and variables of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_yaml::{Entry, Node};
use serde_json::{Map, Value};

use super::super::{Block, Included, Input, Work};
use super::steps::Around;
use super::{BookReader, ReadBook, json_map};
use crate::fault::{Place, advice};

impl BookReader<'_> {
    /// Reads the book that a step includes, and puts its steps in the place of the step.
    pub(super) fn include(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        around: Around<'_>,
    ) -> Option<Work> {
        let place = Place::new(file, node.at);
        self.check_fields(file, node);
        if let Some(git) = node.get("git") {
            self.refuse_git(Place::new(file, git.at), node);
            return None;
        }
        let Some(written) = node.get("path").filter(|path| path.as_str().is_some()) else {
            self.faults
                .add(place, "`include` needs the `path` of a book");
            return None;
        };
        let path = written.as_str().unwrap_or_default();
        let path_place = Place::new(file, written.at);
        let included = self.included(&beside(file, path), &path_place, around)?;
        let given = node.get("inputs").map(json_map);
        let Some(given) = given.unwrap_or_else(|| Some(Map::new())) else {
            self.faults.add(place, "`inputs` must be a map");
            return None;
        };
        self.check_inputs(path, &path_place, &given, &included.values.inputs);
        let compute = crate::compile::ordered(included.values.compute, &mut self.faults);
        Some(Work::Block(Block {
            steps: included.steps,
            included: Some(Arc::new(Included {
                inputs: included.values.inputs,
                given,
                vars: included.values.vars,
                compute,
            })),
            ..Block::default()
        }))
    }

    fn check_fields(&mut self, file: &Arc<str>, node: &Node) {
        for Entry { key, .. } in node.as_map().into_iter().flatten() {
            let known = ["path", "git", "ref", "inputs"];
            if !known.contains(&key.as_str()) {
                let message = format!("`{}` is not a field of `include`", key.as_str());
                let hint = advice(key.as_str(), &known);
                self.faults
                    .add_hint(Place::new(file, key.at), message, hint);
            }
        }
    }

    fn refuse_git(&mut self, place: Place, node: &Node) {
        let reference = node.get("ref").and_then(Node::as_str).unwrap_or_default();
        if reference.is_empty() {
            let message = "an include from git needs a `ref`: a tag or a commit";
            self.faults.add(place, message);
        } else {
            let hint = "copy the book into this repository and include it by `path`".to_owned();
            self.faults
                .add_hint(place, "includes from git are not available yet", Some(hint));
        }
    }

    /// Reads another book, unless it is being read already.
    fn included(&mut self, path: &Utf8Path, place: &Place, around: Around<'_>) -> Option<ReadBook> {
        if self.open.iter().any(|open| open == path) {
            let mut circle: Vec<&str> = self.open.iter().map(|path| path.as_str()).collect();
            circle.push(path.as_str());
            let message = format!(
                "books include each other in a circle: {}",
                circle.join(" → ")
            );
            self.faults.add(place.clone(), message);
            return None;
        }
        let text = match self.read_file(path) {
            Ok(text) => text,
            Err(message) => {
                self.faults.add(place.clone(), message);
                return None;
            }
        };
        self.open.push(path.to_owned());
        let Around {
            parent,
            tags,
            depth,
            ..
        } = around;
        let read = self.document(path.as_str(), &text, parent, tags, depth);
        self.open.pop();
        read
    }

    /// Every given input exists, and every input without a default is given.
    fn check_inputs(
        &mut self,
        path: &str,
        place: &Place,
        given: &Map<String, Value>,
        inputs: &BTreeMap<String, Input>,
    ) {
        for name in given.keys().filter(|name| !inputs.contains_key(*name)) {
            let known: Vec<&str> = inputs.keys().map(String::as_str).collect();
            let message = format!("`{path}` has no input `{name}`");
            self.faults
                .add_hint(place.clone(), message, advice(name, &known));
        }
        for (name, input) in inputs {
            if input.default.is_none() && !given.contains_key(name) {
                let message = format!("`{path}` needs the input `{name}`");
                self.faults.add(place.clone(), message);
            }
        }
    }

    /// Files that an included book names are beside it, and are found from where the first book is.
    pub(super) fn move_files(&self, file: &str, parameters: &mut Map<String, Value>) {
        let parent = |file: &Utf8Path| file.parent().map(Utf8Path::to_owned);
        let first = self.open.first().and_then(|first| parent(first));
        let here = parent(Utf8Path::new(file));
        let (Some(first), Some(here)) = (first, here) else {
            return;
        };
        let Some(below) = here
            .strip_prefix(&first)
            .ok()
            .filter(|below| !below.as_str().is_empty())
        else {
            return;
        };
        for key in crate::compile::FILE_PARAMETERS {
            if let Some(Value::String(path)) = parameters.get_mut(*key)
                && crate::compile::is_book_file(path)
            {
                *path = beside(below.join("book").as_str(), path).into_string();
            }
        }
    }

    fn read_file(&self, path: &Utf8Path) -> Result<String, String> {
        // Names of files in messages begin where the first book is; its own files are found from there.
        let first = self.open.first().and_then(|path| path.parent());
        let relative = first
            .and_then(|first| path.strip_prefix(first).ok())
            .unwrap_or(path);
        let read = self.files.read(relative);
        let bytes = read.map_err(|error| error.to_string())?;
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("`{path}` is not UTF-8"))
    }
}

/// A path relative to the file that names it.
fn beside(file: &str, path: &str) -> Utf8PathBuf {
    let mut parts: Vec<&str> = Vec::new();
    let parent = Utf8Path::new(file).parent().unwrap_or(Utf8Path::new(""));
    let joined = parent.join(path);
    let is_absolute = joined.is_absolute();
    for part in joined.as_str().split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let clean = parts.join("/");
    Utf8PathBuf::from(if is_absolute {
        format!("/{clean}")
    } else {
        clean
    })
}
