//! Books inside books: the steps of an included book stand in the place of one step, with inputs and variables of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::BookRepository;
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
        let Some(written) = node.get("path").filter(|path| path.as_str().is_some()) else {
            self.faults
                .add(place, "`include` needs the `path` of a book");
            return None;
        };
        let path = written.as_str().unwrap_or_default();
        let path_place = Place::new(file, written.at);
        let found = match node.get("git") {
            Some(git) => self.git_path(file, node, git, path)?,
            None => beside(file, path),
        };
        let repository = match node.get("git") {
            Some(_) => git_source(node).map(|source| source.directory()),
            None => self.repository_of(Utf8Path::new(&**file)),
        };
        if self.repository_of(&found) != repository {
            self.faults
                .add(path_place, "the path leads out of the repository");
            return None;
        }
        let included = self.included(&found, &path_place, around)?;
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

    /// Where a book of another repository is among the files of the book, after that repository was pinned to a commit.
    fn git_path(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        git: &Node,
        path: &str,
    ) -> Option<Utf8PathBuf> {
        let place = Place::new(file, git.at);
        let Some(source) = git_source(node) else {
            let message = "an include from git needs a `ref`: a tag, a branch or a commit";
            self.faults.add(place, message);
            return None;
        };
        if crate::text::is_template(&source.url) || crate::text::is_template(&source.reference) {
            let message = "`git` and `ref` of an include are fixed texts, not templates";
            self.faults.add(place, message);
            return None;
        }
        if has_login(&source.url) {
            let hint = "put the login into `.netrc`".to_owned();
            let message = "the address of a repository must not contain a login";
            self.faults.add_hint(place, message, Some(hint));
            return None;
        }
        match self.files.pin(&source) {
            Ok(commit) => {
                let file = self.book_directory().join(source.commit_file());
                self.sources.insert(file.into_string(), commit);
            }
            Err(error) => {
                self.faults.add(place, error.to_string());
                return None;
            }
        }
        let book = self.book_directory().join(source.directory()).join("book");
        Some(beside(book.as_str(), path))
    }

    /// The directory of the first book, from which its files are named.
    fn book_directory(&self) -> Utf8PathBuf {
        let first = self.open.first().and_then(|first| first.parent());
        first.unwrap_or(Utf8Path::new("")).to_owned()
    }

    /// The directory of the repository that a book was included from; `None` for books of the first one.
    fn repository_of(&self, file: &Utf8Path) -> Option<Utf8PathBuf> {
        let below = file.strip_prefix(self.book_directory()).ok()?;
        BookRepository::split(below).map(|(directory, _)| directory)
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
    pub(super) fn move_files(
        &mut self,
        file: &Arc<str>,
        module: &str,
        parameters: &mut Map<String, Value>,
    ) {
        let repository = self.repository_of(Utf8Path::new(&**file));
        let parent = |file: &Utf8Path| file.parent().map(Utf8Path::to_owned);
        let first = self.open.first().and_then(|first| parent(first));
        let here = parent(Utf8Path::new(&**file));
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
        for key in crate::compile::file_parameters(module) {
            if let Some(Value::String(path)) = parameters.get_mut(*key)
                && crate::compile::is_book_file(path)
            {
                let moved = beside(below.join("book").as_str(), path);
                let found = BookRepository::split(&moved).map(|(directory, _)| directory);
                if found != repository {
                    let message = format!("`{path}` is outside the repository of the book");
                    let place = Place::new(file, portolan_yaml::Position { line: 1, column: 1 });
                    self.faults.add(place, message);
                }
                *path = moved.into_string();
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

/// The repository that an include names; `None` without a ref.
fn git_source(node: &Node) -> Option<BookRepository> {
    let text = |key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
    Some(BookRepository {
        url: text("git")?,
        reference: text("ref").filter(|reference| !reference.is_empty())?,
    })
}

/// Whether an address has a user or a password in it.
fn has_login(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split('/')
        .next()
        .is_some_and(|host| host.contains('@'))
}

/// A path relative to the file that names it.
pub(crate) fn beside(file: &str, path: &str) -> Utf8PathBuf {
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
