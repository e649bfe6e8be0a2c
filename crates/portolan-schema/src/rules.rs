//! The validation rules of a definition (`x-kubernetes-validations`), evaluated as the API server does.
//!
//! Rules are CEL expressions; the `kube-cel` crate evaluates them, defaults filled in first. A rule that it cannot
//! evaluate is left to the API server: a finding must be right.

use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use portolan_yaml::{Node, Position, to_json};
use serde_json::Value;

use crate::path::{FieldPath, Segment};
use crate::violation::{Problem, Violation};

/// The rules of one version of a definition.
pub(crate) struct Rules {
    compiled: CompiledSchema,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// Compiles the rules; none when the schema has none.
    pub(crate) fn read(schema: &Node) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        let compiled = compile_schema(&json(schema)?);
        Some(Self { compiled })
    }

    /// Every rule that the object breaks.
    pub(crate) fn broken_by(&self, object: &Node) -> Vec<Violation> {
        let Some(value) = json(object) else {
            return Vec::new();
        };
        let Err(errors) = Validator::new().validate_compiled(&self.compiled, &value, None) else {
            return Vec::new();
        };
        let broken = errors
            .iter()
            .filter(|error| error.kind == ErrorKind::ValidationFailure);
        broken
            .map(|error| {
                let path = FieldPath::parse(&error.field_path);
                Violation {
                    at: place(object, &path),
                    path,
                    problem: Problem::Rule {
                        message: error.message.clone(),
                    },
                }
            })
            .collect()
    }
}

fn has_rules(schema: &Node) -> bool {
    if let Some(map) = schema.as_map() {
        return map.iter().any(|entry| {
            entry.key.as_str() == "x-kubernetes-validations" || has_rules(&entry.value)
        });
    }
    schema
        .as_list()
        .is_some_and(|list| list.iter().any(has_rules))
}

fn json(node: &Node) -> Option<Value> {
    serde_json::from_str(&to_json(node).ok()?).ok()
}

/// Where the value of a path stands, or the nearest above it.
fn place(object: &Node, path: &FieldPath) -> Position {
    let mut node = object;
    for segment in &path.segments {
        let below = match segment {
            Segment::Key(key) => node.get(key),
            Segment::Index(index) => node.as_list().and_then(|list| list.get(*index)),
        };
        match below {
            Some(below) => node = below,
            None => break,
        }
    }
    node.at
}
