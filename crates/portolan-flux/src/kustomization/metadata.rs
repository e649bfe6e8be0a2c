//! Labels and annotations, set the way Go sets them.

use portolan_object::Object;
use portolan_yaml::{Map, Node, Text, Value};

use crate::api::CommonMetadata;

/// Sets the labels and annotations that many objects have in common. Where there is one to set, Go writes both maps anew.
pub(crate) fn set_common_metadata(object: &mut Object, common: &CommonMetadata) {
    if common.labels.is_empty() && common.annotations.is_empty() {
        return;
    }
    set_metadata(object, "labels", &common.labels);
    set_metadata(object, "annotations", &common.annotations);
}

/// Sets labels or annotations. A map with a value that is neither a string nor null counts as empty, and null is the
/// empty string: so Go reads it.
pub(crate) fn set_metadata(object: &mut Object, field: &'static str, pairs: &[(Text, Text)]) {
    let before = object.node().at_path(&["metadata", field]);
    let before = before.and_then(Node::as_map);
    let has_null = || before.is_some_and(|map| map.iter().any(|entry| entry.value.is_null()));
    if pairs.is_empty() && !has_null() {
        return;
    }
    let mut map = before.and_then(readable).unwrap_or_default();
    if pairs.is_empty() && map.is_empty() {
        return;
    }
    for (key, value) in pairs {
        map.insert(key.clone(), Node::string(value.clone()));
    }
    let changed = object.edit(|node| {
        if let Some(metadata) = node.get_mut("metadata").and_then(Node::as_map_mut) {
            metadata.insert(field, Node::new(Value::Map(map)));
        }
    });
    debug_assert!(
        changed.is_ok(),
        "labels and annotations do not name an object"
    );
}

/// A map of strings; `None` when something else is in it.
fn readable(map: &Map) -> Option<Map> {
    let mut strings = map.clone();
    for entry in strings.entries_mut() {
        if entry.value.is_null() {
            entry.value = Node::string("");
        }
        entry.value.as_str()?;
    }
    Some(strings)
}
