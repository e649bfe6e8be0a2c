//! What stands for sealed values when there is no key: a value of the same type, so that everything built from the
//! document still has the right shape.

use portolan_yaml::{Entry, List, Map, Node, Scalar, Style, Tag, Value};

use crate::cipher::SealedValue;
use crate::document::without_metadata;

/// What stands for a sealed text.
pub const PLACEHOLDER: &str = "**SOPS**";
/// The same where a text must be base64: in a Secret's `data`.
const ENCODED_PLACEHOLDER: &str = "KipTT1BTKio=";
/// How deep placeholders are put in; deeper values stay sealed.
const MAX_DEPTH: usize = 256;

/// A copy of a document with a placeholder for every sealed value, and without its `sops` map.
///
/// Texts become [`PLACEHOLDER`] (base64 in a Secret's `data`), numbers 0 and booleans false.
pub fn placeholders(document: &Node) -> Node {
    let secret = document.get("kind").and_then(Node::as_str) == Some("Secret");
    let mut plain = without_metadata(document);
    if let Value::Map(map) = &mut plain.value {
        for Entry { key, value } in map.entries_mut() {
            let encoded = secret && key.as_str() == "data";
            let text = if encoded {
                ENCODED_PLACEHOLDER
            } else {
                PLACEHOLDER
            };
            *value = replace(value, text, MAX_DEPTH);
        }
    }
    plain
}

fn replace(node: &Node, text: &'static str, depth: usize) -> Node {
    if depth == 0 {
        return node.clone();
    }
    let value = match &node.value {
        Value::Map(map) => {
            let entries = map.iter().map(|Entry { key, value }| Entry {
                key: key.clone(),
                value: replace(value, text, depth - 1),
            });
            Value::Map(Map::from_entries(entries.collect()))
        }
        Value::List(list) => {
            let items = list.iter().map(|item| replace(item, text, depth - 1));
            Value::List(List::from_items(items.collect()))
        }
        Value::Scalar(scalar) => Value::Scalar(match SealedValue::parse(&scalar.text) {
            Some(sealed) => stand_in(&sealed, text),
            None => scalar.clone(),
        }),
    };
    Node { value, at: node.at }
}

fn stand_in(sealed: &SealedValue<'_>, text: &'static str) -> Scalar {
    let (text, tag) = match sealed.kind {
        "int" | "float" => ("0", Tag::Int),
        "bool" => ("false", Tag::Bool),
        _ => (text, Tag::Str),
    };
    Scalar {
        text: portolan_yaml::Text::from_static(text),
        tag,
        style: Style::Plain,
    }
}
