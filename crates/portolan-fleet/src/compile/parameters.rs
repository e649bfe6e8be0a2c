//! Checks the parameters of a module call: names and literal values by the module's definition, and by its own reader if
//! nothing in them is a template.

use portolan_modules::{ModuleDefinition, ParameterType, Parameters};
use serde_json::{Map, Value};

use crate::fault::advice;
use crate::text::has_template;

/// Something wrong with a parameter: its name, what is wrong, and what to do about it.
pub(super) type ParameterProblem = (String, String, Option<String>);

/// Everything wrong with the parameters of a call that can be seen before they are rendered.
pub(super) fn problems(
    module: &'static ModuleDefinition,
    parameters: &Map<String, Value>,
) -> Vec<ParameterProblem> {
    let mut found = Vec::new();
    for (name, value) in parameters {
        let known = module.parameters.iter().find(|known| known.name == name);
        match known {
            None => {
                let names: Vec<&str> = module.parameters.iter().map(|known| known.name).collect();
                let message = format!("`{name}` is no parameter of `{}`", module.name);
                found.push((name.clone(), message, advice(name, &names)));
            }
            Some(known) if !value.is_null() && !has_template(value) => {
                if let Some(expected) = misfit(known.kind, value) {
                    let message = format!("`{}.{name}` must be {expected}", module.name);
                    found.push((name.clone(), message, hint(known.kind, name, value)));
                }
            }
            Some(_) => {}
        }
    }
    for known in module.parameters.iter().filter(|known| known.is_required) {
        if parameters.get(known.name).is_none_or(Value::is_null) {
            let message = format!("`{}` needs `{}`", module.name, known.name);
            found.push((String::new(), message, None));
        }
    }
    let is_literal = !parameters.values().any(has_template);
    if found.is_empty() && is_literal {
        found.extend(refused(module, parameters));
    }
    found
}

/// What the module's own reader refuses.
fn refused(
    module: &'static ModuleDefinition,
    parameters: &Map<String, Value>,
) -> Vec<ParameterProblem> {
    let mut read = Parameters::new(module, parameters);
    let action = (module.parse)(&mut read);
    let faults = read.into_faults();
    if action.is_none() && faults.is_empty() {
        let message = format!("`{}` does not take these parameters", module.name);
        return vec![(String::new(), message, None)];
    }
    let problems = faults.into_iter().map(|fault| {
        let message = if fault.name.is_empty() {
            format!("`{}` {}", module.name, fault.message)
        } else {
            format!("`{}.{}` {}", module.name, fault.name, fault.message)
        };
        (fault.name, message, fault.hint)
    });
    problems.collect()
}

/// What a literal value must be, if it is something else.
fn misfit(kind: ParameterType, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match kind {
        ParameterType::Text | ParameterType::Path | ParameterType::Duration => {
            (value.is_string(), "a text")
        }
        ParameterType::Mode => (value.is_string(), "a quoted octal number, such as \"0640\""),
        ParameterType::Integer => (value.is_i64(), "a whole number"),
        ParameterType::Boolean => (value.is_boolean(), "true or false"),
        ParameterType::Word(words) => {
            let fits = value.as_str().is_some_and(|text| words.contains(&text));
            (fits, "one of its words")
        }
        ParameterType::TextMap | ParameterType::Map => (value.is_object(), "a map"),
        // Other kinds are the module's own to read.
        _ => (true, ""),
    };
    (!fits).then_some(expected)
}

fn hint(kind: ParameterType, name: &str, value: &Value) -> Option<String> {
    match kind {
        ParameterType::Word(words) => advice(value.as_str().unwrap_or_default(), words)
            .or_else(|| Some(format!("there are {}", words.join(", ")))),
        ParameterType::Text | ParameterType::Path if !value.is_object() && !value.is_array() => {
            Some(format!("quote it: {name}: \"{value}\""))
        }
        ParameterType::Mode => Some(format!("quote it: {name}: \"0640\"")),
        _ => None,
    }
}
