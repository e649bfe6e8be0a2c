//! What a book says besides its steps: inputs, variables, computed values, and how a run goes over many nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_kinds::read_span;
use portolan_object::FieldPath;
use portolan_yaml::{Entry, Node};
use serde_json::{Map, Value};

use super::super::read_options::OptionReader;
use super::super::{
    Gate, HandlerPolicy, Input, InputKind, ModuleCall, RunOptions, Share, Step, StepOptions,
    Unreachable, Work,
};
use super::{BookReader, BookValues, json_map, places};
use crate::decision::Decision;
use crate::fault::{Place, advice};

impl BookReader<'_> {
    pub(super) fn values(&mut self, file: &Arc<str>, spec: &Value, written: &Node) -> BookValues {
        let place = |keys: &[&str]| {
            let path = FieldPath::from_keys(keys.iter().copied());
            Place::new(file, path.written_in(written).at)
        };
        let inputs = object(spec, "inputs").map(|(name, input)| {
            let read = self.input(name, input, &place(&["inputs", name]));
            (name.clone(), read)
        });
        let inputs: BTreeMap<String, Input> = inputs.collect();
        let vars: Map<String, Value> = object(spec, "vars")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut compute = Vec::new();
        for (name, text) in object(spec, "compute") {
            let at = place(&["compute", name]);
            if vars.contains_key(name) {
                self.faults.add(
                    at.clone(),
                    format!("`{name}` is in `vars` and in `compute`"),
                );
            }
            match Decision::parse(text.as_str().unwrap_or_default(), at.clone()) {
                Ok(decision) => compute.push((name.clone(), decision)),
                Err(failure) => self.faults.add(at, format!("`{name}`: {failure}")),
            }
        }
        BookValues {
            inputs,
            vars,
            compute,
        }
    }

    /// An input, with its default and choices checked.
    fn input(&mut self, name: &str, input: &Value, at: &Place) -> Input {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let pattern = text("pattern").and_then(|pattern| match regex::Regex::new(pattern) {
            Ok(compiled) => Some(compiled),
            Err(error) => {
                let message =
                    format!("the pattern of `{name}` is not a regular expression: {error}");
                self.faults.add(at.clone(), message);
                None
            }
        });
        let read = Input {
            kind: input_kind(text("type").unwrap_or_default()),
            default: input.get("default").cloned(),
            choices: list(input, "enum").cloned().collect(),
            pattern,
            is_secret: input.get("secret") == Some(&Value::Bool(true)),
        };
        let mut add = |message: String| self.faults.add(at.clone(), message);
        for value in read.default.iter().chain(&read.choices) {
            if let Err(message) = read.check_type(value) {
                add(format!("a value of the input `{name}` {message}"));
            }
        }
        if let Some(Err(message)) = read.default.as_ref().map(|value| read.check(value)) {
            add(format!("the default of the input `{name}` {message}"));
        }
        if read.is_secret && read.default.is_some() {
            add(format!(
                "the input `{name}` is secret and has a default that everybody can read"
            ));
        }
        read
    }

    pub(super) fn run_options(
        &mut self,
        file: &Arc<str>,
        spec: &Value,
        written: &Node,
    ) -> RunOptions {
        let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
        let unreachable = match spec.get("unreachable") {
            Some(Value::Object(wait)) => {
                let span = wait.get("wait").and_then(Value::as_str).unwrap_or_default();
                Unreachable::Wait(read_span(span).unwrap_or_default())
            }
            Some(Value::String(word)) if word == "skip" => Unreachable::Skip,
            _ => Unreachable::Fail,
        };
        RunOptions {
            target: spec.get("target").cloned().unwrap_or(Value::Null),
            is_lockstep: text("strategy") != "free",
            batches: list(spec, "batches").filter_map(Share::read).collect(),
            max_failures: spec
                .get("maxFailures")
                .and_then(Share::read)
                .unwrap_or(Share::Count(0)),
            stops_on_failure: text("onFailure") == "stop",
            unreachable,
            gate: written.get("continue").map(|gate| self.gate(file, gate)),
            handlers_on_failure: match text("handlersOnFailure") {
                "run" => HandlerPolicy::Run,
                "drop" => HandlerPolicy::Drop,
                _ => HandlerPolicy::Owe,
            },
            is_suspended: spec.get("suspend") == Some(&Value::Bool(true)),
        }
    }

    /// A gate: its probe is a step that is made of the gate's action, `runOn` and `retries`.
    fn gate(&mut self, file: &Arc<str>, node: &Node) -> Gate {
        let mut reader = OptionReader {
            file,
            faults: &mut self.faults,
            scopes: &[],
        };
        let mut options = StepOptions::default();
        for entry in node.as_map().into_iter().flatten() {
            if matches!(entry.key.as_str(), "runOn" | "retries") {
                reader.read(entry, &mut options);
            }
        }
        let that = node.get("that").and_then(|node| reader.decision(node));
        // The gate is asked again, not its probe.
        let retries = options.retries.clone();
        options.retries = StepOptions::default().retries;
        options.success.clone_from(&that);
        if let (Some(that), None) = (&that, node.get("probe")) {
            reader.faults.add_hint(
                that.place.clone(),
                "`that` is about the result of a `probe`, and there is none",
                Some("add a probe such as `{wait: {http: …}}`".to_owned()),
            );
        }
        let entries: Vec<&Entry> = node
            .get("probe")
            .and_then(Node::as_map)
            .into_iter()
            .flatten()
            .collect();
        let place = Place::new(file, node.get("probe").map_or(node.at, |node| node.at));
        let call = self.probe(file, &entries, &place);
        Gate {
            probe: call.map(|call| {
                Arc::new(Step {
                    id: "continue".to_owned(),
                    place,
                    work: Work::Module(call),
                    options,
                })
            }),
            that,
            retries,
            needs_approval: node.get("approve").and_then(Node::as_bool) == Some(true),
        }
    }

    /// The module that a gate asks.
    fn probe(&mut self, file: &Arc<str>, entries: &[&Entry], place: &Place) -> Option<ModuleCall> {
        let action = match entries {
            [action] => action,
            [] => return None,
            _ => {
                self.faults
                    .add(place.clone(), "`probe` must have exactly one action");
                return None;
            }
        };
        let name = action.key.as_str();
        let module = self.modules.iter().find(|module| module.name == name);
        let call = module.zip(json_map(&action.value));
        if call.is_none() {
            let known: Vec<&str> = self.modules.iter().map(|module| module.name).collect();
            let message = format!("`{name}` is not a module with parameters");
            self.faults
                .add_hint(place.clone(), message, advice(name, &known));
        }
        call.map(|(module, parameters)| ModuleCall {
            module,
            parameters,
            places: places(file, &action.value),
            asserted: Vec::new(),
        })
    }
}

fn object<'v>(
    value: &'v Value,
    key: &str,
) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
    value
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn input_kind(word: &str) -> InputKind {
    match word {
        "int" => InputKind::Int,
        "bool" => InputKind::Bool,
        "duration" => InputKind::Duration,
        "list" => InputKind::List,
        "map" => InputKind::Map,
        _ => InputKind::String,
    }
}
