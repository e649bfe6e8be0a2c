//! What stands for sealed values when there is no key: a value of the same type, so that everything built from the
//! document still has the right shape.

use portolan_yaml::{Entry, List, Map, Node, Scalar, Style, Tag, Value};

use crate::cipher::SealedValue;
use crate::document::without_metadata;

/// What stands for a sealed text: it may be put into a name, a host or a line of YAML without breaking it.
pub const PLACEHOLDER: &str = "sops-placeholder";
/// The same where a text must be base64: in a Secret's `data`.
const ENCODED_PLACEHOLDER: &str = "c29wcy1wbGFjZWhvbGRlcg==";
/// What stands for a sealed text under a key that names a YAML or JSON file, such as the values of a chart.
const EMPTY_FILE: &str = "{}";
const ENCODED_EMPTY_FILE: &str = "e30=";
/// What stands for texts.
struct StandIns {
    text: &'static str,
    file: &'static str,
}

const PLAIN: StandIns = StandIns {
    text: PLACEHOLDER,
    file: EMPTY_FILE,
};
const ENCODED: StandIns = StandIns {
    text: ENCODED_PLACEHOLDER,
    file: ENCODED_EMPTY_FILE,
};

/// How deep placeholders are put in; deeper values stay sealed.
const MAX_DEPTH: usize = 256;

/// A copy of a document with a placeholder for every sealed value, and without its `sops` map.
///
/// Texts become [`PLACEHOLDER`] (base64 in a Secret's `data`), numbers 0 and booleans false. Under a key like
/// `values.yaml` an empty document stands for the text: whoever reads it as a file finds one.
pub fn placeholders(document: &Node) -> Node {
    let secret = document.get("kind").and_then(Node::as_str) == Some("Secret");
    let mut plain = without_metadata(document);
    if let Value::Map(map) = &mut plain.value {
        for Entry { key, value } in map.entries_mut() {
            let stand_ins = if secret && key.as_str() == "data" {
                &ENCODED
            } else {
                &PLAIN
            };
            *value = replace(value, stand_ins, false, MAX_DEPTH);
        }
    }
    plain
}

fn replace(node: &Node, stand_ins: &StandIns, is_file: bool, depth: usize) -> Node {
    if depth == 0 {
        return node.clone();
    }
    let value = match &node.value {
        Value::Map(map) => {
            let entries = map.iter().map(|Entry { key, value }| Entry {
                key: key.clone(),
                value: replace(value, stand_ins, names_file(key.as_str()), depth - 1),
            });
            Value::Map(Map::from_entries(entries.collect()))
        }
        Value::List(list) => {
            let items = list
                .iter()
                .map(|item| replace(item, stand_ins, false, depth - 1));
            Value::List(List::from_items(items.collect()))
        }
        Value::Scalar(scalar) => Value::Scalar(match SealedValue::parse(&scalar.text) {
            Some(sealed) if is_file => stand_in(&sealed, stand_ins.file),
            Some(sealed) => stand_in(&sealed, stand_ins.text),
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
