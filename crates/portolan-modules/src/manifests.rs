//! Kubernetes objects as texts that people compare: the values of Secrets are hidden.

use portolan_ship::{manifests_yaml, read_manifests};
use serde_json::Value;

use crate::action::ModuleError;
use crate::unified::unified;

/// Objects as a stream of YAML documents, with the values of Secrets.
pub(crate) fn to_yaml(objects: &[Value]) -> Result<String, ModuleError> {
    manifests_yaml(objects, true)
        .map(|(text, _)| text)
        .map_err(|error| ModuleError::failed("write", "objects", error))
}

/// The difference between two lists of objects, without the values of Secrets.
pub(crate) fn difference(path: &str, old: Option<&[Value]>, new: Option<&[Value]>) -> String {
    let hidden = |objects: &[Value]| match manifests_yaml(objects, false) {
        Ok((text, _)) => text.into_bytes(),
        Err(error) => error.to_string().into_bytes(),
    };
    let (old_text, new_text) = (old.map(hidden), new.map(hidden));
    let diff = unified(path, old_text.as_deref(), new_text.as_deref());
    if diff.is_empty() && old != new {
        return "values of Secrets differ\n".to_owned();
    }
    diff
}

/// The objects of a text; `None` if it has something else.
pub(crate) fn objects_of(text: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(text).ok()?;
    read_manifests(text, "manifests".into()).ok()
}
