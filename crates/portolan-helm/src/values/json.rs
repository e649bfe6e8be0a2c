//! Values as JSON text in Go's spelling: keys sorted, `<`, `>` and `&` escaped, floats as Go's encoder writes them.

use std::fmt::Write;

use portolan_gotmpl::Value;

/// The JSON text of plain data.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(_, number) => out.push_str(&number.to_string()),
        Value::Float(_, number) => out.push_str(&float(*number)),
        Value::Str(text) => string(out, text),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (index, (key, value)) in map.snapshot().iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                string(out, key);
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
        _ => out.push_str("null"),
    }
}

/// A float as Go's JSON encoder writes it: exponents only below 1e-6 and from 1e21 on.
pub(crate) fn float(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// A text in quotes.
pub(crate) fn string(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
