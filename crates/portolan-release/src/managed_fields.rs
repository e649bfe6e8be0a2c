//! Who owns the fields of an object, after `helm` changed it on the client's side.
//!
//! Helm 3 reads, merges and writes objects itself; the server records that as an update by `helm`. An apply by `helm` is
//! another owner, which could neither change those fields without a conflict nor remove them. So they become fields of the
//! apply before the object is applied, as `kubectl` and Helm 4 do it.

use serde_json::{Map, Value, json};

/// The patch that turns updates by a manager into an apply by it; `None` if there are none.
pub(crate) fn updates_to_apply(object: &Value, manager: &str) -> Option<Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let is_main = |entry: &Value| entry["subresource"].as_str().unwrap_or_default().is_empty();
    let is_by = |entry: &Value, operation: &str| {
        entry["manager"] == manager && entry["operation"] == operation && is_main(entry)
    };
    let (updates, mut others): (Vec<Value>, Vec<Value>) = entries
        .iter()
        .cloned()
        .partition(|entry| is_by(entry, "Update"));
    let mut updates = updates.into_iter();
    let first = updates.next()?;
    let applied = others.iter().position(|entry| is_by(entry, "Apply"));
    let mut entry = match applied {
        Some(place) => others.remove(place),
        None => Value::Null,
    };
    if entry.is_null() {
        entry = first;
        entry["operation"] = "Apply".into();
    } else {
        merge(&mut entry["fieldsV1"], &first["fieldsV1"]);
    }
    for update in updates {
        merge(&mut entry["fieldsV1"], &update["fieldsV1"]);
    }
    others.push(entry);
    Some(json!({"metadata": {
        "resourceVersion": object["metadata"]["resourceVersion"],
        "managedFields": others,
    }}))
}

/// Adds the fields of one set to another.
fn merge(fields: &mut Value, more: &Value) {
    let Some(more) = more.as_object() else {
        return;
    };
    if !fields.is_object() {
        *fields = Value::Object(Map::new());
    }
    for (name, below) in more {
        merge(&mut fields[name.as_str()], below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_updates_become_fields_of_the_apply() {
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
        let object = json!({"metadata": {"resourceVersion": "7", "managedFields": [
            entry("helm", "Apply", json!({"f:data": {"f:a": {}}})),
            entry("helm", "Update", json!({"f:data": {"f:b": {}}})),
            entry("other", "Update", json!({"f:data": {"f:c": {}}})),
        ]}});
        let patch = updates_to_apply(&object, "helm").unwrap();
        assert_eq!(
            patch["metadata"]["managedFields"],
            json!([
                entry("other", "Update", json!({"f:data": {"f:c": {}}})),
                entry("helm", "Apply", json!({"f:data": {"f:a": {}, "f:b": {}}})),
            ])
        );
        assert_eq!(updates_to_apply(&object, "nobody"), None);
    }
}
