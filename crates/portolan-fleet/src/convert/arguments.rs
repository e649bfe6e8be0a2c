//! The arguments of an Ansible module: read by name, and what nobody read is told.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::document::Written;

/// The arguments of a task.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    values: Map<String, Value>,
    /// What stands in place of arguments: `command: make install`.
    pub(super) free: Option<String>,
    used: BTreeSet<String>,
}

impl Arguments {
    /// Reads what stands behind the name of a module.
    pub(super) fn new(value: Value) -> Self {
        match value {
            Value::Object(values) => Self {
                values,
                ..Self::default()
            },
            Value::String(text) => Self {
                values: pairs(&text).unwrap_or_default(),
                free: Some(text),
                used: BTreeSet::new(),
            },
            _ => Self::default(),
        }
    }

    /// Adds arguments that stand beside the module, as in `args:`.
    pub(super) fn extend(&mut self, more: Value) {
        if let Value::Object(more) = more {
            self.values.extend(more);
        }
    }

    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        self.used.insert(name.to_owned());
        self.values
            .get(name)
            .filter(|value| !value.is_null())
            .cloned()
    }

    /// The first of several names that is there.
    pub(super) fn any(&mut self, names: &[&str]) -> Option<Value> {
        let found: Vec<Value> = names.iter().filter_map(|name| self.value(name)).collect();
        found.into_iter().next()
    }

    pub(super) fn text(&mut self, names: &[&str]) -> Option<String> {
        self.any(names).map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    /// # Errors
    /// When it is missing.
    pub(super) fn required(&mut self, names: &[&str]) -> Result<String, String> {
        let first = names.first().copied().unwrap_or_default();
        self.text(names)
            .ok_or_else(|| format!("it has no `{first}`"))
    }

    /// Truth as Ansible reads it.
    pub(super) fn boolean(&mut self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(given) => Some(given),
            Value::String(text) => match text.to_ascii_lowercase().as_str() {
                "yes" | "true" | "on" | "1" => Some(true),
                "no" | "false" | "off" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Permissions as a quoted octal number.
    ///
    /// # Errors
    /// When they are written with letters.
    pub(super) fn mode(&mut self, name: &str) -> Result<Option<Written>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Number(number)) => {
                let number = number.as_u64().unwrap_or_default();
                Ok(Some(Written::from(format!("{number:04o}"))))
            }
            Some(Value::String(text)) => {
                let is_octal = text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
                if is_octal && matches!(text.len(), 3 | 4) || text.contains("{{") {
                    Ok(Some(Written::from(text)))
                } else {
                    Err(format!("the mode `{text}` is not an octal number"))
                }
            }
            Some(_) => Err("the mode is not an octal number".to_owned()),
        }
    }

    /// A list, or a text with commas.
    pub(super) fn list(&mut self, names: &[&str]) -> Option<Vec<Value>> {
        match self.any(names)? {
            Value::Array(items) => Some(items),
            Value::String(text) if text.contains("{{") => Some(vec![text.into()]),
            Value::String(text) => {
                let items = text.split(',').map(|item| item.trim().into());
                Some(items.collect())
            }
            other => Some(vec![other]),
        }
    }

    /// The arguments that nobody read.
    pub(super) fn unread(&self) -> Vec<String> {
        let names = self.values.keys();
        names
            .filter(|name| !self.used.contains(*name))
            .cloned()
            .collect()
    }
}

/// `name=nginx state=present`; `None` if the text is something else.
fn pairs(text: &str) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    for word in text.split_ascii_whitespace() {
        let (name, value) = word.split_once('=')?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return None;
        }
        let value = value.trim_matches(['"', '\'']);
        map.insert(name.to_owned(), value.into());
    }
    Some(map)
}
