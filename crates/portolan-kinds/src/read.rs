//! Reads what a user wrote into canonical JSON, strictly: what the schema does not have, or has otherwise, is a fault.

use portolan_object::{FieldPath, similar};
use portolan_yaml::{Entry, Node, Number, Tag, Value as NodeValue};
use serde_json::{Map, Value};

use crate::fault::Faults;
use crate::schema::{FieldShape, MessageSchema, message};

/// How deep free values may nest.
const MAX_DEPTH: usize = 32;

/// Reads a message. Null is the same as nothing.
pub(crate) fn read_message(
    schema: &MessageSchema,
    node: &Node,
    path: &FieldPath,
    faults: &mut Faults<'_>,
) -> Value {
    let mut read = Map::new();
    let Some(map) = node.as_map() else {
        if !node.is_null() {
            faults.add(path, format!("must be a map, not {}", name_of(node)));
        }
        return Value::Object(read);
    };
    for Entry { key, value } in map {
        let name = key.as_str();
        let below = path.key(name);
        let Some(field) = schema.field(name) else {
            let known: Vec<&str> = schema
                .fields
                .iter()
                .map(|field| field.name.as_str())
                .collect();
            faults.add_key(key.at, &below, "is not a field", Some(advice(name, &known)));
            continue;
        };
        if value.is_null() {
            continue;
        }
        if let Some(value) = read_shape(&field.shape, value, &below, faults) {
            read.insert(name.to_owned(), value);
        }
    }
    Value::Object(read)
}

/// What to write instead of a name that is not known.
pub(crate) fn advice(name: &str, known: &[&str]) -> String {
    match similar(name, known.iter(), |name| name) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there are no fields here".to_owned(),
        None => format!("there are {}", known.join(", ")),
    }
}

fn read_shape(
    shape: &FieldShape,
    node: &Node,
    path: &FieldPath,
    faults: &mut Faults<'_>,
) -> Option<Value> {
    match shape {
        FieldShape::Flag => read_flag(node, path, faults),
        FieldShape::Count => read_count(node, path, faults),
        FieldShape::Text => read_text(node, path, faults).map(Value::from),
        FieldShape::Word(words) => {
            let text = read_text(node, path, faults)?;
            if words.iter().any(|(word, _)| *word == text) {
                return Some(Value::from(text));
            }
            let known: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            let message = format!("must be one of {}, not `{text}`", quoted(&known));
            faults.add_hint(path, message, Some(advice(text, &known)));
            None
        }
        FieldShape::Free => read_free(node, path, faults, MAX_DEPTH),
        FieldShape::Message(name) => {
            let schema = message(name)?;
            Some(read_message(schema, node, path, faults))
        }
        FieldShape::List(item) => {
            let Some(list) = node.as_list() else {
                faults.add(path, format!("must be a list, not {}", name_of(node)));
                return None;
            };
            let items = list.iter().enumerate();
            let read = items.filter_map(|(index, node)| {
                let path = path.index(index);
                if node.is_null() {
                    faults.add(&path, "must not be empty");
                    return None;
                }
                read_shape(item, node, &path, faults)
            });
            Some(Value::Array(read.collect()))
        }
        FieldShape::Map(shape) => {
            let Some(map) = node.as_map() else {
                faults.add(path, format!("must be a map, not {}", name_of(node)));
                return None;
            };
            let mut read = Map::new();
            for Entry { key, value } in map {
                let below = path.key(key.as_str());
                if value.is_null() && **shape != FieldShape::Free {
                    faults.add(&below, "must not be empty");
                } else if let Some(value) = read_shape(shape, value, &below, faults) {
                    read.insert(key.as_str().to_owned(), value);
                }
            }
            Some(Value::Object(read))
        }
    }
}

fn read_flag(node: &Node, path: &FieldPath, faults: &mut Faults<'_>) -> Option<Value> {
    let flag = node.as_bool().map(Value::Bool);
    if flag.is_none() {
        faults.add(
            path,
            format!("must be true or false, not {}", name_of(node)),
        );
    }
    flag
}

fn read_count(node: &Node, path: &FieldPath, faults: &mut Faults<'_>) -> Option<Value> {
    let is_whole = node
        .as_scalar()
        .is_some_and(|scalar| scalar.tag == Tag::Int);
    let count = node
        .as_i64()
        .filter(|_| is_whole)
        .and_then(|number| u32::try_from(number).ok());
    if count.is_none() {
        let message = format!(
            "must be a whole number from 0 to 4294967295, not {}",
            name_of(node)
        );
        faults.add(path, message);
    }
    count.map(Value::from)
}

/// A text. Numbers and booleans have to be quoted: `010` and `yes` mean something else to other readers.
fn read_text<'n>(node: &'n Node, path: &FieldPath, faults: &mut Faults<'_>) -> Option<&'n str> {
    let Some(scalar) = node.as_scalar() else {
        faults.add(path, format!("must be a text, not {}", name_of(node)));
        return None;
    };
    match scalar.tag {
        Tag::Str | Tag::Timestamp => {
            if scalar.text.as_str().contains('\0') {
                faults.add(path, "must not contain a zero character");
                return None;
            }
            Some(scalar.text.as_str())
        }
        _ => {
            let hint = format!("quote it: \"{}\"", scalar.text.as_str());
            let message = format!("must be a text, not {}", name_of(node));
            faults.add_hint(path, message, Some(hint));
            None
        }
    }
}

fn read_free(
    node: &Node,
    path: &FieldPath,
    faults: &mut Faults<'_>,
    levels: usize,
) -> Option<Value> {
    if levels == 0 {
        faults.add(path, format!("nests deeper than {MAX_DEPTH} levels"));
        return None;
    }
    match &node.value {
        NodeValue::List(list) => {
            let items = list.iter().enumerate();
            let read = items.filter_map(|(index, item)| {
                read_free(item, &path.index(index), faults, levels - 1)
            });
            Some(Value::Array(read.collect()))
        }
        NodeValue::Map(map) => {
            let mut read = Map::new();
            for Entry { key, value } in map {
                let name = key.as_str();
                if let Some(value) = read_free(value, &path.key(name), faults, levels - 1) {
                    read.insert(name.to_owned(), value);
                }
            }
            Some(Value::Object(read))
        }
        NodeValue::Scalar(scalar) => match scalar.tag {
            Tag::Null => Some(Value::Null),
            Tag::Bool => scalar.as_bool().map(Value::Bool),
            Tag::Int | Tag::Float => read_number(node, path, faults),
            _ => read_text(node, path, faults).map(Value::from),
        },
    }
}

/// Whole numbers are exact or refused; others must be finite.
fn read_number(node: &Node, path: &FieldPath, faults: &mut Faults<'_>) -> Option<Value> {
    let is_whole = node
        .as_scalar()
        .is_some_and(|scalar| scalar.tag == Tag::Int);
    let number = match node.number() {
        Some(Number::Int(whole)) => Some(Value::from(whole)),
        Some(number) if !is_whole => {
            serde_json::Number::from_f64(number.as_f64()).map(Value::Number)
        }
        _ => None,
    };
    if number.is_none() {
        faults.add_hint(
            path,
            "must be a finite number, and a whole one must fit in 64 bits with a sign",
            Some("quote it to make it a text".to_owned()),
        );
    }
    number
}

fn name_of(node: &Node) -> String {
    match &node.value {
        NodeValue::List(_) => "a list".to_owned(),
        NodeValue::Map(_) => "a map".to_owned(),
        NodeValue::Scalar(scalar) => match scalar.tag {
            Tag::Null => "null".to_owned(),
            Tag::Bool => "a boolean".to_owned(),
            Tag::Int | Tag::Float => "a number".to_owned(),
            _ => "a text".to_owned(),
        },
    }
}

pub(crate) fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
