//! What a module is called with: its parameters rendered and read, and the variables of its programs.

use std::collections::BTreeMap;

use portolan_modules::{Action, ParameterType, Parameters};
use serde_json::Value;

use super::NodeRun;
use super::scope::Frame;
use crate::book::{ModuleCall, Step};
use crate::text::scope_of;

/// An action with the variables of its programs.
pub(super) type Prepared = (Box<dyn Action>, BTreeMap<String, String>);

impl NodeRun<'_> {
    /// The action of a step with its parameters rendered, and the variables of its programs.
    pub(super) fn prepare(
        &self,
        step: &Step,
        call: &ModuleCall,
        frame: &Frame,
    ) -> Result<Prepared, String> {
        let scope = scope_of(&frame.values(&self.results));
        let text = |error: crate::text::TextError| match (&error.file, error.line) {
            (Some(file), line) if line > 0 => format!("{file}:{line}: {}", error.message),
            _ => error.message,
        };
        let mut parameters = self.renderer.map(&call.parameters, &scope).map_err(text)?;
        let has_template = call
            .module
            .parameters
            .iter()
            .any(|known| known.name == "template");
        if has_template && let Some(Value::String(path)) = parameters.remove("template") {
            let content = self.renderer.file(&path, &scope).map_err(text)?;
            parameters.insert("content".to_owned(), Value::from(content));
        }
        for known in call.module.parameters {
            if let Some(value) = parameters.get_mut(known.name) {
                spell_out(known.kind, value);
            }
        }
        let environment = self.renderer.map(&step.options.env, &scope).map_err(text)?;
        let environment = environment.into_iter().map(|(name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (name, value)
        });
        let mut read = Parameters::new(call.module, &parameters);
        let action = (call.module.parse)(&mut read);
        let faults = read.into_faults();
        match action {
            Some(action) if faults.is_empty() => Ok((action, environment.collect())),
            _ => {
                let problems = faults
                    .iter()
                    .map(|fault| format!("`{}` {}", fault.name, fault.message));
                let problems: Vec<String> = problems.collect();
                Err(format!("`{}`: {}", call.module.name, problems.join("; ")))
            }
        }
    }
}

/// Numbers and booleans that a template gave become texts where the module wants texts.
fn spell_out(kind: ParameterType, value: &mut Value) {
    let is_scalar = value.is_number() || value.is_boolean();
    match (kind, &mut *value) {
        (ParameterType::Text | ParameterType::Path, _) if is_scalar => {
            *value = Value::from(value.to_string());
        }
        (ParameterType::TextList, Value::Array(items)) => {
            for item in items {
                spell_out(ParameterType::Text, item);
            }
        }
        (ParameterType::TextMap, Value::Object(map)) => {
            for item in map.values_mut() {
                spell_out(ParameterType::Text, item);
            }
        }
        _ => {}
    }
}
