//! Maps of a document, read field by field: a field that is not known, or of the wrong type, is a fault with its place.
//!
//! Reading goes on after a fault, so that all of them are told at once.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_go::time::parse_span;
use portolan_object::similar;
use portolan_yaml::{Entry, Node, Position};

/// Something wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Where it stands.
    pub at: Position,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// The faults found so far.
pub(crate) type Faults = Vec<Fault>;

/// The fields of a map.
pub(crate) struct Fields<'a> {
    node: &'a Node,
    /// The path of the map, as in `spec.artifacts[0].oci`.
    path: String,
}

impl<'a> Fields<'a> {
    /// The fields of a map, of which none but these is known.
    pub(crate) fn of(node: &'a Node, path: String, known: &[&str], faults: &mut Faults) -> Self {
        match node.as_map() {
            Some(map) => {
                for Entry { key, .. } in map {
                    if !known.contains(&key.as_str()) {
                        faults.push(unknown(key.as_str(), key.at, &path, known));
                    }
                }
            }
            None if node.is_null() => {}
            None => faults.push(wrong_type(node.at, &path, "a map")),
        }
        Self { node, path }
    }

    /// Where the map stands.
    pub(crate) fn at(&self) -> Position {
        self.node.at
    }

    /// The path of a field.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// A field that is there and not null.
    pub(crate) fn node(&self, key: &str) -> Option<&'a Node> {
        self.node.get(key).filter(|node| !node.is_null())
    }

    /// A field as a map of its own.
    pub(crate) fn map(&self, key: &str, known: &[&str], faults: &mut Faults) -> Option<Self> {
        let node = self.node(key)?;
        Some(Self::of(node, self.path_of(key), known, faults))
    }

    /// A text; numbers and booleans are taken as they are written.
    pub(crate) fn text(&self, key: &str, faults: &mut Faults) -> Option<String> {
        let node = self.node(key)?;
        let text = node.as_scalar().map(|scalar| scalar.text.to_string());
        if text.is_none() {
            faults.push(wrong_type(node.at, &self.path_of(key), "a text"));
        }
        text
    }

    /// A text that must be there and not empty.
    pub(crate) fn required(&self, key: &str, faults: &mut Faults) -> String {
        let text = self.text(key, faults);
        if self.node(key).is_none() || text.as_deref() == Some("") {
            faults.push(Fault {
                at: self.node.at,
                message: format!("`{}` is missing", self.path_of(key)),
                hint: None,
            });
        }
        text.unwrap_or_default()
    }

    /// A text that something else is read from.
    pub(crate) fn parsed<T>(
        &self,
        key: &str,
        faults: &mut Faults,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(key, faults)?;
        match read(&text) {
            Ok(value) => Some(value),
            Err(why) => {
                faults.push(Fault {
                    at: self.node(key)?.at,
                    message: format!("`{}`: {why}", self.path_of(key)),
                    hint: None,
                });
                None
            }
        }
    }

    /// A switch.
    pub(crate) fn flag(&self, key: &str, faults: &mut Faults) -> Option<bool> {
        self.parsed(key, faults, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("must be `true` or `false`".to_owned()),
        })
    }

    /// A span of time such as `10m` or `1h30m`.
    pub(crate) fn duration(&self, key: &str, faults: &mut Faults) -> Option<Duration> {
        self.parsed(key, faults, read_duration)
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &str, faults: &mut Faults) -> Option<Vec<String>> {
        let items = self.items(key, faults)?;
        let texts = items.into_iter().filter_map(|(node, path)| {
            let text = node.as_scalar().map(|scalar| scalar.text.to_string());
            if text.is_none() {
                faults.push(wrong_type(node.at, &path, "a text"));
            }
            text
        });
        Some(texts.collect())
    }

    /// The items of a list, each with its path.
    pub(crate) fn items(&self, key: &str, faults: &mut Faults) -> Option<Vec<(&'a Node, String)>> {
        let node = self.node(key)?;
        let path = self.path_of(key);
        match node.as_list() {
            Some(list) => {
                let items = list.iter().enumerate();
                Some(
                    items
                        .map(|(at, item)| (item, format!("{path}[{at}]")))
                        .collect(),
                )
            }
            None => {
                faults.push(wrong_type(node.at, &path, "a list"));
                None
            }
        }
    }

    /// A map of texts.
    pub(crate) fn text_map(&self, key: &str, faults: &mut Faults) -> BTreeMap<String, String> {
        let Some(node) = self.node(key) else {
            return BTreeMap::new();
        };
        let Some(map) = node.as_map() else {
            faults.push(wrong_type(node.at, &self.path_of(key), "a map of texts"));
            return BTreeMap::new();
        };
        let mut texts = BTreeMap::new();
        for Entry { key: name, value } in map {
            match value.as_scalar() {
                Some(scalar) => {
                    texts.insert(name.as_str().to_owned(), scalar.text.to_string());
                }
                None => {
                    let path = format!("{}.{}", self.path_of(key), name.as_str());
                    faults.push(wrong_type(value.at, &path, "a text"));
                }
            }
        }
        texts
    }

    /// The one of these fields that is there; none or several is a fault.
    pub(crate) fn one_of(
        &self,
        keys: &[&'static str],
        faults: &mut Faults,
    ) -> Option<&'static str> {
        let there = keys.iter().filter(|key| self.node.get(key).is_some());
        let there: Vec<&'static str> = there.copied().collect();
        if let [one] = there.as_slice() {
            return Some(one);
        }
        let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let names = names.join(", ");
        let found = if there.is_empty() {
            "none of them is there"
        } else {
            "several are there"
        };
        faults.push(Fault {
            at: self.node.at,
            message: format!("`{}` needs exactly one of {names}; {found}", self.path),
            hint: None,
        });
        None
    }
}

fn unknown(key: &str, at: Position, path: &str, known: &[&str]) -> Fault {
    let place = if path.is_empty() {
        "the document".to_owned()
    } else {
        format!("`{path}`")
    };
    let near = similar(key, known.iter(), |name| name);
    Fault {
        at,
        message: format!("{place} has no field `{key}`"),
        hint: Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", known.join(", ")),
        }),
    }
}

fn wrong_type(at: Position, path: &str, wanted: &str) -> Fault {
    Fault {
        at,
        message: format!("`{path}` must be {wanted}"),
        hint: None,
    }
}

/// Reads `90s`, `10m` or `1h30m`.
fn read_duration(text: &str) -> Result<Duration, String> {
    parse_span(text)
        .ok_or_else(|| format!("`{text}` is not a span of time such as `90s`, `10m` or `1h30m`"))
}
