//! Labels and annotations, set the way Go sets them.

use portolan_object::Object;
use portolan_yaml::{Node, Text, Value};

/// Sets labels or annotations. A map with a value that is no string counts as empty: so Go reads it.
pub(crate) fn set_metadata(object: &mut Object, field: &'static str, pairs: &[(Text, Text)]) {
    if pairs.is_empty() {
        return;
    }
    let changed = object.edit(|node| {
        let Some(metadata) = node.get_mut("metadata").and_then(Node::as_map_mut) else {
            return;
        };
        let readable = metadata
            .get(field)
            .and_then(Node::as_map)
            .filter(|map| map.iter().all(|entry| entry.value.as_str().is_some()));
        let mut map = readable.cloned().unwrap_or_default();
        for (key, value) in pairs {
            map.insert(key.clone(), Node::string(value.clone()));
        }
        metadata.insert(field, Node::new(Value::Map(map)));
    });
    debug_assert!(
        changed.is_ok(),
        "labels and annotations do not name an object"
    );
}
