//! Placeholders for encrypted values when there is no key: values of the same type, so everything built from the
//! document still has the right shape.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portolan_object::{placeholder, placeholder_number};
use portolan_yaml::{Entry, List, Map, Node, Scalar, Style, Tag, Text, Value};

use crate::cipher::SealedValue;
use crate::document::without_metadata;

/// What stands for a sealed text under a key that names a YAML or JSON file, such as the values of a chart.
const EMPTY_FILE: &str = "{}";

/// How many blanks after that tell the texts of JSON files apart.
const TELLING_BLANKS: usize = 32;

/// How deep placeholders are put in; deeper values stay sealed.
const MAX_DEPTH: usize = 256;

/// A copy of a document with a placeholder for every sealed value, and without its `sops` map.
///
/// Every text becomes a [placeholder] of its own (in base64 in a Secret's `data`), and so does every number; booleans
/// become false. Under a key like `values.yaml` an empty document stands for the text: whoever reads it as a file finds
/// one. What was sealed anew gets another placeholder, for nobody can tell whether it still says the same.
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
                file: None,
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
    file: Option<FileKind>,
}

/// What a text is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Yaml,
    Json,
}

impl Site {
    fn below(&self, key: &str, file: Option<FileKind>) -> Self {
        Self {
            identity: format!("{}/{key}", self.identity),
            is_encoded: self.is_encoded,
            file,
        }
    }

    /// What tells this value, as it is sealed, from all others.
    fn identity_of(&self, sealed: &str) -> String {
        format!("{}/{sealed}", self.identity)
    }

    fn text(&self, sealed: &str) -> String {
        let identity = self.identity_of(sealed);
        let plain = match self.file {
            Some(FileKind::Yaml) => format!("{EMPTY_FILE} # {}\n", placeholder(&identity)),
            Some(FileKind::Json) => format!("{EMPTY_FILE}{}", blanks(&identity)),
            None => placeholder(&identity),
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
                let below = site.below(key.as_str(), file_kind(key.as_str()));
                Entry {
                    key: key.clone(),
                    value: replace(value, &below, depth - 1),
                }
            });
            Value::Map(Map::from_entries(entries.collect()))
        }
        Value::List(list) => {
            let items = list.iter().enumerate().map(|(at, item)| {
                let below = site.below(&at.to_string(), None);
                replace(item, &below, depth - 1)
            });
            Value::List(List::from_items(items.collect()))
        }
        Value::Scalar(scalar) => Value::Scalar(match SealedValue::parse(&scalar.text) {
            Some(sealed) => stand_in(&sealed, &scalar.text, site),
            None => scalar.clone(),
        }),
    };
    Node { value, at: node.at }
}

/// What a key is the name of.
fn file_kind(key: &str) -> Option<FileKind> {
    match key.rsplit_once('.')?.1 {
        "yaml" | "yml" => Some(FileKind::Yaml),
        "json" => Some(FileKind::Json),
        _ => None,
    }
}

/// Blanks that are different for every identity: JSON has no comments.
fn blanks(identity: &str) -> String {
    let number = placeholder_number(identity);
    let bits = (0..TELLING_BLANKS).map(|bit| number >> bit & 1 == 1);
    bits.map(|is_set| if is_set { '\t' } else { ' ' }).collect()
}

fn stand_in(sealed: &SealedValue<'_>, written: &str, site: &Site) -> Scalar {
    let (text, tag) = match sealed.kind {
        "int" | "float" => {
            let number = placeholder_number(&site.identity_of(written));
            (Text::from(number.to_string()), Tag::Int)
        }
        "bool" => (Text::from_static("false"), Tag::Bool),
        _ => (Text::from(site.text(written)), Tag::Str),
    };
    Scalar {
        text,
        tag,
        style: Style::Plain,
    }
}
