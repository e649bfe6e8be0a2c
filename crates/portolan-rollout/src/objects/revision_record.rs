//! A revision, kept as a `ControllerRevision`: what is needed to run it again, and no content of a Secret.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::App;
use crate::config::{ConfigRef, ConfigVersion, MISSING};
use crate::revision::Revision;

/// What a revision is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevisionContent {
    /// Its name.
    pub revision: Revision,
    /// The pod template that the user wrote.
    pub template: Value,
    /// The tracked configuration that it uses, by hash.
    #[serde(default)]
    pub config: Vec<ConfigVersion>,
}

impl RevisionContent {
    /// Returns the configuration that the revision has copies of.
    pub fn tracked(&self) -> Vec<ConfigRef> {
        let existing = self.config.iter().filter(|version| version.hash != MISSING);
        existing.map(|version| version.config.clone()).collect()
    }
}

/// Returns the `ControllerRevision` of a revision; `number` orders the revisions of an application.
pub fn controller_revision(app: &App<'_>, content: &RevisionContent, number: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": app.metadata(&format!("{}-{}", app.name, content.revision)),
        "revision": number,
        "data": content,
    })
}

/// Reads a revision from its `ControllerRevision`; `None` if that is not one of ours.
pub fn read_controller_revision(object: &Value) -> Option<RevisionContent> {
    serde_json::from_value(object.get("data")?.clone()).ok()
}
