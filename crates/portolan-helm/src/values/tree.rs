//! The immutable form of values, made from YAML and `--set` and shared by every render of a chart.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use portolan_gotmpl::{Frozen, Map, Value};
use portolan_yaml::{Dialect, Node, Tag, Text, Value as Shape};

use super::table::Table;
use crate::package::decode::{json_kind, read_yaml};

/// A value; cloning one costs a reference count.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Tree {
    /// Null: in overrides it takes a chart's default away.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number of `--set`; numbers in YAML are floats.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(Text),
    /// A list.
    List(Arc<Vec<Self>>),
    /// A table.
    Table(Arc<Table>),
}

impl Tree {
    /// A table without entries.
    pub fn empty_table() -> Self {
        Self::Table(Arc::default())
    }

    /// A text.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// Takes over a YAML node: every number becomes a float, every key a text.
    pub fn from_node(node: &Node) -> Self {
        match &node.value {
            Shape::Map(map) => Self::Table(Arc::new(
                map.iter()
                    .map(|entry| {
                        let key = entry.key.scalar.text.clone();
                        (key, Self::from_node(&entry.value))
                    })
                    .collect(),
            )),
            Shape::List(list) => Self::List(Arc::new(list.iter().map(Self::from_node).collect())),
            Shape::Scalar(scalar) => match scalar.tag {
                Tag::Null => Self::Null,
                Tag::Bool => Self::Bool(node.as_bool().unwrap_or_default()),
                Tag::Int | Tag::Float => Self::Float(node.as_f64().unwrap_or_default()),
                _ => Self::Text(scalar.text.clone()),
            },
        }
    }

    /// Reads a YAML document that must be a table; nothing at all, or null, is the empty one.
    pub fn read_table(text: &[u8]) -> Result<Self, String> {
        Self::table_of(&read_yaml(&text.into())?)
    }

    /// The table that a document is; null is an empty one.
    pub(crate) fn table_of(node: &Node) -> Result<Self, String> {
        if let Some(number) = number_without_json(node) {
            return Err(format!(
                "error converting YAML to JSON: json: unsupported value: {number}"
            ));
        }
        match &node.value {
            Shape::Map(_) => Ok(Self::from_node(node)),
            _ if node.is_null() => Ok(Self::empty_table()),
            _ => Err(no_table(node)),
        }
    }

    /// Reads all documents of a text as tables, later ones over earlier ones: how Helm 4 reads a values file.
    pub fn read_documents(text: &[u8]) -> Result<Self, String> {
        let documents = portolan_yaml::parse_bytes(text, Dialect::Helm)
            .map_err(|errors| errors.first().go_message())?;
        let mut merged = Self::empty_table();
        for document in &documents {
            if let Some(number) = number_without_json(document) {
                return Err(format!("json: unsupported value: {number}"));
            }
            match &document.value {
                Shape::Map(_) => merged = merged.overlay(&Self::from_node(document)),
                _ if document.is_null() => {}
                _ => return Err(no_table(document)),
            }
        }
        Ok(merged)
    }

    /// The table, when it is one.
    pub fn as_table(&self) -> Option<&Table> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The value at the end of a path of keys.
    pub fn at_path(&self, path: &[&str]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |tree, key| tree.as_table()?.get(key))
    }

    /// A fresh, mutable copy for a render; a table is copied when it is first looked at.
    pub fn thaw(&self) -> Value {
        match self {
            Self::Null => Value::Nil,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::int64(*value),
            Self::Float(value) => Value::float(*value),
            Self::Text(text) => Value::Str(text.clone()),
            Self::List(items) => Value::list(items.iter().map(Self::thaw).collect()),
            Self::Table(table) => Value::Map(Rc::new(Map::frozen(Rc::new(FrozenTable(
                Arc::clone(table),
            ))))),
        }
    }

    /// An immutable copy of plain data. Only values that [`Tree::thaw`] makes occur; anything else becomes null.
    pub(crate) fn freeze(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(_, value) => Self::Int(*value),
            Value::Float(_, value) => Self::Float(*value),
            Value::Str(text) => Self::Text(text.clone()),
            Value::List(items) => Self::List(Arc::new(items.iter().map(Self::freeze).collect())),
            Value::Map(map) => {
                if let Some(FrozenTable(table)) = map.untouched() {
                    return Self::Table(Arc::clone(table));
                }
                let entries = map.borrow();
                let entries = entries
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::freeze(value)));
                Self::Table(Arc::new(entries.collect()))
            }
            _ => Self::Null,
        }
    }

    /// Lays a table over another: tables merge, everything else of the upper one wins, nulls included.
    #[must_use]
    pub fn overlay(&self, upper: &Self) -> Self {
        let (Self::Table(lower), Self::Table(upper)) = (self, upper) else {
            return upper.clone();
        };
        if lower.is_empty() {
            return Self::Table(Arc::clone(upper));
        }
        let merged = lower.merged(upper, |below, value| match (below, value) {
            (Self::Table(_), Self::Table(_)) => below.overlay(value),
            _ => value.clone(),
        });
        Self::Table(Arc::new(merged))
    }

    /// What Go calls the value's type.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "nil",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Table(_) => "map[string]interface {}",
        }
    }
}

/// A number below a node that JSON cannot say, as Go spells it. Values pass through JSON on their way into Helm.
fn number_without_json(node: &Node) -> Option<&'static str> {
    match &node.value {
        Shape::Map(map) => map
            .iter()
            .find_map(|entry| number_without_json(&entry.value)),
        Shape::List(list) => list.iter().find_map(number_without_json),
        Shape::Scalar(scalar) if scalar.tag == Tag::Float => match node.as_f64()? {
            number if number.is_nan() => Some("NaN"),
            f64::INFINITY => Some("+Inf"),
            f64::NEG_INFINITY => Some("-Inf"),
            _ => None,
        },
        Shape::Scalar(_) => None,
    }
}

fn no_table(node: &Node) -> String {
    format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
        json_kind(node)
    )
}

/// A table that renders share until one of them looks at it.
struct FrozenTable(Arc<Table>);

impl Frozen for FrozenTable {
    fn thaw(&self) -> BTreeMap<Text, Value> {
        thaw_table(&self.0)
    }
}

pub(crate) fn thaw_table(table: &Table) -> BTreeMap<Text, Value> {
    table
        .iter()
        .map(|(key, value)| (key.clone(), value.thaw()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Tree {
        Tree::read_table(text.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_that_json_cannot_say_are_refused() {
        let message = "error converting YAML to JSON: json: unsupported value:";
        for (text, number) in [
            ("a: [.nan]", "NaN"),
            ("a: {b: .inf}", "+Inf"),
            ("a: -.Inf", "-Inf"),
        ] {
            assert_eq!(
                Tree::read_table(text.as_bytes()).unwrap_err(),
                format!("{message} {number}")
            );
        }
    }

    #[test]
    fn numbers_of_yaml_are_floats() {
        let values = table("port: 80\nmode: 0644\nbig: 1e3\n");
        assert_eq!(values.at_path(&["port"]), Some(&Tree::Float(80.0)));
        assert_eq!(values.at_path(&["mode"]), Some(&Tree::Float(420.0)));
        assert_eq!(values.at_path(&["big"]), Some(&Tree::Float(1000.0)));
    }

    #[test]
    fn later_files_win_and_their_nulls_stay() {
        let merged = table("a: {x: 1, y: 2}\nb: [1]").overlay(&table("a: {x: null, z: 3}\nb: [2]"));
        assert_eq!(merged, table("a: {x: null, y: 2, z: 3}\nb: [2]"));
    }

    #[test]
    fn a_list_is_no_table() {
        assert!(
            Tree::read_table(b"- a")
                .unwrap_err()
                .contains("cannot unmarshal array")
        );
        assert_eq!(Tree::read_table(b""), Ok(Tree::empty_table()));
    }
}
