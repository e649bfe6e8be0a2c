//! JSON as sops prints it: one tab for each level, keys in their order, texts escaped as Go does for HTML.

use std::fmt::Write as _;

use portolan_yaml::{Entry, Node, Scalar, Tag, Value};

use crate::number;

/// Prints a decrypted document. It is no deeper than decryption allowed.
pub(crate) fn write(document: &Node) -> String {
    let mut text = String::new();
    write_node(&mut text, document, 0);
    text.push('\n');
    text
}

fn write_node(text: &mut String, node: &Node, level: usize) {
    match &node.value {
        Value::Map(map) => {
            let entries = map
                .iter()
                .map(|Entry { key, value }| (Some(key.as_str()), value));
            write_items(text, ('{', '}'), entries, level);
        }
        Value::List(list) => {
            write_items(
                text,
                ('[', ']'),
                list.iter().map(|item| (None, item)),
                level,
            );
        }
        Value::Scalar(scalar) => write_scalar(text, scalar),
    }
}

fn write_items<'a>(
    text: &mut String,
    (open, close): (char, char),
    items: impl Iterator<Item = (Option<&'a str>, &'a Node)>,
    level: usize,
) {
    text.push(open);
    let mut any = false;
    for (key, value) in items {
        text.push_str(if any { ",\n" } else { "\n" });
        any = true;
        indent(text, level + 1);
        if let Some(key) = key {
            write_string(text, key);
            text.push_str(": ");
        }
        write_node(text, value, level + 1);
    }
    if any {
        text.push('\n');
        indent(text, level);
    }
    text.push(close);
}

fn indent(text: &mut String, level: usize) {
    text.extend(std::iter::repeat_n('\t', level));
}

fn write_scalar(text: &mut String, scalar: &Scalar) {
    match scalar.tag {
        Tag::Null => text.push_str("null"),
        Tag::Bool => text.push_str(&scalar.text),
        Tag::Int | Tag::Float => match number::float(&scalar.text) {
            Some(value) => text.push_str(&json_number(value)),
            None => write_string(text, &scalar.text),
        },
        _ => write_string(text, &scalar.text),
    }
}

/// As Go's encoder prints a float: an exponent only below 1e-6 and from 1e21 on.
fn json_number(value: f64) -> String {
    let plain = value == 0.0 || (1e-6..1e21).contains(&value.abs());
    if plain {
        return number::fixed(value);
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => scientific,
    }
}

fn write_string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}
