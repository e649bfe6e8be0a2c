//! Sets a field of JSON that a user wrote, whatever that is.

use serde_json::{Map, Value};

/// Sets the field at a path. What is in the way and no map is replaced by one: indexing would panic.
pub(super) fn put(value: &mut Value, path: &[&str], new: Value) {
    let Some((last, above)) = path.split_last() else {
        *value = new;
        return;
    };
    let mut fields = as_map(value);
    for key in above {
        fields = as_map(fields.entry(*key).or_insert(Value::Null));
    }
    fields.insert((*last).to_owned(), new);
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("it was just made a map"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_in_the_way_is_replaced() {
        let mut value = json!({"a": "text", "b": 1});
        put(&mut value, &["a", "c"], json!(2));
        assert_eq!(value, json!({"a": {"c": 2}, "b": 1}));
        let mut value = json!("text");
        put(&mut value, &["a"], json!(1));
        assert_eq!(value, json!({"a": 1}));
    }
}
