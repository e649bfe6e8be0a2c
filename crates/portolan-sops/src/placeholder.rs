//! What stands for sealed values when there is no key: a value of the same type, so that everything built from the
//! document still has the right shape.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portolan_object::placeholder;
use portolan_yaml::{Entry, List, Map, Node, Scalar, Style, Tag, Text, Value};

use crate::cipher::SealedValue;
use crate::document::without_metadata;

/// What stands for a sealed text under a key that names a YAML or JSON file, such as the values of a chart.
const EMPTY_FILE: &str = "{}";

/// How deep placeholders are put in; deeper values stay sealed.
const MAX_DEPTH: usize = 256;

/// A copy of a document with a placeholder for every sealed value, and without its `sops` map.
///
/// Every text becomes a [placeholder] of its own (in base64 in a Secret's `data`), numbers 0 and booleans false. Under a
/// key like `values.yaml` an empty document stands for the text: whoever reads it as a file finds one.
pub fn placeholders(document: &Node) -> Node {
    let text = |path: &[&str]| {
        document
            .at_path(path)
            .and_then(Node::as_str)
            .unwrap_or_default()
    };
    let is_secret = text(&["kind"]) == "Secret";
    let [kind, namespace, name] = [
        text(&["kind"]),
        text(&["metadata", "namespace"]),
        text(&["metadata", "name"]),
    ];
    let mut plain = without_metadata(document);
    if let Value::Map(map) = &mut plain.value {
        for Entry { key, value } in map.entries_mut() {
            let site = Site {
                identity: format!("{kind}/{namespace}/{name}/{}", key.as_str()),
                is_encoded: is_secret && key.as_str() == "data",
                is_file: false,
            };
            *value = replace(value, &site, MAX_DEPTH);
        }
    }
    plain
}

/// Where a value stands, and how it is written there.
struct Site {
    /// What tells it from all other values.
    identity: String,
    /// Whether texts are in base64.
    is_encoded: bool,
    /// Whether the text is that of a YAML or JSON file.
    is_file: bool,
}

impl Site {
    fn below(&self, key: &str, is_file: bool) -> Self {
        Self {
            identity: format!("{}/{key}", self.identity),
            is_encoded: self.is_encoded,
            is_file,
        }
    }

    fn text(&self) -> String {
        let plain = if self.is_file {
            EMPTY_FILE.to_owned()
        } else {
            placeholder(&self.identity)
        };
        if self.is_encoded {
            STANDARD.encode(plain)
        } else {
            plain
        }
    }
}

fn replace(node: &Node, site: &Site, depth: usize) -> Node {
    if depth == 0 {
        return node.clone();
    }
    let value = match &node.value {
        Value::Map(map) => {
            let entries = map.iter().map(|Entry { key, value }| {
                let below = site.below(key.as_str(), names_file(key.as_str()));
                Entry {
                    key: key.clone(),
                    value: replace(value, &below, depth - 1),
                }
            });
            Value::Map(Map::from_entries(entries.collect()))
        }
        Value::List(list) => {
            let items = list.iter().enumerate().map(|(at, item)| {
                let below = site.below(&at.to_string(), false);
                replace(item, &below, depth - 1)
            });
            Value::List(List::from_items(items.collect()))
        }
        Value::Scalar(scalar) => Value::Scalar(match SealedValue::parse(&scalar.text) {
            Some(sealed) => stand_in(&sealed, site),
            None => scalar.clone(),
        }),
    };
    Node { value, at: node.at }
}

/// Whether a key is the name of a YAML or JSON file.
fn names_file(key: &str) -> bool {
    let extension = key.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "yml" | "json"))
}

fn stand_in(sealed: &SealedValue<'_>, site: &Site) -> Scalar {
    let (text, tag) = match sealed.kind {
        "int" | "float" => (Text::from_static("0"), Tag::Int),
        "bool" => (Text::from_static("false"), Tag::Bool),
        _ => (Text::from(site.text()), Tag::Str),
    };
    Scalar {
        text,
        tag,
        style: Style::Plain,
    }
}
