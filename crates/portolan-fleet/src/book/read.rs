//! Reads a book: the kind reads its fields, and the steps are read here, because only here the modules are known.
//!
//! ```text
//! text ──▶ document ──▶ steps    (names, actions, options, blocks, handlers)
//!                   ├─▶ include  (other books, in the place of a step)
//!                   └─▶ values   (inputs, variables, how a run goes over many nodes)
//! ```
//!
//! Reading goes on after a fault, so that all faults of a book are told at once.

mod include;
mod steps;
mod values;

pub(crate) use include::beside;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_kinds::KindObject;
use portolan_modules::{BookFiles, ModuleDefinition};
use portolan_yaml::{Dialect, Node, parse_one_strict};
use serde_json::{Map, Value};

use super::{Input, RunOptions, Step};
use crate::decision::Decision;
use crate::fault::{BookFault, Faults, Place};

/// What one document says, before its names are checked.
pub(crate) struct ReadBook {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) values: BookValues,
    pub(crate) run: RunOptions,
    pub(crate) steps: Vec<Step>,
}

/// The inputs and values of a document.
pub(crate) struct BookValues {
    pub(crate) inputs: BTreeMap<String, Input>,
    pub(crate) vars: Map<String, Value>,
    /// Computed values as they were written, in the order of their names.
    pub(crate) compute: Vec<(String, Decision)>,
}

/// Reads a book and what it includes.
pub(crate) struct BookReader<'m> {
    pub(crate) files: Arc<dyn BookFiles>,
    pub(crate) modules: &'m [&'static ModuleDefinition],
    pub(crate) faults: Faults,
    /// Handlers of the book and of what it includes; `None` while one is read.
    pub(crate) handlers: Vec<Option<Step>>,
    /// Positions of handlers by name, for the book and each book that includes the current one.
    scopes: Vec<BTreeMap<String, usize>>,
    /// The files that were read, with their text, for the digest of the book.
    pub(crate) sources: BTreeMap<String, String>,
    /// Files that are being read now, to find circles.
    open: Vec<Utf8PathBuf>,
    steps: usize,
}

impl<'m> BookReader<'m> {
    pub(crate) fn new(files: Arc<dyn BookFiles>, modules: &'m [&'static ModuleDefinition]) -> Self {
        Self {
            files,
            modules,
            faults: Faults::default(),
            handlers: Vec::new(),
            scopes: Vec::new(),
            sources: BTreeMap::new(),
            open: Vec::new(),
            steps: 0,
        }
    }

    /// Reads a book from its text. Gives `None` after it noted what makes the whole unreadable.
    pub(crate) fn read(&mut self, file: &str, text: &str) -> Option<ReadBook> {
        self.open.push(Utf8PathBuf::from(file));
        let tags = BTreeSet::new();
        let read = self.document(file, text, "", &tags, 0);
        self.open.pop();
        read
    }

    fn document(
        &mut self,
        file: &str,
        text: &str,
        parent: &str,
        tags: &BTreeSet<String>,
        depth: usize,
    ) -> Option<ReadBook> {
        self.sources.insert(file.to_owned(), text.to_owned());
        let file: Arc<str> = file.into();
        let node = match parse_one_strict(text.to_owned(), Dialect::Kustomize) {
            Ok(node) => node,
            Err(errors) => {
                let first = errors.first();
                self.faults.add(Place::new(&file, first.at), &first.message);
                return None;
            }
        };
        let kind = node.get("kind").and_then(Node::as_str);
        if let Some(kind) = kind.filter(|kind| *kind != "TaskBook") {
            let place = Place::new(&file, node.get("kind").map_or(node.at, |kind| kind.at));
            self.faults
                .add(place, format!("is a {kind}, not a TaskBook"));
            return None;
        }
        let object = KindObject::read(&node);
        let spec = match object {
            Ok(object) => Some(object),
            Err(faults) => {
                for fault in faults {
                    self.faults.push(BookFault {
                        place: Place::new(&file, fault.at),
                        message: if fault.path.is_empty() {
                            fault.message
                        } else {
                            format!("`{}` {}", fault.path, fault.message)
                        },
                        hint: fault.hint,
                        is_consequence: false,
                    });
                }
                None
            }
        };
        let written = node.get("spec")?;
        let steps = self.steps_of(&file, written, parent, tags, depth);
        let object = spec?;
        let values = self.values(&file, &object.spec, written);
        let run = self.run_options(&file, &object.spec, written);
        Some(ReadBook {
            name: object.name().to_owned(),
            namespace: object.namespace().map(str::to_owned),
            values,
            run,
            steps,
        })
    }
}

/// Where the keys of a map were written.
fn places(file: &Arc<str>, node: &Node) -> BTreeMap<String, Place> {
    let entries = node.as_map().into_iter().flatten();
    entries
        .map(|entry| {
            (
                entry.key.as_str().to_owned(),
                Place::new(file, entry.key.at),
            )
        })
        .collect()
}

/// A node as JSON; `None` if it is not one that JSON has.
pub(crate) fn json(node: &Node) -> Option<Value> {
    serde_json::from_str(&portolan_yaml::to_json(node).ok()?).ok()
}

fn json_map(node: &Node) -> Option<Map<String, Value>> {
    match json(node)? {
        Value::Object(map) => Some(map),
        Value::Null => Some(Map::new()),
        _ => None,
    }
}
