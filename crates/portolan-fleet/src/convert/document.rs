//! A book while it is written: values that keep the order in which people read them.

use portolan_yaml::{from_json, write_kustomize};
use serde_json::{Value, json};

/// A value whose maps keep their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Written {
    /// A text, number or truth, or any value whose order does not matter.
    Plain(Value),
    List(Vec<Self>),
    Map(Fields),
}

/// Fields in their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields(Vec<(String, Written)>);

impl Fields {
    /// Adds a field, or replaces the one of this name.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Written>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Adds a field if there is a value.
    pub(super) fn set_some(&mut self, name: &str, value: Option<impl Into<Written>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds all fields of others.
    pub(super) fn extend(&mut self, other: Self) {
        for (name, value) in other.0 {
            self.set(&name, value);
        }
    }

    /// The text of the field `name`.
    pub(super) fn name(&self) -> Option<String> {
        let (_, name) = self.0.iter().find(|(field, _)| field == "name")?;
        match name {
            Written::Plain(Value::String(name)) => Some(name.clone()),
            _ => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

impl Fields {
    /// The fields as YAML, in their order.
    ///
    /// # Errors
    /// When a value cannot be written.
    pub(super) fn to_yaml(&self) -> Result<String, String> {
        let mut out = String::new();
        for (name, value) in &self.0 {
            match value {
                Written::Plain(value) => out.push_str(&entry(name, value)?),
                Written::Map(fields) if fields.is_empty() => {
                    out.push_str(&entry(name, &json!({}))?);
                }
                Written::List(items) if items.is_empty() => out.push_str(&entry(name, &json!([]))?),
                Written::Map(fields) => {
                    out.push_str(&head(name)?);
                    out.push_str(&indented(&fields.to_yaml()?, "  "));
                }
                Written::List(items) => {
                    out.push_str(&head(name)?);
                    for item in items {
                        out.push_str(&list_item(item)?);
                    }
                }
            }
        }
        Ok(out)
    }
}

/// An item of a list: its first line begins with a dash.
fn list_item(item: &Written) -> Result<String, String> {
    let text = match item {
        Written::Map(fields) => indented(&fields.to_yaml()?, "  "),
        Written::Plain(value) => indented(&yaml(value)?, "  "),
        Written::List(_) => return Err("a list stands in a list".to_owned()),
    };
    Ok(format!("- {}", text.trim_start_matches(' ')))
}

/// `name: value`, as the value needs it.
fn entry(name: &str, value: &Value) -> Result<String, String> {
    yaml(&json!({ name: value }))
}

/// The key of a value on the lines below it.
fn head(name: &str) -> Result<String, String> {
    let entry = entry(name, &Value::Null)?;
    Ok(entry.replacen(": null\n", ":\n", 1))
}

fn yaml(value: &Value) -> Result<String, String> {
    let node = from_json(&value.to_string()).map_err(|error| error.to_string())?;
    write_kustomize(&node).map_err(|error| error.to_string())
}

fn indented(text: &str, by: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if line != "\n" {
            out.push_str(by);
        }
        out.push_str(line);
    }
    out
}

/// Values whose order does not matter.
macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Written {
            fn from(value: $kind) -> Self {
                Self::Plain(value.into())
            }
        }
    )*};
}

plain!(Value, &str, String, bool, u32, Vec<Value>);

impl From<Fields> for Written {
    fn from(fields: Fields) -> Self {
        Self::Map(fields)
    }
}

impl From<Vec<Self>> for Written {
    fn from(items: Vec<Self>) -> Self {
        Self::List(items)
    }
}
