//! Values as JSON text in Go's spelling: keys sorted, `<`, `>` and `&` escaped, floats as Go's encoder writes them.

use portolan_go::json::{self, EscapeHtml};
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
        Value::Float(kind, number) => {
            // What JSON has no form for is refused when values are read; it only needs to be told apart here.
            out.push_str(&json::float(*number, *kind).unwrap_or_else(|| number.to_string()));
        }
        Value::Str(text) => json::write_string(out, text, EscapeHtml::Yes),
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
                json::write_string(out, key, EscapeHtml::Yes);
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
        _ => out.push_str("null"),
    }
}
