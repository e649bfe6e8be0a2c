//! The inputs of a book: what a run gives is checked, and defaults are filled in.

use std::collections::BTreeMap;

use portolan_kinds::read_span;
use portolan_yaml::{Dialect, parse_one};
use serde_json::{Map, Value};

use crate::book::{Input, InputKind};
use crate::fault::advice;

/// Something wrong with an input that a run gives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the input `{name}` {message}")]
pub struct InputFault {
    /// The input.
    pub name: String,
    /// What is wrong. Never the value itself.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Input {
    /// Checks type, choices and pattern of a value.
    ///
    /// # Errors
    /// A sentence that says what is wrong, without the value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.check_type(value)?;
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let choices: Vec<String> = self.choices.iter().map(plain).collect();
            return Err(format!("must be one of {}", choices.join(", ")));
        }
        match (&self.pattern, value.as_str()) {
            (Some(pattern), Some(text)) if !pattern.is_match(text) => {
                Err(format!("must match `{}`", pattern.as_str()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_type(&self, value: &Value) -> Result<(), String> {
        let (fits, name) = match self.kind {
            InputKind::String => (value.is_string(), "a text"),
            InputKind::Int => (value.is_i64(), "a whole number"),
            InputKind::Bool => (value.is_boolean(), "true or false"),
            InputKind::Duration => (
                value.as_str().is_some_and(|text| read_span(text).is_ok()),
                "a span of time such as `10m`",
            ),
            InputKind::List => (value.is_array(), "a list"),
            InputKind::Map => (value.is_object(), "a map"),
        };
        if fits {
            Ok(())
        } else {
            Err(format!("must be {name}"))
        }
    }

    /// Reads a value from the command line: a text as it is, anything else as YAML.
    pub fn read(&self, text: &str) -> Value {
        if matches!(self.kind, InputKind::String | InputKind::Duration) {
            return Value::from(text);
        }
        let node = parse_one(text.to_owned(), Dialect::Kustomize).ok();
        let json = node.and_then(|node| portolan_yaml::to_json(&node).ok());
        json.and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_else(|| Value::from(text))
    }
}

/// Checks what a run gives, and fills in defaults.
///
/// # Errors
/// Everything that is wrong.
pub fn bind_inputs(
    declared: &BTreeMap<String, Input>,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<InputFault>> {
    let mut faults = Vec::new();
    let mut bound = Map::new();
    for name in given.keys().filter(|name| !declared.contains_key(*name)) {
        let known: Vec<&str> = declared.keys().map(String::as_str).collect();
        faults.push(InputFault {
            name: name.clone(),
            message: "is not one of the book".to_owned(),
            hint: advice(name, &known),
        });
    }
    for (name, input) in declared {
        let fault = |message: String, hint: Option<String>| InputFault {
            name: name.clone(),
            message,
            hint,
        };
        match given.get(name).or(input.default.as_ref()) {
            None => {
                let hint = if input.is_secret {
                    format!("give it with --input-file {name}=FILE")
                } else {
                    format!("give it with --input {name}=VALUE")
                };
                faults.push(fault("is missing".to_owned(), Some(hint)));
            }
            Some(value) => {
                if let Err(message) = input.check(value) {
                    faults.push(fault(message, None));
                }
                bound.insert(name.clone(), value.clone());
            }
        }
    }
    if faults.is_empty() {
        Ok(bound)
    } else {
        Err(faults)
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
