//! YAML maps read as Go structs: the rules by which Helm's YAML library fills typed fields.
//!
//! Keys are found by exact name, then ignoring case. A text field accepts numbers and booleans in Go's spelling, null
//! leaves a field empty, and every other mismatch is an error with the message of Go's JSON decoder.

use super::content::Content;
use portolan_yaml::{Dialect, Errors, Map, Node, Number, Tag, Text, Value};

/// A map being read as the Go struct of that name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    map: Option<&'a Map>,
    /// The struct's own name, without its package; empty where the struct has none.
    struct_name: &'static str,
    /// The field that leads here; empty at the top.
    path: &'static str,
}

/// Reads a text as one YAML document (the first of several), as Helm's library does.
pub(crate) fn read_yaml(content: &Content) -> Result<Node, String> {
    content.read_yaml().map_err(|errors| go_error(&errors))
}

/// The same for a text that is shared already.
pub(crate) fn read_yaml_text(text: Text) -> Result<Node, String> {
    portolan_yaml::parse_one(text, Dialect::Helm).map_err(|errors| go_error(&errors))
}

fn go_error(errors: &Errors) -> String {
    format!(
        "error converting YAML to JSON: {}",
        errors.first().go_message()
    )
}

impl<'a> Fields<'a> {
    /// Reads a node as a struct; null is the empty one.
    pub(crate) fn of(node: &'a Node, type_name: &'static str) -> Result<Self, String> {
        Self::nested(node, "", type_name)
    }

    fn nested(node: &'a Node, path: &'static str, type_name: &'static str) -> Result<Self, String> {
        let map = match &node.value {
            Value::Map(map) => Some(map),
            _ if node.is_null() => None,
            _ => {
                let what = json_kind(node);
                return Err(decoding(&format!(
                    "cannot unmarshal {what} into Go value of type {type_name}"
                )));
            }
        };
        Ok(Self {
            map,
            struct_name: struct_name(type_name),
            path,
        })
    }

    /// The raw value of a field, null counted as absent.
    pub(crate) fn node(&self, key: &str) -> Option<&'a Node> {
        let map = self.map?;
        let found = map.get(key).or_else(|| {
            let folded = map
                .iter()
                .find(|entry| entry.key.as_str().eq_ignore_ascii_case(key));
            folded.map(|entry| &entry.value)
        });
        found.filter(|node| !node.is_null())
    }

    /// A text; empty where it is absent.
    pub(crate) fn text(&self, key: &str) -> Result<String, String> {
        match self.node(key) {
            Some(node) => go_text(node).ok_or_else(|| self.mismatch(key, node, "string")),
            None => Ok(String::new()),
        }
    }

    /// A boolean; false where it is absent.
    pub(crate) fn bool(&self, key: &str) -> Result<bool, String> {
        match self.node(key) {
            Some(node) => node
                .as_bool()
                .ok_or_else(|| self.mismatch(key, node, "bool")),
            None => Ok(false),
        }
    }

    /// The items of a list; none where it is absent.
    pub(crate) fn list(&self, key: &str, item_type: &str) -> Result<Vec<&'a Node>, String> {
        match self.node(key) {
            None => Ok(Vec::new()),
            Some(node) => match node.as_list() {
                Some(list) => Ok(list.iter().collect()),
                None => Err(self.mismatch(key, node, &format!("[]{item_type}"))),
            },
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let items = self.list(key, "string")?;
        items
            .into_iter()
            .map(|item| match go_text(item) {
                Some(text) => Ok(text),
                None if item.is_null() => Ok(String::new()),
                None => Err(self.mismatch(key, item, "string")),
            })
            .collect()
    }

    /// A list of structs, with null items kept as `None`.
    pub(crate) fn structs(
        &self,
        key: &'static str,
        type_name: &'static str,
    ) -> Result<Vec<Option<Self>>, String> {
        let items = self.list(key, &format!("*{type_name}"))?;
        items
            .into_iter()
            .map(|item| {
                if item.is_null() {
                    return Ok(None);
                }
                Self::nested(item, key, type_name)
                    .map(Some)
                    .map_err(|_| self.mismatch(key, item, type_name))
            })
            .collect()
    }

    /// A nested struct, `None` where it is absent.
    pub(crate) fn structure(
        &self,
        key: &'static str,
        type_name: &'static str,
    ) -> Result<Option<Self>, String> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        Self::nested(node, key, type_name)
            .map(Some)
            .map_err(|_| self.mismatch(key, node, type_name))
    }

    /// A map of texts, in the order of the file.
    pub(crate) fn text_map(&self, key: &str) -> Result<Vec<(String, String)>, String> {
        let Some(node) = self.node(key) else {
            return Ok(Vec::new());
        };
        let Some(map) = node.as_map() else {
            return Err(self.mismatch(key, node, "map[string]string"));
        };
        map.iter()
            .map(|entry| {
                let value = &entry.value;
                let text = match go_text(value) {
                    Some(text) => text,
                    None if value.is_null() => String::new(),
                    None => return Err(self.mismatch(key, value, "string")),
                };
                Ok((entry.key.as_str().to_owned(), text))
            })
            .collect()
    }

    fn mismatch(&self, key: &str, node: &Node, wanted: &str) -> String {
        let (what, dot) = (json_kind(node), if self.path.is_empty() { "" } else { "." });
        decoding(&format!(
            "cannot unmarshal {what} into Go struct field {}.{}{dot}{key} of type {wanted}",
            self.struct_name, self.path
        ))
    }
}

/// The name of a Go struct type: `chart.Metadata` is `Metadata`, one that is spelled out has none.
fn struct_name(type_name: &'static str) -> &'static str {
    if type_name.starts_with("struct {") {
        return "";
    }
    type_name.rsplit('.').next().unwrap_or(type_name)
}

fn decoding(message: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: json: {message}")
}

/// The text a Go string field gets from a scalar: numbers and booleans are spelled out, null and structures are not.
pub(crate) fn go_text(node: &Node) -> Option<String> {
    let scalar = node.as_scalar()?;
    match scalar.tag {
        Tag::Null => None,
        Tag::Bool => node.as_bool().map(|value| value.to_string()),
        Tag::Int | Tag::Float => Some(match node.number()? {
            Number::Int(number) => number.to_string(),
            Number::Uint(number) => number.to_string(),
            Number::Float(number) => {
                portolan_gotmpl::fmt::display(&portolan_gotmpl::Value::float(number))
            }
        }),
        _ => Some(scalar.text.to_string()),
    }
}

/// What Go's JSON decoder calls a value.
pub(crate) fn json_kind(node: &Node) -> &'static str {
    match &node.value {
        Value::Map(_) => "object",
        Value::List(_) => "array",
        Value::Scalar(scalar) => match scalar.tag {
            Tag::Null => "null",
            Tag::Bool => "bool",
            Tag::Int | Tag::Float => "number",
            _ => "string",
        },
    }
}
