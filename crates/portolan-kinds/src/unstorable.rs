//! What of a JSON value its message cannot hold: fields that it does not have, unknown words, values of another type.
//!
//! Objects of users are refused with the line of such a field before they come here. Values that a program makes have no
//! lines, and encoding them would leave such fields out without a word.

use portolan_object::FieldPath;
use serde_json::Value;

use crate::schema::{FieldShape, MessageSchema, message};

/// The paths of all such fields.
pub(crate) fn unstorable(schema: &MessageSchema, value: &Value) -> Vec<FieldPath> {
    let mut found = Vec::new();
    find_in_message(schema, value, &FieldPath::root(), &mut found);
    found
}

fn find_in_message(
    schema: &MessageSchema,
    value: &Value,
    path: &FieldPath,
    found: &mut Vec<FieldPath>,
) {
    let Value::Object(map) = value else {
        found.push(path.clone());
        return;
    };
    for (key, value) in map {
        let below = path.key(key);
        match schema.fields.iter().find(|field| field.name == *key) {
            Some(field) => find_in_field(&field.shape, value, &below, found),
            None => found.push(below),
        }
    }
}

fn find_in_field(shape: &FieldShape, value: &Value, path: &FieldPath, found: &mut Vec<FieldPath>) {
    match (shape, value) {
        // A null is an absent field.
        (_, Value::Null)
        | (FieldShape::Flag, Value::Bool(_))
        | (FieldShape::Text, Value::String(_))
        | (FieldShape::Free, _) => {}
        (FieldShape::Count, value) if value.as_u64().is_some() => {}
        (FieldShape::Word(words), Value::String(text))
            if words.iter().any(|(word, _)| word == text) => {}
        (FieldShape::List(item), Value::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                find_in_field(item, value, &path.index(index), found);
            }
        }
        (FieldShape::Map(shape), Value::Object(map)) => {
            for (key, value) in map {
                find_in_field(shape, value, &path.key(key), found);
            }
        }
        (FieldShape::Message(name), value) => match message(name) {
            Some(schema) => find_in_message(schema, value, path, found),
            None => found.push(path.clone()),
        },
        _ => found.push(path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_words_and_types_that_a_message_lacks_are_named() {
        let schema = message("NamespaceStatus").expect("a message");
        let check = |value: Value, expected: &[&str]| {
            let found = unstorable(schema, &value);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{value}");
        };
        check(json!({"phase": "terminating", "remaining": 3}), &[]);
        check(json!({"phase": null}), &[]);
        check(
            json!({"phase": "ended", "remaining": "3"}),
            &["phase", "remaining"],
        );
        check(json!({"left": 3}), &["left"]);
        check(json!([]), &[""]);
    }
}
