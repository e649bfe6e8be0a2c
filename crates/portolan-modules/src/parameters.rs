//! The parameters of a step, read with a note for everything that is wrong.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use camino::Utf8PathBuf;
use portolan_go::time::parse_span;
use portolan_object::similar;
use serde_json::{Map, Value};

use crate::definition::{ModuleDefinition, ParameterType};

/// Something wrong with a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterFault {
    /// The parameter, as in `mode`; empty for the whole module.
    pub name: String,
    /// What is wrong, as a sentence without a full stop and without the name.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Rendered parameters of a step. Reading goes on after a fault, so all of them are told at once.
pub struct Parameters<'a> {
    module: &'a ModuleDefinition,
    values: &'a Map<String, Value>,
    faults: Vec<ParameterFault>,
}

impl<'a> Parameters<'a> {
    /// The parameters of a step of this module.
    pub fn new(module: &'a ModuleDefinition, values: &'a Map<String, Value>) -> Self {
        Self {
            module,
            values,
            faults: Vec::new(),
        }
    }

    /// Notes names that the module does not have and required parameters that are missing. Values are not looked at, so
    /// they may still be templates.
    pub fn check_names(&mut self) {
        let known = self.module.parameters;
        for name in self.values.keys() {
            if known.iter().any(|parameter| parameter.name == name) {
                continue;
            }
            let hint = match similar(name, known.iter().map(|parameter| parameter.name), |name| {
                name
            }) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
                    format!("it has {}", names.join(", "))
                }
            };
            let message = format!("is no parameter of the module `{}`", self.module.name);
            self.fault_with(name, message, Some(hint));
        }
        for parameter in known.iter().filter(|parameter| parameter.is_required) {
            if self.value(parameter.name).is_none() {
                self.fault(parameter.name, "is missing");
            }
        }
    }

    /// A value as it was written; `None` if it is absent or null.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        debug_assert!(
            self.definition(name).is_some(),
            "the module does not declare the parameter `{name}`"
        );
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// Whether a value is there.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        let value = self.value(name)?;
        if let Some(text) = value.as_str() {
            return Some(text);
        }
        let hint = (value.is_number() || value.is_boolean())
            .then(|| format!("quote it: {name}: \"{value}\""));
        self.fault_with(name, "must be a text", hint);
        None
    }

    /// A text of one line that is not empty.
    pub fn line(&mut self, name: &str) -> Option<&'a str> {
        let text = self.text(name)?;
        if text.is_empty() || text.contains(['\n', '\r', '\0']) {
            self.fault(name, "must be one line that is not empty");
            return None;
        }
        Some(text)
    }

    /// `true` or `false`; the default if it is absent.
    pub fn boolean(&mut self, name: &str, default: bool) -> bool {
        self.optional_boolean(name).unwrap_or(default)
    }

    /// `true` or `false`, or neither.
    pub fn optional_boolean(&mut self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(given) => Some(*given),
            other => {
                let hint = matches!(other.as_str(), Some("yes" | "no" | "true" | "false"))
                    .then(|| "write it without quotes: true or false".to_owned());
                self.fault_with(name, "must be true or false", hint);
                None
            }
        }
    }

    /// A whole number in a range.
    pub fn integer(&mut self, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = self.value(name)?;
        let number = value.as_i64().filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = (range.start(), range.end());
            self.fault(
                name,
                format!("must be a whole number from {least} to {most}"),
            );
        }
        number
    }

    /// A duration such as `90s`, `10m` or `1h30m`.
    pub fn duration(&mut self, name: &str) -> Option<Duration> {
        let value = self.value(name)?;
        let duration = value.as_str().and_then(parse_span);
        if duration.is_none() {
            let hint = value
                .is_number()
                .then(|| format!("say the unit: {name}: {value}s"));
            self.fault_with(
                name,
                "must be a duration such as `90s`, `10m` or `1h30m`",
                hint,
            );
        }
        duration
    }

    /// Permissions: a quoted octal number of three or four digits.
    pub fn mode(&mut self, name: &str) -> Option<u32> {
        let value = self.value(name)?;
        let mode = value.as_str().and_then(read_mode);
        if mode.is_none() {
            // YAML reads 0640 as a number, and some readers as the decimal one.
            let hint = if value.is_number() {
                format!("quote it: {name}: \"0640\"")
            } else {
                format!("four octal digits, as in {name}: \"0640\"")
            };
            self.fault_with(name, "must be a quoted octal number", Some(hint));
        }
        mode
    }

    /// An absolute path without `..`; slashes that mean nothing are left out.
    pub fn path(&mut self, name: &str) -> Option<Utf8PathBuf> {
        let text = self.text(name)?;
        let path = read_path(text);
        if path.is_none() {
            self.fault(name, "must be a path that begins with `/` and has no `..`");
        }
        path
    }

    /// One of the words that the definition names. Absent without a fault only if it is not there.
    pub fn word(&mut self, name: &str) -> Option<&'static str> {
        let words = match self.definition(name) {
            Some(ParameterType::Word(words)) => words,
            _ => &[],
        };
        let text = self.text(name)?;
        if let Some(word) = words.iter().find(|word| **word == text) {
            return Some(word);
        }
        let hint = similar(text, words.iter().copied(), |word| word)
            .map(|near| format!("did you mean `{near}`?"));
        self.fault_with(name, format!("must be one of {}", words.join(", ")), hint);
        None
    }

    /// A list of texts; a single text is a list of one.
    pub fn text_list(&mut self, name: &str) -> Option<Vec<String>> {
        let value = self.value(name)?;
        let texts = match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect(),
            _ => None,
        };
        if texts.is_none() {
            self.fault(name, "must be a list of texts");
        }
        texts
    }

    /// A map of texts; numbers and booleans in it are taken as they are written.
    pub fn text_map(&mut self, name: &str) -> Option<BTreeMap<String, String>> {
        let value = self.value(name)?;
        let as_text = |(key, value): (&String, &Value)| match value {
            Value::String(text) => Some((key.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => Some((key.clone(), value.to_string())),
            _ => None,
        };
        let texts = value
            .as_object()
            .and_then(|map| map.iter().map(as_text).collect());
        if texts.is_none() {
            self.fault(name, "must be a map of texts");
        }
        texts
    }

    /// A map of any values.
    pub fn map(&mut self, name: &str) -> Option<&'a Map<String, Value>> {
        let map = self.value(name)?.as_object();
        if map.is_none() {
            self.fault(name, "must be a map");
        }
        map
    }

    /// Which one of these parameters is there; several are a fault.
    pub fn at_most_one(&mut self, names: &[&'static str]) -> Option<&'static str> {
        let there: Vec<&'static str> = names
            .iter()
            .copied()
            .filter(|name| self.has(name))
            .collect();
        if let [first, second, ..] = there.as_slice() {
            self.fault(second, format!("cannot stand beside `{first}`"));
        }
        there.first().copied()
    }

    /// Which one of these parameters is there; none and several are faults.
    pub fn exactly_one(&mut self, names: &[&'static str]) -> Option<&'static str> {
        let found = self.at_most_one(names);
        if found.is_none() {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            self.fault("", format!("needs one of {}", names.join(", ")));
        }
        found
    }

    /// Notes what is wrong with a parameter.
    pub fn fault(&mut self, name: &str, message: impl Into<String>) {
        self.fault_with(name, message, None);
    }

    /// Notes what is wrong with a parameter, and what to do about it.
    pub fn fault_with(&mut self, name: &str, message: impl Into<String>, hint: Option<String>) {
        self.faults.push(ParameterFault {
            name: name.to_owned(),
            message: message.into(),
            hint,
        });
    }

    /// Whether nothing was noted so far.
    pub fn is_faultless(&self) -> bool {
        self.faults.is_empty()
    }

    /// Everything that was noted.
    pub fn into_faults(self) -> Vec<ParameterFault> {
        self.faults
    }

    fn definition(&self, name: &str) -> Option<ParameterType> {
        let mut known = self.module.parameters.iter();
        known
            .find(|parameter| parameter.name == name)
            .map(|parameter| parameter.kind)
    }
}

impl std::fmt::Display for ParameterFault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.is_empty() {
            out.write_str(&self.message)
        } else {
            write!(out, "`{}` {}", self.name, self.message)
        }
    }
}

/// Three or four octal digits.
pub(crate) fn read_mode(text: &str) -> Option<u32> {
    let is_octal = text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    if !is_octal || !matches!(text.len(), 3 | 4) {
        return None;
    }
    u32::from_str_radix(text, 8).ok()
}

/// An absolute path without `..`, in its shortest form.
pub(crate) fn read_path(text: &str) -> Option<Utf8PathBuf> {
    let path = Utf8PathBuf::from(text);
    let steps_up = path.components().any(|part| part.as_str() == "..");
    if !path.is_absolute() || steps_up || text.contains('\0') {
        return None;
    }
    Some(path.components().collect())
}

#[cfg(test)]
mod tests;
