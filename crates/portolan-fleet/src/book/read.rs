//! Reads a book: the kind reads its fields, and the steps are read here, because only here the modules are known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_kinds::{KindObject, read_span};
use portolan_modules::{BookFiles, ModuleDefinition};
use portolan_object::FieldPath;
use portolan_yaml::{Dialect, Entry, Node, Position, parse_one_strict};
use serde_json::{Map, Value};

use super::read_options::{OPTIONS, OptionReader};
use super::{
    Barrier, Block, Gate, HandlerPolicy, Included, Input, InputKind, ModuleCall, RunOn, RunOptions,
    Share, Step, StepOptions, Unreachable, Work,
};
use crate::decision::Decision;
use crate::fault::{BookFault, Faults, Place, advice};

/// How deep books may include each other, and blocks may nest.
pub(super) const MAX_DEPTH: usize = 16;

/// The most steps of a book, those that it includes too.
pub(super) const MAX_STEPS: usize = 10_000;

/// Actions that are not modules.
const ACTIONS: &[&str] = &["steps", "include", "flush", "barrier"];

/// Modules that the schema has and that do not exist yet.
const NOT_YET: &[&str] = &[
    "apply",
    "assert",
    "fetch",
    "module",
    "print",
    "publish",
    "read",
    "render",
    "repository",
    "set",
];

/// What one document says, before its names are checked.
pub(crate) struct ReadBook {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) values: BookValues,
    pub(crate) run: RunOptions,
    pub(crate) steps: Vec<Step>,
}

/// The inputs and values of a document.
pub(crate) struct BookValues {
    pub(crate) inputs: BTreeMap<String, Input>,
    pub(crate) vars: Map<String, Value>,
    /// Computed values as they were written, in the order of their names.
    pub(crate) compute: Vec<(String, Decision)>,
}

/// Reads a book and what it includes.
pub(crate) struct BookReader<'m> {
    pub(crate) files: Arc<dyn BookFiles>,
    pub(crate) modules: &'m [&'static ModuleDefinition],
    pub(crate) faults: Faults,
    /// Handlers of the book and of what it includes; `None` while one is read.
    pub(crate) handlers: Vec<Option<Step>>,
    /// Positions of handlers by name, for the book and each book that includes the current one.
    scopes: Vec<BTreeMap<String, usize>>,
    /// The files that were read, with their text, for the digest of the book.
    pub(crate) sources: BTreeMap<String, String>,
    /// Files that are being read now, to find circles.
    open: Vec<Utf8PathBuf>,
    steps: usize,
}

/// Where a step stands.
#[derive(Clone, Copy)]
struct Around<'a> {
    parent: &'a str,
    tags: &'a BTreeSet<String>,
    defaults: Option<&'a Node>,
    in_loop: bool,
    in_rescue: bool,
    in_handler: bool,
    depth: usize,
}

impl<'m> BookReader<'m> {
    pub(crate) fn new(files: Arc<dyn BookFiles>, modules: &'m [&'static ModuleDefinition]) -> Self {
        Self {
            files,
            modules,
            faults: Faults::default(),
            handlers: Vec::new(),
            scopes: Vec::new(),
            sources: BTreeMap::new(),
            open: Vec::new(),
            steps: 0,
        }
    }

    /// Reads a book from its text. Gives `None` after it noted what makes the whole unreadable.
    pub(crate) fn read(&mut self, file: &str, text: &str) -> Option<ReadBook> {
        self.open.push(Utf8PathBuf::from(file));
        let tags = BTreeSet::new();
        let read = self.document(file, text, "", &tags, 0);
        self.open.pop();
        read
    }

    fn document(
        &mut self,
        file: &str,
        text: &str,
        parent: &str,
        tags: &BTreeSet<String>,
        depth: usize,
    ) -> Option<ReadBook> {
        self.sources.insert(file.to_owned(), text.to_owned());
        let file: Arc<str> = file.into();
        let node = match parse_one_strict(text.to_owned(), Dialect::Kustomize) {
            Ok(node) => node,
            Err(errors) => {
                let first = errors.first();
                self.faults.add(Place::new(&file, first.at), &first.message);
                return None;
            }
        };
        let kind = node.get("kind").and_then(Node::as_str);
        if let Some(kind) = kind.filter(|kind| *kind != "TaskBook") {
            let place = Place::new(&file, node.get("kind").map_or(node.at, |kind| kind.at));
            self.faults
                .add(place, format!("is a {kind}, not a TaskBook"));
            return None;
        }
        let object = KindObject::read(&node);
        let spec = match object {
            Ok(object) => Some(object),
            Err(faults) => {
                for fault in faults {
                    self.faults.push(BookFault {
                        place: Place::new(&file, fault.at),
                        message: if fault.path.is_empty() {
                            fault.message
                        } else {
                            format!("`{}` {}", fault.path, fault.message)
                        },
                        hint: fault.hint,
                        is_consequence: false,
                    });
                }
                None
            }
        };
        let written = node.get("spec")?;
        let steps = self.steps_of(&file, written, parent, tags, depth);
        let object = spec?;
        let values = self.values(&file, &object.spec, written);
        let run = self.run_options(&file, &object.spec, written);
        Some(ReadBook {
            name: object.name().to_owned(),
            namespace: object.namespace().map(str::to_owned),
            values,
            run,
            steps,
        })
    }

    /// The steps and handlers of a document. Handlers come first, so that steps can name them.
    fn steps_of(
        &mut self,
        file: &Arc<str>,
        spec: &Node,
        parent: &str,
        tags: &BTreeSet<String>,
        depth: usize,
    ) -> Vec<Step> {
        let defaults = spec.get("defaults").filter(|node| node.as_map().is_some());
        self.check_defaults(file, defaults);
        let around = Around {
            parent,
            tags,
            defaults,
            in_loop: false,
            in_rescue: false,
            in_handler: false,
            depth,
        };
        let written = spec.get("handlers").and_then(Node::as_list);
        let nodes: Vec<&Node> = written.into_iter().flatten().collect();
        let first = self.handlers.len();
        let mut scope = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            if let Some(name) = node.get("name").and_then(Node::as_str) {
                scope.entry(name.to_owned()).or_insert(first + index);
            }
            self.handlers.push(None);
        }
        self.scopes.push(scope);
        let prefix = if parent.is_empty() {
            "handlers".to_owned()
        } else {
            format!("{parent}/handlers")
        };
        let handlers = Around {
            parent: &prefix,
            in_handler: true,
            ..around
        };
        let mut names = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            let step = self.step(file, node, handlers, &mut names);
            self.handlers[first + index] = step;
        }
        let steps = spec.get("steps").map(|node| self.list(file, node, around));
        self.scopes.pop();
        steps.unwrap_or_default()
    }

    fn check_defaults(&mut self, file: &Arc<str>, defaults: Option<&Node>) {
        for Entry { key, .. } in defaults.and_then(Node::as_map).into_iter().flatten() {
            if !OPTIONS.contains(&key.as_str()) {
                let hint = advice(key.as_str(), OPTIONS);
                let message = format!("`{}` is not an option of steps", key.as_str());
                self.faults
                    .add_hint(Place::new(file, key.at), message, hint);
            }
        }
    }

    fn list(&mut self, file: &Arc<str>, node: &Node, around: Around<'_>) -> Vec<Step> {
        let Some(items) = node.as_list() else {
            self.faults
                .add(Place::new(file, node.at), "must be a list of steps");
            return Vec::new();
        };
        if around.depth > MAX_DEPTH {
            let message = format!("steps nest deeper than {MAX_DEPTH} levels");
            self.faults.add(Place::new(file, node.at), message);
            return Vec::new();
        }
        let mut names = BTreeMap::new();
        let steps = items
            .iter()
            .filter_map(|item| self.step(file, item, around, &mut names));
        steps.collect()
    }

    fn step(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        around: Around<'_>,
        names: &mut BTreeMap<String, Position>,
    ) -> Option<Step> {
        let place = Place::new(file, node.at);
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.faults
                .add(place, format!("the book has more than {MAX_STEPS} steps"));
            return None;
        }
        let Some(map) = node.as_map() else {
            self.faults
                .add(place, "must be a step: a map with a name and an action");
            return None;
        };
        let name = self.step_name(file, node, names);
        let shown = name.as_deref().unwrap_or("?");
        let id = if around.parent.is_empty() {
            shown.to_owned()
        } else {
            format!("{}/{shown}", around.parent)
        };
        let mut actions: Vec<&Entry> = Vec::new();
        for entry in map {
            let key = entry.key.as_str();
            let is_module = self.modules.iter().any(|module| module.name == key);
            if is_module || NOT_YET.contains(&key) || matches!(key, "steps" | "include" | "flush") {
                actions.push(entry);
            } else if !OPTIONS.contains(&key) && !matches!(key, "name" | "rescue" | "always") {
                let mut known: Vec<&str> = OPTIONS.to_vec();
                known.extend(self.modules.iter().map(|module| module.name));
                known.extend(ACTIONS);
                let near = portolan_object::similar(key, known.iter(), |name| name);
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "docs/fleet-modules.md lists the modules".to_owned(),
                };
                let message = format!("`{key}` is neither a module nor an option");
                self.faults
                    .add_hint(Place::new(file, entry.key.at), message, Some(hint));
            }
        }
        let barrier = map.iter().find(|entry| entry.key.as_str() == "barrier");
        if actions.is_empty() {
            actions.extend(barrier);
        }
        let action = match actions.as_slice() {
            [action] => *action,
            [] => {
                // A misspelt module was told already.
                let is_told = map.iter().any(|entry| {
                    let key = entry.key.as_str();
                    !OPTIONS.contains(&key) && !matches!(key, "name" | "rescue" | "always")
                });
                if !is_told {
                    self.faults.add(
                        place,
                        format!("the step `{shown}` does nothing: it has no action"),
                    );
                }
                return None;
            }
            [_, second, ..] => {
                let all: Vec<String> = actions
                    .iter()
                    .map(|entry| format!("`{}`", entry.key.as_str()))
                    .collect();
                let message = format!("the step `{shown}` has several actions: {}", all.join(", "));
                let hint = "make one step of each".to_owned();
                self.faults
                    .add_hint(Place::new(file, second.key.at), message, Some(hint));
                return None;
            }
        };
        let mut options = self.options(file, map, around);
        options.tags.extend(around.tags.iter().cloned());
        self.check_barrier(file, node, &options, around);
        if action.key.as_str() != "steps" {
            for key in ["rescue", "always"] {
                if let Some(entry) = map.iter().find(|entry| entry.key.as_str() == key) {
                    let message = format!("`{key}` belongs to a block: a step with `steps`");
                    self.faults.add(Place::new(file, entry.key.at), message);
                }
            }
        }
        let work = self.work(file, node, action, &id, &options, around)?;
        name.is_some().then_some(Step {
            id,
            place,
            work,
            options,
        })
    }

    fn step_name(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        names: &mut BTreeMap<String, Position>,
    ) -> Option<String> {
        let Some(written) = node.get("name") else {
            self.faults
                .add(Place::new(file, node.at), "the step has no `name`");
            return None;
        };
        let place = Place::new(file, written.at);
        let name = written.as_str().unwrap_or_default();
        let is_plain = !name.is_empty()
            && name.len() <= 100
            && !name.contains(['/', '\n', '\'', '"', '{', '}', '[', ']', '#']);
        if !is_plain {
            let message = "the name of a step must be a text of at most 100 characters without `/`, quotes and brackets";
            self.faults.add(place, message);
            return None;
        }
        if let Some(first) = names.insert(name.to_owned(), written.at) {
            let message = format!(
                "there are two steps named `{name}` in this list; the first is in line {}",
                first.line
            );
            self.faults.add(place, message);
        }
        Some(name.to_owned())
    }

    fn options(
        &mut self,
        file: &Arc<str>,
        map: &portolan_yaml::Map,
        around: Around<'_>,
    ) -> StepOptions {
        let defaults = around.defaults.and_then(Node::as_map).into_iter().flatten();
        let mut reader = OptionReader {
            file,
            faults: &mut self.faults,
            scopes: &self.scopes,
        };
        let mut options = StepOptions::default();
        // Options of a step replace the defaults of the book.
        for entry in defaults.chain(map) {
            reader.read(entry, &mut options);
        }
        options
    }

    fn check_barrier(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        options: &StepOptions,
        around: Around<'_>,
    ) {
        if options.barrier == Barrier::None {
            return;
        }
        let reason = if around.in_loop || options.for_each.is_some() {
            "inside a `forEach`: nodes may have different items"
        } else if around.in_rescue {
            "in `rescue`: not every node comes here"
        } else if around.in_handler {
            "in a handler: not every node comes here"
        } else if options.run_on != RunOn::All {
            "on a step that does not run on all nodes"
        } else {
            return;
        };
        let at = node.get("barrier").map_or(node.at, |barrier| barrier.at);
        self.faults.add(
            Place::new(file, at),
            format!("a barrier cannot be {reason}"),
        );
    }

    fn work(
        &mut self,
        file: &Arc<str>,
        node: &Node,
        action: &Entry,
        id: &str,
        options: &StepOptions,
        around: Around<'_>,
    ) -> Option<Work> {
        let inner = Around {
            parent: id,
            tags: &options.tags,
            in_loop: around.in_loop || options.for_each.is_some(),
            depth: around.depth + 1,
            ..around
        };
        let place = Place::new(file, action.key.at);
        match action.key.as_str() {
            "steps" => {
                let steps = self.list(file, &action.value, inner);
                let rescue = Around {
                    in_rescue: true,
                    ..inner
                };
                let rescued = node.get("rescue").map(|node| self.list(file, node, rescue));
                // Not every node comes to `always` in the same way either.
                let always = node.get("always").map(|node| self.list(file, node, rescue));
                Some(Work::Block(Block {
                    steps,
                    rescue: rescued.unwrap_or_default(),
                    always: always.unwrap_or_default(),
                    included: None,
                }))
            }
            "include" => self.include(file, &action.value, inner),
            "flush" => {
                if action.value.as_str() != Some("handlers") {
                    self.faults.add(place, "`flush` must be `handlers`");
                }
                if around.in_handler {
                    self.faults.add(
                        Place::new(file, action.key.at),
                        "a handler cannot flush handlers",
                    );
                }
                Some(Work::Flush)
            }
            "barrier" => Some(Work::Barrier),
            name if NOT_YET.contains(&name) => {
                self.faults
                    .add(place, format!("`{name}` is not available yet"));
                None
            }
            name => {
                let module = self.modules.iter().find(|module| module.name == name)?;
                let Some(mut parameters) = json_map(&action.value) else {
                    let message = format!("`{name}` must be a map of its parameters");
                    self.faults.add(Place::new(file, action.value.at), message);
                    return None;
                };
                self.move_files(file, &mut parameters);
                Some(Work::Module(ModuleCall {
                    module,
                    parameters,
                    places: places(file, &action.value),
                }))
            }
        }
    }

    fn include(&mut self, file: &Arc<str>, node: &Node, around: Around<'_>) -> Option<Work> {
        let place = Place::new(file, node.at);
        for Entry { key, .. } in node.as_map().into_iter().flatten() {
            let known = ["path", "git", "ref", "inputs"];
            if !known.contains(&key.as_str()) {
                let message = format!("`{}` is not a field of `include`", key.as_str());
                let hint = advice(key.as_str(), &known);
                self.faults
                    .add_hint(Place::new(file, key.at), message, hint);
            }
        }
        if let Some(git) = node.get("git") {
            let place = Place::new(file, git.at);
            let reference = node.get("ref").and_then(Node::as_str).unwrap_or_default();
            if reference.is_empty() {
                self.faults.add(
                    place,
                    "an include from git needs a `ref`: a tag or a commit",
                );
            } else {
                let hint = "copy the book into this repository and include it by `path`".to_owned();
                self.faults
                    .add_hint(place, "includes from git are not available yet", Some(hint));
            }
            return None;
        }
        let Some(path) = node.get("path").and_then(Node::as_str) else {
            self.faults
                .add(place, "`include` needs the `path` of a book");
            return None;
        };
        let path_place = Place::new(file, node.get("path").map_or(node.at, |path| path.at));
        let resolved = beside(file, path);
        if self.open.contains(&resolved) {
            let mut circle: Vec<&str> = self.open.iter().map(|path| path.as_str()).collect();
            circle.push(resolved.as_str());
            let message = format!(
                "books include each other in a circle: {}",
                circle.join(" → ")
            );
            self.faults.add(path_place, message);
            return None;
        }
        let text = match self.read_file(&resolved) {
            Ok(text) => text,
            Err(message) => {
                self.faults.add(path_place, message);
                return None;
            }
        };
        self.open.push(resolved.clone());
        let included = self.document(
            resolved.as_str(),
            &text,
            around.parent,
            around.tags,
            around.depth,
        );
        self.open.pop();
        let included = included?;
        let given = node.get("inputs").map(json_map);
        let Some(given) = given.unwrap_or_else(|| Some(Map::new())) else {
            self.faults.add(place, "`inputs` must be a map");
            return None;
        };
        for name in given.keys() {
            if !included.values.inputs.contains_key(name) {
                let known: Vec<&str> = included.values.inputs.keys().map(String::as_str).collect();
                let message = format!("`{path}` has no input `{name}`");
                self.faults
                    .add_hint(path_place.clone(), message, advice(name, &known));
            }
        }
        for (name, input) in &included.values.inputs {
            if input.default.is_none() && !given.contains_key(name) {
                let message = format!("`{path}` needs the input `{name}`");
                self.faults.add(path_place.clone(), message);
            }
        }
        let compute = crate::compile::ordered(included.values.compute, &mut self.faults);
        Some(Work::Block(Block {
            steps: included.steps,
            included: Some(Arc::new(Included {
                inputs: included.values.inputs,
                given,
                vars: included.values.vars,
                compute,
            })),
            ..Block::default()
        }))
    }

    /// Files that an included book names are beside it, and are found from where the first book is.
    fn move_files(&self, file: &str, parameters: &mut Map<String, Value>) {
        let parent = |file: &Utf8Path| file.parent().map(Utf8Path::to_owned);
        let first = self.open.first().and_then(|first| parent(first));
        let here = parent(Utf8Path::new(file));
        let (Some(first), Some(here)) = (first, here) else {
            return;
        };
        let Some(below) = here
            .strip_prefix(&first)
            .ok()
            .filter(|below| !below.as_str().is_empty())
        else {
            return;
        };
        for key in crate::compile::FILE_PARAMETERS {
            if let Some(Value::String(path)) = parameters.get_mut(*key)
                && !path.starts_with('/')
            {
                *path = beside(below.join("book").as_str(), path).into_string();
            }
        }
    }

    fn read_file(&self, path: &Utf8Path) -> Result<String, String> {
        // Names of files in messages begin where the first book is; its own files are found from there.
        let first = self.open.first().and_then(|path| path.parent());
        let relative = first
            .and_then(|first| path.strip_prefix(first).ok())
            .unwrap_or(path);
        let bytes = self.files.read(relative)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("`{path}` is not UTF-8"))
    }

    fn values(&mut self, file: &Arc<str>, spec: &Value, written: &Node) -> BookValues {
        let place = |keys: &[&str]| {
            let path = FieldPath::from_keys(keys.iter().copied());
            Place::new(file, path.written_in(written).at)
        };
        let mut inputs = BTreeMap::new();
        for (name, input) in object(spec, "inputs") {
            let at = place(&["inputs", name]);
            let pattern = input.get("pattern").and_then(Value::as_str);
            let compiled = pattern.and_then(|pattern| match regex::Regex::new(pattern) {
                Ok(compiled) => Some(compiled),
                Err(error) => {
                    let message =
                        format!("the pattern of `{name}` is not a regular expression: {error}");
                    self.faults.add(at.clone(), message);
                    None
                }
            });
            let read = Input {
                kind: input_kind(
                    input
                        .get("type")
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                ),
                default: input.get("default").cloned(),
                choices: list(input, "enum").cloned().collect(),
                pattern: compiled,
                is_secret: input.get("secret") == Some(&Value::Bool(true)),
            };
            for value in read.default.iter().chain(&read.choices) {
                if let Err(message) = read.check_type(value) {
                    self.faults.add(
                        at.clone(),
                        format!("a value of the input `{name}` {message}"),
                    );
                }
            }
            if let Some(Err(message)) = read.default.as_ref().map(|value| read.check(value)) {
                self.faults.add(
                    at.clone(),
                    format!("the default of the input `{name}` {message}"),
                );
            }
            if read.is_secret && read.default.is_some() {
                let message = format!(
                    "the input `{name}` is secret and has a default that everybody can read"
                );
                self.faults.add(at, message);
            }
            inputs.insert(name.clone(), read);
        }
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

    fn run_options(&mut self, file: &Arc<str>, spec: &Value, written: &Node) -> RunOptions {
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
        let entries: Vec<&Entry> = node
            .get("probe")
            .and_then(Node::as_map)
            .into_iter()
            .flatten()
            .collect();
        let place = Place::new(file, node.get("probe").map_or(node.at, |node| node.at));
        let call = match entries.as_slice() {
            [action] => {
                let name = action.key.as_str();
                let module = self.modules.iter().find(|module| module.name == name);
                let parameters = json_map(&action.value);
                if module.is_none() || parameters.is_none() {
                    let known: Vec<&str> = self.modules.iter().map(|module| module.name).collect();
                    let message = format!("`{name}` is not a module with parameters");
                    self.faults
                        .add_hint(place.clone(), message, advice(name, &known));
                }
                module
                    .zip(parameters)
                    .map(|(module, parameters)| ModuleCall {
                        module,
                        parameters,
                        places: places(file, &action.value),
                    })
            }
            [] => None,
            _ => {
                self.faults
                    .add(place.clone(), "`probe` must have exactly one action");
                None
            }
        };
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
            needs_approval: node.get("approve").and_then(Node::as_bool) == Some(true),
        }
    }
}

/// Where the keys of a map were written.
fn places(file: &Arc<str>, node: &Node) -> BTreeMap<String, Place> {
    let entries = node.as_map().into_iter().flatten();
    entries
        .map(|entry| {
            (
                entry.key.as_str().to_owned(),
                Place::new(file, entry.key.at),
            )
        })
        .collect()
}

/// A path relative to the file that names it.
fn beside(file: &str, path: &str) -> Utf8PathBuf {
    let mut parts: Vec<&str> = Vec::new();
    let parent = Utf8Path::new(file).parent().unwrap_or(Utf8Path::new(""));
    let joined = parent.join(path);
    let is_absolute = joined.is_absolute();
    for part in joined.as_str().split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let clean = parts.join("/");
    Utf8PathBuf::from(if is_absolute {
        format!("/{clean}")
    } else {
        clean
    })
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

/// A node as JSON; `None` if it is not one that JSON has.
pub(crate) fn json(node: &Node) -> Option<Value> {
    serde_json::from_str(&portolan_yaml::to_json(node).ok()?).ok()
}

fn json_map(node: &Node) -> Option<Map<String, Value>> {
    match json(node)? {
        Value::Object(map) => Some(map),
        Value::Null => Some(Map::new()),
        _ => None,
    }
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
