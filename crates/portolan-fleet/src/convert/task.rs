//! A task of a play, as a step of a book.

use portolan_yaml::{Node, to_json};
use serde_json::Value;

use super::arguments::Arguments;
use super::document::{Fields, Written};
use super::modules::call;
use super::{ConversionNote, Converter};

/// Keys of a task that are no module.
const TASK_KEYS: &[&str] = &[
    "name",
    "when",
    "loop",
    "with_items",
    "register",
    "notify",
    "tags",
    "become",
    "become_user",
    "become_method",
    "ignore_errors",
    "changed_when",
    "failed_when",
    "retries",
    "delay",
    "until",
    "environment",
    "run_once",
    "no_log",
    "vars",
    "args",
    "block",
    "rescue",
    "always",
    "timeout",
    "throttle",
    "delegate_to",
    "loop_control",
    "check_mode",
    "diff",
    "any_errors_fatal",
    "listen",
    "local_action",
    "action",
    "async",
    "poll",
    "module_defaults",
    "collections",
    "connection",
    "remote_user",
    "debugger",
    "ignore_unreachable",
    "first_available_file",
    "vars_files",
];

/// How deep blocks may stand in each other.
const MAX_DEPTH: usize = 16;

impl Converter {
    /// The steps of a list of tasks.
    pub(super) fn tasks(&mut self, list: &Node, depth: usize) -> Vec<Written> {
        let mut steps = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        for task in list.as_list().into_iter().flatten() {
            let mut step = self.task(task, depth);
            let wanted = step_name(task);
            let mut name = wanted.clone();
            let mut count = 1;
            while !names.insert(name.clone()) {
                count += 1;
                name = format!("{wanted} {count}");
            }
            let mut whole = Fields::default();
            whole.set("name", name);
            whole.extend(std::mem::take(&mut step));
            steps.push(whole.into());
        }
        steps
    }

    /// A step without its name. What has no counterpart becomes a step that fails, so that nobody misses it.
    fn task(&mut self, task: &Node, depth: usize) -> Fields {
        let line = task.at.line;
        let inputs = self.names.inputs.clone();
        match self.try_task(task, depth) {
            Ok(step) => step,
            Err(reason) => {
                self.names.inputs = inputs;
                let what = task.get("name").and_then(Node::as_str).unwrap_or("a task");
                self.notes.push(ConversionNote {
                    line,
                    message: format!("`{what}` is not converted: {reason}"),
                });
                let mut assertion = Fields::default();
                assertion.set("that", vec![Value::from("false")]);
                let message = format!("not converted from line {line}: {reason}");
                // What looks like a template in a message would be one.
                assertion.set("message", message.replace("{{", "{ {").replace("{%", "{ %"));
                let mut step = Fields::default();
                step.set("assert", assertion);
                step
            }
        }
    }

    fn try_task(&mut self, task: &Node, depth: usize) -> Result<Fields, String> {
        if task.as_map().is_none() {
            return Err("it is not a map".to_owned());
        }
        if depth > MAX_DEPTH {
            return Err("blocks stand too deep in each other".to_owned());
        }
        for key in [
            "delegate_to",
            "local_action",
            "action",
            "async",
            "vars_files",
            "listen",
        ] {
            if task.get(key).is_some() {
                return Err(format!("`{key}` has no counterpart"));
            }
        }
        let mut step = self.options(task)?;
        if let Some(block) = task.get("block") {
            step.set("steps", self.tasks(block, depth + 1));
            for part in ["rescue", "always"] {
                if let Some(list) = task.get(part) {
                    step.set(part, self.tasks(list, depth + 1));
                }
            }
            return Ok(step);
        }
        let module = module_of(task).ok_or_else(|| "it has no module".to_owned())?;
        if module.ends_with("meta") {
            let what = task.get(module).and_then(Node::as_str).unwrap_or_default();
            if what != "flush_handlers" {
                return Err(format!("`meta: {what}` has no counterpart"));
            }
            step.set("flush", "handlers");
            return Ok(step);
        }
        let given = task.get(module).map_or(Ok(Value::Null), json)?;
        let is_assert = module.ends_with("assert");
        let mut arguments = Arguments::new(self.renamed(given, is_assert)?);
        if let Some(more) = task.get("args") {
            let more = self.renamed(json(more)?, false)?;
            arguments.extend(more);
        }
        let (name, parameters) = call(module, &mut arguments, &mut self.names)?;
        for unread in arguments.unread() {
            self.notes.push(ConversionNote {
                line: task.at.line,
                message: format!("`{unread}` of `{module}` has no counterpart and is left out"),
            });
        }
        if parameters.has("template") {
            self.notes.push(ConversionNote {
                line: task.at.line,
                message:
                    "names in the template file need `vars.`, `inputs.` or `facts.` before them"
                        .to_owned(),
            });
        }
        step.set(name, parameters);
        Ok(step)
    }

    /// The options of a step.
    fn options(&mut self, task: &Node) -> Result<Fields, String> {
        let mut step = Fields::default();
        if let Some(condition) = task.get("when") {
            step.set("when", self.condition(condition)?);
        }
        if let Some(items) = task.get("loop").or_else(|| task.get("with_items")) {
            step.set("forEach", self.items(items)?);
        }
        if task
            .get("loop_control")
            .and_then(|control| control.get("loop_var"))
            .is_some()
        {
            return Err("`loop_var` has no counterpart: the item is called `item`".to_owned());
        }
        if let Some(user) = text(task, "become_user").filter(|user| user != "root") {
            step.set("as", self.names.text(&user)?);
        }
        if let Some(environment) = task.get("environment") {
            let environment = json(environment)?;
            step.set("env", self.renamed(environment, false)?);
        }
        if let Some(vars) = task.get("vars") {
            let vars = json(vars)?;
            for name in vars.as_object().into_iter().flat_map(serde_json::Map::keys) {
                self.names.vars.insert(name.clone());
            }
            step.set("vars", self.renamed(vars, false)?);
        }
        self.attempts(task, &mut step)?;
        if let Some(condition) = task.get("changed_when") {
            step.set("changed", self.result_condition(condition, task)?);
        }
        if let Some(condition) = task.get("failed_when") {
            let failed = self.result_condition(condition, task)?;
            step.set("success", format!("!({failed})"));
        }
        if is_true(task, "ignore_errors") {
            step.set("onError", "ignore");
        }
        if is_true(task, "no_log") {
            step.set("sensitive", true);
        }
        if is_true(task, "run_once") {
            step.set("runOn", "first");
        }
        for (from, to) in [
            ("notify", "notify"),
            ("register", "register"),
            ("tags", "tags"),
        ] {
            if let Some(names) = task.get(from) {
                step.set(to, list(names)?);
            }
        }
        for name in step_names(task, "register") {
            self.names.registered.insert(name);
        }
        Ok(step)
    }

    fn attempts(&mut self, task: &Node, step: &mut Fields) -> Result<(), String> {
        if let Some(seconds) = text(task, "timeout") {
            step.set("timeout", format!("{seconds}s"));
        }
        let until = task.get("until");
        let retries = text(task, "retries");
        if until.is_none() && retries.is_none() {
            return Ok(());
        }
        let mut fields = Fields::default();
        let limit: u32 = retries
            .as_deref()
            .unwrap_or("3")
            .parse()
            .map_err(|_| "`retries` is not a number")?;
        fields.set("limit", limit);
        let delay = text(task, "delay").unwrap_or_else(|| "5".to_owned());
        fields.set("interval", format!("{delay}s"));
        if let Some(until) = until {
            fields.set("until", self.result_condition(until, task)?);
        }
        step.set("retries", fields);
        Ok(())
    }

    /// A condition over the result of the task itself: there it is called `result`.
    fn result_condition(&mut self, condition: &Node, task: &Node) -> Result<String, String> {
        let own = step_names(task, "register");
        for name in &own {
            self.names.registered.insert(name.clone());
        }
        let mut cel = self.condition(condition)?;
        for name in own {
            cel = cel.replace(&format!("steps['{name}']"), "result");
        }
        Ok(cel)
    }

    /// A condition, or a list of which all must hold.
    fn condition(&mut self, node: &Node) -> Result<String, String> {
        let one = |converter: &mut Self, node: &Node| -> Result<String, String> {
            match json(node)? {
                Value::String(text) => converter.names.condition(&text),
                Value::Bool(given) => Ok(given.to_string()),
                _ => Err("a condition is not a text".to_owned()),
            }
        };
        let Some(list) = node.as_list() else {
            return one(self, node);
        };
        let mut parts = Vec::new();
        for part in list {
            let part = one(self, part)?;
            parts.push(if list.len() > 1 {
                format!("({part})")
            } else {
                part
            });
        }
        Ok(parts.join(" && "))
    }

    /// The items of a loop: a list, or the name of one.
    fn items(&mut self, node: &Node) -> Result<Written, String> {
        match json(node)? {
            Value::String(text) => Ok(self.names.condition(&text)?.into()),
            other => Ok(self.renamed(other, false)?.into()),
        }
    }

    /// A value with the names in its templates replaced. Conditions of `that` are no templates.
    fn renamed(&mut self, value: Value, keeps_that: bool) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => self.names.text(&text)?.into(),
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.renamed(item, keeps_that));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let mut renamed = serde_json::Map::new();
                for (name, value) in map {
                    let is_kept = keeps_that && name == "that";
                    let value = if is_kept {
                        value
                    } else {
                        self.renamed(value, keeps_that)?
                    };
                    renamed.insert(name, value);
                }
                Value::Object(renamed)
            }
            other => other,
        })
    }

    pub(super) fn renamed_values(&mut self, value: Value) -> Result<Value, String> {
        self.renamed(value, false)
    }
}

/// The name of a step: that of the task, or that of its module.
fn step_name(task: &Node) -> String {
    let name = task.get("name").and_then(Node::as_str);
    let name = name.map(|name| name.replace('/', " ").replace("{{", "").replace("}}", ""));
    let name = name
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty());
    name.unwrap_or_else(|| {
        let module = module_of(task).unwrap_or("step");
        module.rsplit('.').next().unwrap_or(module).to_owned()
    })
}

/// The key of a task that names its module.
fn module_of(task: &Node) -> Option<&str> {
    let entries = task.as_map()?.iter();
    let mut names = entries.map(|entry| entry.key.as_str());
    names.find(|name| !TASK_KEYS.contains(name) && !name.starts_with("with_"))
}

pub(super) fn json(node: &Node) -> Result<Value, String> {
    let text = to_json(node).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

pub(super) fn text(node: &Node, key: &str) -> Option<String> {
    match json(node.get(key)?).ok()? {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

fn is_true(task: &Node, key: &str) -> bool {
    matches!(text(task, key).as_deref(), Some("true" | "yes" | "True"))
}

/// A list of names, or one name, or names with commas.
fn list(node: &Node) -> Result<Vec<Value>, String> {
    Ok(match json(node)? {
        Value::Array(items) => items,
        Value::String(text) => text.split(',').map(|name| name.trim().into()).collect(),
        _ => return Err("names are not texts".to_owned()),
    })
}

fn step_names(task: &Node, key: &str) -> Vec<String> {
    let names = task
        .get(key)
        .and_then(|node| list(node).ok())
        .unwrap_or_default();
    names
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
