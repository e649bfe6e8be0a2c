//! Which fields of two objects differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// More are not told.
const MOST: usize = 20;

/// The paths at which two JSON values differ.
pub(crate) fn differences(a: &Value, b: &Value, path: &str, found: &mut Vec<String>) {
    if found.len() >= MOST || a == b {
        return;
    }
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        found.push(path.to_owned());
        return;
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys {
        let below = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let nothing = Value::Null;
        differences(
            a.get(key).unwrap_or(&nothing),
            b.get(key).unwrap_or(&nothing),
            &below,
            found,
        );
    }
}
