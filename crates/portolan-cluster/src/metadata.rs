//! An object's metadata, which is enough for most purposes.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What names an object and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace; empty when it has none.
    pub namespace: String,
    /// What no other object ever has.
    pub uid: String,
    /// Changes whenever the object does.
    pub resource_version: String,
    /// Counts the changes of what was asked for; 0 where nobody counts.
    pub generation: i64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Who wrote which fields.
    pub managed_fields: Vec<ManagedBy>,
}

/// Somebody who wrote fields of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedBy {
    /// Who.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The API version the writer used.
    pub api_version: String,
    /// When, in RFC 3339.
    pub time: String,
    /// The part of the object, when it is not the main one: `status`.
    pub subresource: String,
}

impl Metadata {
    /// What the object is known by among those of its kind.
    pub fn key(&self) -> String {
        object_key(&self.namespace, &self.name)
    }
}

/// `namespace/name`, or the name of what has no namespace.
pub fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}
