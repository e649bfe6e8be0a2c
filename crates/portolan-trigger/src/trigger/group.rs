//! Groups that a trigger counts apart: the values of some fields of its events.

use serde_json::{Value as Json, json};

use crate::event::FleetEvent;

/// The longest name of a group; longer ones are known by their digest.
const MAX_NAME: usize = 256;

/// A field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GroupField {
    Type,
    Namespace,
    Node,
    Severity,
    Label(String),
    Data(Vec<String>),
}

impl GroupField {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "type" => Self::Type,
            "namespace" => Self::Namespace,
            "node" => Self::Node,
            "severity" => Self::Severity,
            _ if text.len() > MAX_NAME => return None,
            _ => match text.split_once('.')? {
                ("labels", name) if !name.is_empty() => Self::Label(name.to_owned()),
                ("data", path) if path.split('.').all(|part| !part.is_empty()) => {
                    Self::Data(path.split('.').map(str::to_owned).collect())
                }
                _ => return None,
            },
        })
    }

    fn value(&self, event: &FleetEvent) -> Json {
        match self {
            Self::Type => json!(event.kind),
            Self::Namespace => json!(event.namespace),
            Self::Node => json!(event.node),
            Self::Severity => json!(event.severity.as_str()),
            Self::Label(name) => json!(event.labels.get(name)),
            Self::Data(path) => {
                let mut parts = path.iter();
                let first = parts.next().and_then(|name| event.data.get(name));
                let found = parts.fold(first, |value, name| value?.get(name));
                found.cloned().unwrap_or(Json::Null)
            }
        }
    }
}

/// The name of the group of an event: the values as JSON, so that no two groups have the same.
pub(super) fn key(fields: &[GroupField], event: &FleetEvent) -> String {
    let values: Vec<Json> = fields.iter().map(|field| field.value(event)).collect();
    let name = Json::Array(values).to_string();
    if name.len() <= MAX_NAME {
        return name;
    }
    portolan_digest::Digest::of(name.as_bytes()).to_string()
}
