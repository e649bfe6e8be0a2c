//! Values of an object as CEL sees them.

use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::{Key, Map};
use portolan_yaml::{Node, Number};
use serde_json::Value as Json;

use crate::function;

/// What a definition makes of a single value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// What it looks like.
    #[default]
    Plain,
    /// A floating-point number, even without a fraction.
    Double,
    /// Base64 text that stands for bytes.
    Bytes,
    /// A moment.
    Timestamp,
    /// A length of time.
    Duration,
}

/// A single value; null for anything else.
pub fn scalar(node: &Node, form: Form) -> Value {
    if let Some(number) = node.number() {
        return match (number, form) {
            (number, Form::Double) => Value::Float(number.as_f64()),
            (Number::Int(number), _) => Value::Int(number),
            (Number::Uint(number), _) => Value::UInt(number),
            (Number::Float(number), _) => Value::Float(number),
        };
    }
    match (node.as_bool(), node.as_str()) {
        (Some(truth), _) => Value::Bool(truth),
        (None, Some(text)) => formed(text, form),
        (None, None) => Value::Null,
    }
}

/// A text.
pub fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn formed(written: &str, form: Form) -> Value {
    use base64::Engine as _;
    let plain = text(written);
    let formed = match form {
        Form::Plain | Form::Double => None,
        Form::Bytes => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(written);
            decoded.ok().map(|bytes| Value::Bytes(Arc::new(bytes)))
        }
        Form::Timestamp => function::call("timestamp", None, vec![plain.clone()]).ok(),
        Form::Duration => function::call("duration", None, vec![plain.clone()]).ok(),
    };
    formed.unwrap_or(plain)
}

/// The name by which rules know a field: Kubernetes spells reserved words and signs out.
pub fn escaped(field: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&field) {
        return format!("__{field}__");
    }
    if !field.contains(['.', '-', '/']) && !field.contains("__") {
        return field.to_owned();
    }
    field
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// A value of JSON as CEL sees it. Whole numbers are whole.
pub fn from_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::Int(whole),
            (None, Some(whole)) => Value::UInt(whole),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(written) => text(written),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(from_json).collect())),
        Json::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), from_json(value)));
            let map = Arc::new(entries.collect());
            Value::Map(Map { map })
        }
    }
}

/// A value as JSON; `None` for what JSON does not have: bytes, functions, numbers that are not finite.
pub fn to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Int(whole) => Json::from(*whole),
        Value::UInt(whole) => Json::from(*whole),
        Value::Float(number) => Json::Number(serde_json::Number::from_f64(*number)?),
        Value::String(text) => Json::from(text.as_str()),
        Value::List(items) => Json::Array(items.iter().map(to_json).collect::<Option<_>>()?),
        Value::Map(map) => {
            let entries = map.map.iter().map(|(key, value)| {
                let Key::String(key) = key else { return None };
                Some((key.to_string(), to_json(value)?))
            });
            Json::Object(entries.collect::<Option<_>>()?)
        }
        Value::Opaque(_) | Value::Duration(_) | Value::Timestamp(_) => {
            match function::call("string", None, vec![value.clone()]) {
                Ok(Value::String(text)) => Json::from(text.as_str()),
                _ => return None,
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_spelled_as_kubernetes_spells_them() {
        for (field, spelled) in [
            ("a", "a"),
            ("a_b", "a_b"),
            ("a__b", "a__underscores__b"),
            ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
            ("namespace", "__namespace__"),
        ] {
            assert_eq!(escaped(field), spelled);
        }
    }
}
