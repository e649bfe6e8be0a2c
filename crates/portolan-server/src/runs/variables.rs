//! The static variables of a node in a run: all nodes < groups < the node; in one scope a namespace's Variable stands above
//! a bound `ClusterVariable`. Equal rank with different values is an error that names both.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_kinds::{KindObject, find_kind};
use serde_json::{Map, Value};

use super::target::FleetView;
use crate::cache::Cache;
use crate::error::ApiError;
use crate::node_access::texts;

/// The variables that runs of a namespace can see.
pub(super) struct Variables {
    sources: Vec<Source>,
}

/// Values for some nodes.
struct Source {
    /// As people name it.
    name: String,
    scope: Scope,
    is_own: bool,
    /// The position in its binding: later ones stand above earlier ones.
    position: usize,
    values: Map<String, Value>,
}

enum Scope {
    All,
    Groups(Vec<String>),
    Node(String),
}

impl Variables {
    pub(super) fn new(cache: &Cache, namespace: &str) -> Self {
        let all = |kind: &str, namespace: Option<&str>| {
            find_kind(kind).map_or_else(Vec::new, |kind| cache.objects(kind, namespace))
        };
        let mut sources: Vec<Source> = all("Variable", Some(namespace)).iter().map(own).collect();
        let shared: BTreeMap<String, Arc<KindObject>> = all("ClusterVariable", None)
            .into_iter()
            .map(|variable| (variable.name().to_owned(), variable))
            .collect();
        for binding in all("ClusterVariablesBinding", None) {
            if !texts(&binding, "namespaces").any(|one| one == namespace) {
                continue;
            }
            let groups: Vec<String> = texts(&binding, "groups").map(str::to_owned).collect();
            for (position, name) in texts(&binding, "variables").enumerate() {
                let Some(variable) = shared.get(name) else {
                    continue;
                };
                sources.push(Source {
                    name: format!("ClusterVariable {name} (binding {})", binding.name()),
                    scope: if groups.is_empty() {
                        Scope::All
                    } else {
                        Scope::Groups(groups.clone())
                    },
                    is_own: false,
                    position,
                    values: values_of(variable),
                });
            }
        }
        Self { sources }
    }

    /// The variables of a node.
    pub(super) fn of(
        &self,
        view: &FleetView,
        node: &KindObject,
    ) -> Result<Map<String, Value>, ApiError> {
        let groups = view.groups_of(node);
        let mut chosen: BTreeMap<&str, (&Source, u8, &Value)> = BTreeMap::new();
        for source in &self.sources {
            let scope = match &source.scope {
                Scope::All => 0,
                Scope::Groups(names) if names.iter().any(|name| groups.contains(name.as_str())) => {
                    1
                }
                Scope::Node(name) if name == node.name() => 2,
                _ => continue,
            };
            for (key, value) in &source.values {
                let rank = (scope, source.is_own, source.position);
                match chosen.get(key.as_str()) {
                    Some((other, at, known)) if (*at, other.is_own, other.position) == rank => {
                        if *known != value {
                            return Err(conflict(node, key, &other.name, &source.name));
                        }
                    }
                    Some((other, at, _)) if (*at, other.is_own, other.position) > rank => {}
                    _ => {
                        chosen.insert(key, (source, scope, value));
                    }
                }
            }
        }
        let values = chosen.into_iter();
        Ok(values
            .map(|(key, (_, _, value))| (key.to_owned(), value.clone()))
            .collect())
    }
}

fn own(variable: &Arc<KindObject>) -> Source {
    let target = variable.spec.get("for").cloned().unwrap_or_default();
    let node = target.get("node").and_then(Value::as_str);
    let groups = target.get("groups").and_then(Value::as_array);
    let scope = match (node, groups) {
        (Some(node), _) => Scope::Node(node.to_owned()),
        (None, Some(groups)) => {
            let groups = groups.iter().filter_map(Value::as_str);
            Scope::Groups(groups.map(str::to_owned).collect())
        }
        (None, None) => Scope::All,
    };
    Source {
        name: format!("Variable {}", variable.name()),
        scope,
        is_own: true,
        position: 0,
        values: values_of(variable),
    }
}

fn values_of(variable: &KindObject) -> Map<String, Value> {
    let values = variable.spec.get("values").and_then(Value::as_object);
    values.cloned().unwrap_or_default()
}

fn conflict(node: &KindObject, key: &str, first: &str, second: &str) -> ApiError {
    let message = format!(
        "variable `{key}` of node {} has two values of the same rank: in {first} and in {second}",
        node.name()
    );
    ApiError::bad_request(message).hint("remove one of them, or give one to the node itself")
}
