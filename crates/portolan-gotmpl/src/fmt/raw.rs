//! Values made of texts with [marks](portolan_go::marked) for bytes that are not UTF-8.

pub(crate) use portolan_go::marked::{bytes, first_mark, is_marked, lossy, mark};

use crate::value::Value;

/// The string that a text with marks stands for.
pub(crate) fn value(text: String) -> Value {
    if is_marked(&text) {
        Value::str_from_bytes(&bytes(&text))
    } else {
        Value::str(text)
    }
}

/// What a function made of strings with marks: a text, or a list or map of texts, with the bytes back in place.
pub(crate) fn restore(made: Value) -> Value {
    match made {
        Value::Str(text) => value(text.as_str().to_owned()),
        Value::List(list) if list.iter().any(is_marked_text) => {
            let items = list.iter().cloned().map(restore).collect();
            Value::typed_list(list.element(), items)
        }
        Value::Map(map) => {
            for (key, item) in map.snapshot() {
                if is_marked_text(&item) {
                    map.insert(key, restore(item));
                }
            }
            Value::Map(map)
        }
        other => other,
    }
}

fn is_marked_text(value: &Value) -> bool {
    value.as_str().is_some_and(is_marked)
}
