//! The document of `kind: Ship` in `portolan.yaml`: which artifacts there are, and how each is built.
//!
//! ```text
//! text ──▶ documents ──▶ the one of kind Ship ──variables──▶ fields ──▶ Ship, or every fault with its place
//! ```

mod artifact;
mod fields;

use std::collections::BTreeMap;

use portolan_envsubst::Unset;
use portolan_object::similar;
use portolan_yaml::{Dialect, List, Map, Node, Position, Scalar, Text, Value, parse};

pub use artifact::{Artifact, ArtifactSource, BaseImage, CommandOutput, CommandSource, OciSource};
pub use fields::Fault;
use fields::{Faults, Fields};

/// The API version of the document.
pub const API_VERSION: &str = "portolan.dev/v1alpha1";

/// The kind of the document.
pub const KIND: &str = "Ship";

/// The longest document that is read.
pub const MAX_DOCUMENT_BYTES: usize = 4 << 20;

/// The most artifacts of a document.
pub const MAX_ARTIFACTS: usize = 10_000;

/// How deep a document may nest.
const MAX_DEPTH: usize = 100;

/// Variables that builders put in themselves: they are left for them.
const OF_BUILDERS: &[&str] = &["arch", "os", "platform"];

/// What is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Ship {
    /// Its name.
    pub name: String,
    /// What is built, in the document's order.
    pub artifacts: Vec<Artifact>,
}

/// Why a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// There is none.
    #[error("there is no document of `kind: Ship`")]
    None,
    /// There are several.
    #[error("there is a second document of `kind: Ship` at line {0}")]
    Several(u32),
    /// It is too long.
    #[error("the file has {0} bytes; the most is {MAX_DOCUMENT_BYTES}")]
    TooLong(usize),
    /// Something in it is wrong: all of it.
    #[error("{}", .0.first().map_or("", |fault| fault.message.as_str()))]
    Faults(Vec<Fault>),
}

impl Ship {
    /// Reads the document of `kind: Ship` of a file; documents of other kinds are left to others.
    ///
    /// `variable` answers what `${NAME}` stands for.
    pub fn read(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, DocumentError> {
        if text.len() > MAX_DOCUMENT_BYTES {
            return Err(DocumentError::TooLong(text.len()));
        }
        let documents = parse(text.to_owned(), Dialect::Helm).map_err(|errors| {
            let first = errors.first();
            DocumentError::Faults(vec![fault(first.at, first.message.clone())])
        })?;
        let mut ships = documents.iter().filter(|node| is_ship(node));
        let ship = ships.next().ok_or(DocumentError::None)?;
        if let Some(second) = ships.next() {
            return Err(DocumentError::Several(second.at.line));
        }
        let mut faults = Faults::new();
        let filled = fill(ship, variable, MAX_DEPTH, &mut faults);
        let read = read(&filled, &mut faults);
        if faults.is_empty() {
            Ok(read)
        } else {
            faults.sort_by_key(|fault| (fault.at.line, fault.at.column));
            Err(DocumentError::Faults(faults))
        }
    }

    /// The artifact of a name.
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.name == name)
    }
}

fn is_ship(node: &Node) -> bool {
    let text = |key: &str| node.get(key).and_then(Node::as_str);
    text("kind") == Some(KIND) && text("apiVersion") == Some(API_VERSION)
}

fn fault(at: Position, message: String) -> Fault {
    Fault {
        at,
        message,
        hint: None,
    }
}

fn read(node: &Node, faults: &mut Faults) -> Ship {
    let root = Fields::of(
        node,
        String::new(),
        &["apiVersion", "kind", "metadata", "spec"],
        faults,
    );
    let metadata = root.map("metadata", &["name"], faults);
    let name = metadata.map(|metadata| metadata.required("name", faults));
    let mut artifacts = Vec::new();
    if let Some(spec) = root.map("spec", &["artifacts"], faults) {
        let items = spec.items("artifacts", faults).unwrap_or_default();
        if items.len() > MAX_ARTIFACTS {
            let count = items.len();
            faults.push(fault(
                spec.at(),
                format!("there are {count} artifacts; the most is {MAX_ARTIFACTS}"),
            ));
        }
        for (item, path) in items.into_iter().take(MAX_ARTIFACTS) {
            artifacts.extend(Artifact::read(item, path, faults));
        }
    }
    check_names(&artifacts, faults);
    check_needs(&artifacts, faults);
    Ship {
        name: name.unwrap_or_default(),
        artifacts,
    }
}

fn check_names(artifacts: &[Artifact], faults: &mut Faults) {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for artifact in artifacts
        .iter()
        .filter(|artifact| !artifact.name.is_empty())
    {
        if let Some(line) = seen.insert(&artifact.name, artifact.at.line) {
            let name = &artifact.name;
            faults.push(fault(
                artifact.at,
                format!("the artifact of line {line} is called `{name}` too"),
            ));
        }
    }
}

/// Every need must be there, and none may lead back to itself.
fn check_needs(artifacts: &[Artifact], faults: &mut Faults) {
    let names = || artifacts.iter().map(|artifact| artifact.name.as_str());
    for artifact in artifacts {
        for need in artifact.all_needs() {
            if !names().any(|name| name == need) {
                faults.push(Fault {
                    at: artifact.at,
                    message: format!(
                        "`{}` needs `{need}`, and no artifact is called that",
                        artifact.name
                    ),
                    hint: similar(need, names(), |name| name)
                        .map(|near| format!("did you mean `{near}`?")),
                });
            }
        }
    }
    if let Some((artifact, circle)) = find_circle(artifacts) {
        faults.push(fault(
            artifact.at,
            format!("artifacts need each other in a circle: {circle}"),
        ));
    }
}

/// The first circle of needs, as `a → b → a`.
fn find_circle(artifacts: &[Artifact]) -> Option<(&Artifact, String)> {
    let index: BTreeMap<&str, usize> = artifacts
        .iter()
        .enumerate()
        .map(|(at, artifact)| (artifact.name.as_str(), at))
        .collect();
    // 0: not seen, 1: on the way, 2: done.
    let mut marks = vec![0_u8; artifacts.len()];
    for start in 0..artifacts.len() {
        let mut way: Vec<(usize, Vec<&str>)> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(at) = enter.take().filter(|at| marks.get(*at) == Some(&0)) {
                *marks.get_mut(at)? = 1;
                way.push((at, artifacts.get(at)?.all_needs()));
            }
            let Some((at, needs)) = way.last_mut() else {
                break;
            };
            let at = *at;
            match needs.pop() {
                None => {
                    *marks.get_mut(at)? = 2;
                    way.pop();
                }
                Some(need) => {
                    let Some(next) = index.get(need).copied() else {
                        continue;
                    };
                    if marks.get(next) == Some(&1) {
                        let from = way.iter().position(|(at, _)| *at == next)?;
                        let names = way
                            .iter()
                            .skip(from)
                            .filter_map(|(at, _)| artifacts.get(*at));
                        let mut names: Vec<&str> =
                            names.map(|artifact| artifact.name.as_str()).collect();
                        names.push(need);
                        return Some((artifacts.get(next)?, names.join(" → ")));
                    }
                    enter = Some(next);
                }
            }
        }
    }
    None
}

/// A copy with variables put into its texts.
fn fill(
    node: &Node,
    variable: &dyn Fn(&str) -> Option<String>,
    depth: usize,
    faults: &mut Faults,
) -> Node {
    if depth == 0 {
        faults.push(fault(
            node.at,
            format!("the document nests more than {MAX_DEPTH} deep"),
        ));
        return Node::map();
    }
    let value = match &node.value {
        Value::Map(map) => {
            let entries = map.iter().map(|entry| {
                let mut entry = entry.clone();
                entry.value = fill(&entry.value, variable, depth - 1, faults);
                entry
            });
            Value::Map(Map::from_entries(entries.collect()))
        }
        Value::List(list) => {
            let items = list
                .iter()
                .map(|item| fill(item, variable, depth - 1, faults));
            Value::List(List::from_items(items.collect()))
        }
        Value::Scalar(scalar) if scalar.text.contains("${") => Value::Scalar(Scalar {
            text: Text::from(fill_text(&scalar.text, node.at, variable, faults)),
            ..scalar.clone()
        }),
        Value::Scalar(scalar) => Value::Scalar(scalar.clone()),
    };
    Node { value, at: node.at }
}

fn fill_text(
    text: &str,
    at: Position,
    variable: &dyn Fn(&str) -> Option<String>,
    faults: &mut Faults,
) -> String {
    let known: BTreeMap<String, String> = names(text)
        .filter_map(|name| {
            let value = if OF_BUILDERS.contains(&name) {
                Some(format!("${{{name}}}"))
            } else {
                variable(name)
            };
            Some((name.to_owned(), value?))
        })
        .collect();
    let lookup = |name: &str| known.get(name).map(String::as_str);
    match portolan_envsubst::substitute(text, Unset::Refused, lookup) {
        Ok(filled) => filled,
        Err(error) => {
            faults.push(Fault {
                at,
                message: format!("cannot put variables into `{text}`: {error}"),
                hint: Some(
                    "set it in the environment, or give a default: `${NAME:-default}`".to_owned(),
                ),
            });
            text.to_owned()
        }
    }
}

/// The names of the variables in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split("${").skip(1).filter_map(move |rest| {
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}
