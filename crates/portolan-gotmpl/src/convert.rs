//! Converts YAML to values as Helm does: through JSON, with every number as a float.

use std::collections::BTreeMap;

use portolan_yaml::json::{Numbers, to_json_with};
use portolan_yaml::{Node, Scalar, Tag, WriteError};

use crate::value::Value;

impl Value {
    /// The value of a YAML tree. Texts are shared with the tree, not copied.
    ///
    /// What JSON cannot hold, such as infinities, is an error. Trees that were read are never too deep to walk.
    pub fn from_node(node: &Node) -> Result<Self, WriteError> {
        match &node.value {
            portolan_yaml::Value::Scalar(scalar) => from_scalar(node, scalar),
            portolan_yaml::Value::List(list) => {
                let items: Result<_, _> = list.iter().map(Self::from_node).collect();
                Ok(Self::list(items?))
            }
            portolan_yaml::Value::Map(map) => {
                let mut entries = BTreeMap::new();
                for entry in map {
                    entries.insert(
                        entry.key.scalar.text.clone(),
                        Self::from_node(&entry.value)?,
                    );
                }
                Ok(Self::map(entries))
            }
        }
    }
}

fn from_scalar(node: &Node, scalar: &Scalar) -> Result<Value, WriteError> {
    match scalar.tag {
        Tag::Null => Ok(Value::Nil),
        Tag::Bool => Ok(Value::Bool(scalar.as_bool() == Some(true))),
        Tag::Int | Tag::Float => match node.as_f64() {
            Some(number) if number.is_finite() => Ok(Value::float(number)),
            _ => through_json(node),
        },
        Tag::Timestamp | Tag::Binary => through_json(node),
        Tag::Str | Tag::Merge | Tag::Other => Ok(Value::Str(scalar.text.clone())),
    }
}

/// Rare scalars: JSON says what they are, or why they are nothing.
fn through_json(node: &Node) -> Result<Value, WriteError> {
    let json = to_json_with(node, Numbers::Float64)?;
    let read = portolan_yaml::from_json(&json).ok();
    let text = read
        .and_then(|node| node.as_str().map(str::to_owned))
        .unwrap_or(json);
    Ok(Value::str(text))
}
