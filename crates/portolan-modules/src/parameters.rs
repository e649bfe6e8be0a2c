//! The parameters of a step, read with a note for everything that is wrong.

use camino::Utf8PathBuf;
use serde_json::{Map, Value};

use crate::definition::ModuleDefinition;

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

    /// A value as it was written; `None` if it is absent or null.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        debug_assert!(
            self.module
                .parameters
                .iter()
                .any(|known| known.name == name)
        );
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        let value = self.value(name)?;
        if let Some(text) = value.as_str() {
            return Some(text);
        }
        let hint = value
            .is_number()
            .then(|| format!("quote it: {name}: \"{value}\""));
        self.fault_with(name, "must be a text", hint);
        None
    }

    /// `true` or `false`; the default if it is absent.
    pub fn boolean(&mut self, name: &str, default: bool) -> bool {
        match self.value(name) {
            None => default,
            Some(Value::Bool(given)) => *given,
            Some(_) => {
                self.fault(name, "must be true or false");
                default
            }
        }
    }

    /// An absolute path without `..`.
    pub fn path(&mut self, name: &str) -> Option<Utf8PathBuf> {
        let text = self.text(name)?;
        let path = Utf8PathBuf::from(text);
        let steps_up = path.components().any(|part| part.as_str() == "..");
        if !path.is_absolute() || steps_up || text.contains('\0') {
            self.fault(name, "must be a path that begins with `/` and has no `..`");
            return None;
        }
        Some(path)
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

    /// Everything that was noted.
    pub fn into_faults(self) -> Vec<ParameterFault> {
        self.faults
    }
}
