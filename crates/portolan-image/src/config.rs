//! The config of an image: what runs in it, and the history of its layers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::key::Key;
use crate::layer::Layer;
use crate::time::rfc3339;
use crate::wire::{Platform, sorted, to_json};

/// What runs in an image. What is absent stays as the base has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigSpec {
    /// The program and its first arguments. A new one drops the base's `cmd`, as Docker does.
    pub entrypoint: Option<Vec<String>>,
    /// The arguments that a caller may replace.
    pub cmd: Option<Vec<String>>,
    /// Variables, in their order; those of the base with the same name are replaced.
    pub env: Vec<(String, String)>,
    /// `user`, `uid` or `uid:gid`.
    pub user: Option<String>,
    /// The working directory.
    pub workdir: Option<String>,
    /// Ports as `8080/tcp`.
    pub ports: Vec<String>,
    /// Labels; those of the base with the same name are replaced.
    pub labels: BTreeMap<String, String>,
}

impl ConfigSpec {
    /// Adds everything to a key.
    pub(crate) fn add_to(&self, key: &mut Key) {
        for list in [&self.entrypoint, &self.cmd] {
            match list {
                Some(list) => key.number(1).texts(list.iter().map(String::as_str)),
                None => key.number(0),
            };
        }
        key.number(self.env.len() as u64);
        for (name, value) in &self.env {
            key.text(name).text(value);
        }
        for text in [&self.user, &self.workdir] {
            match text {
                Some(text) => key.number(1).text(text),
                None => key.number(0),
            };
        }
        key.texts(self.ports.iter().map(String::as_str));
        key.number(self.labels.len() as u64);
        for (name, value) in &self.labels {
            key.text(name).text(value);
        }
    }
}

/// The text of an image's config: that of the base with the wishes of `spec` and new layers.
///
/// The history says no more than that we made the layers: a revision or a key in it would change the image of unchanged files.
pub(crate) fn config(
    base: Option<&Map<String, Value>>,
    base_layers: usize,
    spec: &ConfigSpec,
    platform: &Platform,
    layers: &[Layer],
    created: u64,
) -> Vec<u8> {
    let mut config = base.cloned().unwrap_or_default();
    // What Docker notes of the build of the base says nothing of this image.
    for name in [
        "container",
        "container_config",
        "docker_version",
        "id",
        "parent",
        "parent_id",
        "throwaway",
    ] {
        config.remove(name);
    }
    let created = rfc3339(created);
    config.insert("created".into(), json!(created));
    config.insert("architecture".into(), json!(platform.architecture));
    config.insert("os".into(), json!(platform.os));
    if let Some(variant) = &platform.variant {
        config.insert("variant".into(), json!(variant));
    }
    let mut runs = match config.remove("config") {
        Some(Value::Object(runs)) => runs,
        _ => Map::new(),
    };
    apply(&mut runs, spec);
    config.insert("config".into(), Value::Object(runs));
    let mut diff_ids = match config.remove("rootfs") {
        Some(Value::Object(mut rootfs)) => list(rootfs.remove("diff_ids")),
        _ => Vec::new(),
    };
    diff_ids.extend(layers.iter().map(|layer| json!(layer.diff_id.to_string())));
    config.insert(
        "rootfs".into(),
        json!({"type": "layers", "diff_ids": diff_ids}),
    );
    let mut history = list(config.remove("history"));
    let is_layer = |entry: &&Value| entry.get("empty_layer").and_then(Value::as_bool) != Some(true);
    // Readers want one entry for each layer; some images have none at all.
    if history.iter().filter(is_layer).count() != base_layers {
        history = vec![json!({"created": created, "created_by": "base image"}); base_layers];
    }
    history.extend(
        layers
            .iter()
            .map(|_| json!({"created": created, "created_by": "portolan"})),
    );
    config.insert("history".into(), Value::Array(history));
    to_json(&sorted(Value::Object(config)))
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn apply(runs: &mut Map<String, Value>, spec: &ConfigSpec) {
    if let Some(entrypoint) = &spec.entrypoint {
        runs.insert("Entrypoint".into(), json!(entrypoint));
        runs.remove("Cmd");
    }
    if let Some(cmd) = &spec.cmd {
        runs.insert("Cmd".into(), json!(cmd));
    }
    if !spec.env.is_empty() {
        let env = merged_env(runs.remove("Env"), &spec.env);
        runs.insert("Env".into(), json!(env));
    }
    if let Some(user) = &spec.user {
        runs.insert("User".into(), json!(user));
    }
    if let Some(workdir) = &spec.workdir {
        runs.insert("WorkingDir".into(), json!(workdir));
    }
    extend_map(
        runs,
        "ExposedPorts",
        spec.ports.iter().map(|port| (port.clone(), json!({}))),
    );
    let labels = spec.labels.iter();
    extend_map(
        runs,
        "Labels",
        labels.map(|(name, value)| (name.clone(), json!(value))),
    );
}

/// The variables of the base at their places, new ones behind them.
fn merged_env(base: Option<Value>, wanted: &[(String, String)]) -> Vec<String> {
    let mut env: Vec<String> = list(base)
        .into_iter()
        .filter_map(|entry| entry.as_str().map(str::to_owned))
        .collect();
    for (name, value) in wanted {
        let written = format!("{name}={value}");
        let same = |entry: &&mut String| {
            entry
                .split_once('=')
                .map_or(entry.as_str(), |(known, _)| known)
                == name
        };
        match env.iter_mut().find(same) {
            Some(entry) => *entry = written,
            None => env.push(written),
        }
    }
    env
}

fn extend_map(
    runs: &mut Map<String, Value>,
    field: &str,
    more: impl ExactSizeIterator<Item = (String, Value)>,
) {
    if more.len() == 0 {
        return;
    }
    let mut map = match runs.remove(field) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    map.extend(more);
    runs.insert(field.to_owned(), Value::Object(map));
}
