//! Values as Go's `%#v` prints them, for error messages that quote one.
//!
//! For YAML, a template left in a file, `{{ .Values.x }}`, is a map used as a key; Helm's users know this message
//! well.

use std::fmt::Write;

use crate::order;
use crate::value::node::{Entry, Node, Scalar, Tag, Value};
use crate::value::number::{self, Number};

/// Shows a value that Go holds as `interface{}`.
pub(crate) fn show(node: &Node) -> String {
    let mut out = String::new();
    write_node(&mut out, node);
    out
}

fn write_node(out: &mut String, node: &Node) {
    match &node.value {
        Value::Scalar(scalar) => write_scalar(out, scalar),
        Value::List(list) => {
            out.push_str("[]interface {}{");
            for (index, item) in list.iter().enumerate() {
                separate(out, index);
                write_node(out, item);
            }
            out.push('}');
        }
        Value::Map(map) => {
            let mut entries: Vec<&Entry> = map.iter().collect();
            order::sort_keys(&mut entries, |entry| entry.key.as_str());
            out.push_str("map[interface {}]interface {}{");
            for (index, entry) in entries.into_iter().enumerate() {
                separate(out, index);
                write_quoted(out, entry.key.as_str());
                out.push(':');
                write_node(out, &entry.value);
            }
            out.push('}');
        }
    }
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push_str(", ");
    }
}

fn write_scalar(out: &mut String, scalar: &Scalar) {
    match (scalar.tag, number::of(scalar)) {
        (Tag::Null, _) => out.push_str("interface {}(nil)"),
        (Tag::Bool, _) => {
            let _ = write!(out, "{}", scalar.as_bool() == Some(true));
        }
        (_, Some(Number::Int(value))) => {
            let _ = write!(out, "{value}");
        }
        (_, Some(Number::Uint(value))) => {
            let _ = write!(out, "{value:#x}");
        }
        (_, Some(Number::Float(value))) => number::write_yaml(out, value),
        _ => write_quoted(out, &scalar.text),
    }
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{feff}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            '\0'..' ' | '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}
