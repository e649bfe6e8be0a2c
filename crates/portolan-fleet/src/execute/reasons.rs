//! Why a step is taken or not: what decided, with the values that it looked at, where the variables of the step came from, and
//! who notified it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::NodeRun;
use super::scope::Frame;
use crate::book::{Step, Work};

/// The most reasons of one step.
const MAX_REASONS: usize = 30;

/// The longest value that is shown, in bytes.
const MAX_VALUE_BYTES: usize = 200;

impl NodeRun<'_> {
    /// Why a step is taken or not. Values of a sensitive step, and of secrets, are not shown.
    pub(super) fn reasons(
        &self,
        step: &Step,
        frame: &Frame,
        taken: &Result<bool, String>,
    ) -> Vec<String> {
        let values = frame.values(&self.results);
        let mut reasons = self.notified_by(step);
        let mut seen = BTreeSet::new();
        if let Some(when) = &step.options.when {
            let word = match taken {
                Ok(true) => "holds",
                Ok(false) => "does not hold",
                Err(_) => "cannot be decided",
            };
            reasons.push(format!("`when: {}` {word}", when.text()));
            for path in when.expression().paths() {
                if seen.insert(path.clone()) {
                    reasons.extend(self.value_of(step, &path, &values));
                }
            }
        }
        if *taken == Ok(true) {
            for path in self.variables_in(step) {
                if seen.insert(path.clone()) {
                    reasons.extend(self.value_of(step, &path, &values));
                }
            }
        }
        reasons.truncate(MAX_REASONS);
        let mask = self.secrets.mask();
        let masked = reasons.iter().map(|reason| mask.text(reason).into_owned());
        masked.collect()
    }

    /// Who notified a handler.
    fn notified_by(&self, step: &Step) -> Vec<String> {
        let mut handlers = self.book.handlers.iter();
        let Some(position) = handlers.position(|handler| handler.id == step.id) else {
            return Vec::new();
        };
        match self.notifiers.get(&position) {
            Some(notifiers) => {
                let names: Vec<String> = notifiers.iter().map(|name| format!("`{name}`")).collect();
                vec![format!("notified by {}", names.join(", "))]
            }
            None => vec!["owed: it was notified before, and has not run since".to_owned()],
        }
    }

    /// The variables that the parameters of a step name.
    fn variables_in(&self, step: &Step) -> Vec<Vec<String>> {
        let Work::Module(call) = &step.work else {
            return Vec::new();
        };
        let mut names = Vec::new();
        for value in call.parameters.values().chain(step.options.env.values()) {
            self.names_in(value, &mut names);
        }
        if let Some(path) = call.parameters.get("template").and_then(Value::as_str) {
            names.extend(self.renderer.names_in_file(path).unwrap_or_default());
        }
        let paths = names.iter().filter(|name| name.starts_with("vars."));
        let paths = paths.map(|name| name.split('.').take(2).map(str::to_owned).collect());
        paths.collect()
    }

    fn names_in(&self, value: &Value, names: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                names.extend(self.renderer.names_in_text(text).unwrap_or_default());
            }
            Value::Array(items) => items.iter().for_each(|item| self.names_in(item, names)),
            Value::Object(map) => map.values().for_each(|item| self.names_in(item, names)),
            _ => {}
        }
    }

    /// A value that was looked at, and where it came from; `None` if there is none, or a whole map was meant.
    fn value_of(
        &self,
        step: &Step,
        path: &[String],
        values: &Map<String, Value>,
    ) -> Option<String> {
        let (root, keys) = path.split_first()?;
        let mut value = values.get(root)?;
        for key in keys {
            value = value.get(key)?;
        }
        if keys.is_empty() && value.is_object() {
            return None;
        }
        let shown = if step.options.is_sensitive {
            "<hidden>".to_owned()
        } else {
            shortened(value)
        };
        let origin = match (root.as_str(), keys.first()) {
            ("vars", Some(name)) => format!(", {}", self.origin_of(step, name)),
            _ => String::new(),
        };
        Some(format!("{} is {shown}{origin}", spelled(root, keys)))
    }

    /// Where a variable came from, in the order in which the last one counts.
    fn origin_of(&self, step: &Step, name: &str) -> &'static str {
        if step.options.vars.contains_key(name) {
            return "from the step";
        }
        if self.book.compute.iter().any(|(known, _)| known == name) {
            return "computed by the book";
        }
        if self.node_variables.contains(name) {
            return "a variable of the node on the server";
        }
        "from the book"
    }
}

/// A path as expressions write it.
fn spelled(root: &str, keys: &[String]) -> String {
    let is_word = |key: &str| {
        let mut letters = key.bytes();
        letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
    };
    keys.iter().fold(root.to_owned(), |path, key| {
        if is_word(key) && root != "steps" {
            format!("{path}.{key}")
        } else if path == root {
            format!("{path}['{key}']")
        } else {
            format!("{path}.{key}")
        }
    })
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= MAX_VALUE_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_VALUE_BYTES);
    format!("{}…", text.get(..end).unwrap_or_default())
}
