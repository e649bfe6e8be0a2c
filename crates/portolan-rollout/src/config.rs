//! `ConfigMaps` and Secrets that a pod template uses.
//!
//! Each revision gets copies of its own, `NAME-REVISION`, and its pods use those. So stable pods never see what a new
//! revision brings, and a rollback brings the old content back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::revision::{Revision, canonical_json, sha256};

/// A `ConfigMap` or Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConfigRef {
    /// Which of the two.
    pub kind: ConfigKind,
    /// Its name, in the namespace of the pods.
    pub name: String,
}

/// The kinds of configuration that pods can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConfigKind {
    /// A `ConfigMap`.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// One `ConfigMap` or Secret as it is now. It holds no content, only what tells one content from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigVersion {
    /// Which object.
    #[serde(flatten)]
    pub config: ConfigRef,
    /// Its resource version; empty if it does not exist.
    pub resource_version: String,
    /// A hash of its content; see [`content_hash`].
    pub hash: String,
}

/// The annotation by which an object is not tracked.
pub const NOT_TRACKED: &str = "portolan.dev/track-config";

/// Stands for the hash of an object that does not exist.
pub const MISSING: &str = "missing";

impl ConfigRef {
    /// Returns the name of the copy that a revision uses.
    pub fn copy_name(&self, revision: &Revision) -> String {
        let longest = LONGEST_NAME.saturating_sub(revision.as_str().len() + 1);
        let name = self.name.get(..longest).unwrap_or(&self.name);
        format!("{}-{revision}", name.trim_end_matches(['-', '.']))
    }
}

/// The longest name of a `ConfigMap` or Secret.
const LONGEST_NAME: usize = 253;

/// Returns every `ConfigMap` and Secret that a pod template uses, once each and in order.
pub fn config_refs(template: &Value) -> Vec<ConfigRef> {
    let mut found = BTreeSet::new();
    // The walk is written once, for reading and renaming; a template is small.
    for_each_name(&mut template.clone(), &mut |kind, name| {
        found.insert(ConfigRef {
            kind,
            name: name.clone(),
        });
    });
    found.into_iter().collect()
}

/// Makes a pod template use the copies of a revision for these objects.
pub fn use_copies(template: &mut Value, tracked: &[ConfigRef], revision: &Revision) {
    for_each_name(template, &mut |kind, name| {
        let config = ConfigRef {
            kind,
            name: name.clone(),
        };
        if tracked.contains(&config) {
            *name = config.copy_name(revision);
        }
    });
}

/// Returns a hash of the content of a `ConfigMap` or Secret; its metadata does not matter.
pub fn content_hash(object: &Value) -> String {
    let content: Value = ["data", "binaryData", "type"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), object.get(key)?.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into();
    sha256(canonical_json(&content).as_bytes())
}

/// Returns the copy of a `ConfigMap` or Secret that a revision uses. It cannot be changed afterwards.
pub fn copy_of(object: &Value, config: &ConfigRef, revision: &Revision, labels: &Value) -> Value {
    let mut copy = json!({
        "apiVersion": "v1",
        "kind": config.kind,
        "metadata": {"name": config.copy_name(revision), "labels": labels},
        "immutable": true,
    });
    for key in ["data", "binaryData", "type"] {
        if let Some(content) = object.get(key) {
            copy[key] = content.clone();
        }
    }
    copy
}

/// Calls a function with every name of a `ConfigMap` or Secret in a pod template.
fn for_each_name(template: &mut Value, found: &mut dyn FnMut(ConfigKind, &mut String)) {
    use ConfigKind::{ConfigMap, Secret};
    for containers in ["/spec/initContainers", "/spec/containers"] {
        for container in items(template, containers) {
            for source in items(container, "/envFrom") {
                name(source, "/configMapRef/name", ConfigMap, found);
                name(source, "/secretRef/name", Secret, found);
            }
            for variable in items(container, "/env") {
                name(
                    variable,
                    "/valueFrom/configMapKeyRef/name",
                    ConfigMap,
                    found,
                );
                name(variable, "/valueFrom/secretKeyRef/name", Secret, found);
            }
        }
    }
    for volume in items(template, "/spec/volumes") {
        name(volume, "/configMap/name", ConfigMap, found);
        name(volume, "/secret/secretName", Secret, found);
        for source in items(volume, "/projected/sources") {
            name(source, "/configMap/name", ConfigMap, found);
            name(source, "/secret/name", Secret, found);
        }
    }
}

/// The items of a list below a value; none if there is no such list.
fn items<'a>(value: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = value.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

fn name(
    value: &mut Value,
    pointer: &str,
    kind: ConfigKind,
    found: &mut dyn FnMut(ConfigKind, &mut String),
) {
    if let Some(Value::String(name)) = value.pointer_mut(pointer) {
        found(kind, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Value {
        json!({"spec": {
            "initContainers": [{"name": "init", "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]}],
            "containers": [{"name": "app", "env": [
                {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "x"}}},
                {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "d", "key": "y"}}},
                {"name": "Z", "value": "plain"},
            ]}],
            "volumes": [
                {"name": "e", "configMap": {"name": "e"}},
                {"name": "f", "secret": {"secretName": "f"}},
                {"name": "g", "projected": {"sources": [{"configMap": {"name": "g"}}, {"secret": {"name": "h"}}]}},
                {"name": "again", "configMap": {"name": "a"}},
                {"name": "odd", "configMap": "not a map"},
            ],
        }})
    }

    fn names(template: &Value) -> Vec<String> {
        let refs = config_refs(template).into_iter();
        refs.map(|config| format!("{:?}/{}", config.kind, config.name))
            .collect()
    }

    #[test]
    fn every_way_to_use_configuration_is_found() {
        assert_eq!(
            names(&template()).join(" "),
            "ConfigMap/a ConfigMap/c ConfigMap/e ConfigMap/g Secret/b Secret/d Secret/f Secret/h"
        );
    }

    #[test]
    fn only_tracked_objects_are_replaced_by_their_copies() {
        let mut template = template();
        let before = template.clone();
        let revision = Revision::of(&json!({}), &[]);
        let tracked: Vec<ConfigRef> = config_refs(&before)
            .into_iter()
            .filter(|config| config.name != "h")
            .collect();
        use_copies(&mut template, &tracked, &revision);
        let changed = names(&template);
        assert!(changed.contains(&"Secret/h".to_owned()));
        assert!(changed.contains(&format!("ConfigMap/a-{revision}")));
        assert_eq!(changed.len(), 8);
        use_copies(&mut template, &tracked, &revision);
        assert_eq!(names(&template), changed, "copies are not copied again");
    }

    #[test]
    fn nothing_is_found_in_what_is_no_template() {
        for odd in [
            json!(null),
            json!("text"),
            json!([1]),
            json!({"spec": [], "x": 1}),
        ] {
            assert_eq!(config_refs(&odd), []);
        }
    }

    #[test]
    fn the_hash_is_of_the_content_alone() {
        let one = json!({"metadata": {"resourceVersion": "1"}, "data": {"b": "2", "a": "1"}});
        let same = json!({"metadata": {"resourceVersion": "2"}, "data": {"a": "1", "b": "2"}});
        let other = json!({"metadata": {"resourceVersion": "1"}, "data": {"a": "1", "b": "3"}});
        assert_eq!(content_hash(&one), content_hash(&same));
        assert_ne!(content_hash(&one), content_hash(&other));
    }

    /// These hashes are part of the names of revisions. A change here would restart every application of every user.
    #[test]
    fn hashes_of_content_never_change() {
        let map = json!({"data": {"a": "1", "b": "\u{e9}\n"}, "binaryData": {"c": "AAE="}});
        assert_eq!(
            content_hash(&map),
            "3614857b4b84cb0c8df12cd277e1c45c97395d9e56f82952308a7ca11af11813"
        );
        let secret = json!({"type": "Opaque", "data": {"password": "aHVudGVyMg=="}});
        assert_eq!(
            content_hash(&secret),
            "26560215e349f5651fbec94f2af9e3dbdfc0ad795557708369840751e8a19383"
        );
    }

    #[test]
    fn the_name_of_a_copy_is_never_too_long() {
        let revision = Revision::of(&json!({}), &[]);
        let config = ConfigRef {
            kind: ConfigKind::ConfigMap,
            name: "n".repeat(253),
        };
        assert_eq!(config.copy_name(&revision).len(), 253);
    }
}
