//! Values of an object as CEL sees them.

use std::sync::Arc;

use kube_cel::cel::Value;
use portolan_yaml::{Node, Number};

use super::function;

/// What a definition makes of a single value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
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
pub(crate) fn scalar(node: &Node, form: Form) -> Value {
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

pub(crate) fn text(text: &str) -> Value {
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
pub(crate) fn escaped(field: &str) -> String {
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
