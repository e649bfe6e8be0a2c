//! The copy of a `ConfigMap` or Secret that a revision uses.

use serde_json::Value;

use super::App;
use crate::config::{ConfigRef, copy_of};
use crate::revision::Revision;

/// Returns the copy that a revision of an application uses. It belongs to the application and cannot be changed.
pub fn config_copy(
    app: &App<'_>,
    object: &Value,
    config: &ConfigRef,
    revision: &Revision,
) -> Value {
    let mut metadata = app.metadata(&config.copy_name(revision));
    let mut copy = copy_of(object, config, revision, &metadata["labels"].take());
    metadata["labels"] = copy["metadata"]["labels"].take();
    copy["metadata"] = metadata;
    copy
}
