//! Checks everything that a book names: values, facts, results of other steps, parameters of modules, files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8Path;
use portolan_cel::{Record, Type};
use serde_json::{Map, Value};

use super::{BookSource, parameters};
use crate::book::{AskedFleet, Barrier, Book, Input, Items, ModuleCall, RunOn, Step, Work};
use crate::decision::Decision;
use crate::fault::{BookFault, Place, advice};
use crate::known;
use crate::text::{TextRenderer, inner_template, steps_in_text, templates_in_text};

/// What the check of a book gives beside faults.
pub(super) struct Checked {
    pub(super) faults: Vec<BookFault>,
    /// Steps in which a secret is used.
    pub(super) sensitive: BTreeSet<String>,
    /// The parts of the facts that are read.
    pub(super) facts: BTreeSet<String>,
    /// Steps whose results on all nodes are asked for, by the name that is used.
    pub(super) gathered: BTreeMap<String, String>,
    /// The paths of steps whose results are read.
    pub(super) read_results: BTreeSet<String>,
    pub(super) asks_fleet: AskedFleet,
}

/// A step whose result can be asked for.
struct Producer {
    /// Its path, or another name for its result.
    id: String,
    /// Its path.
    step: String,
    /// How many barriers stand before it.
    barriers: usize,
    is_taken: bool,
}

struct NameCheck<'a> {
    source: &'a BookSource<'a>,
    renderer: TextRenderer,
    /// Whether all steps could be read; a missing result is a consequence otherwise.
    is_whole: bool,
    /// Steps that come before the current one.
    producers: Vec<Producer>,
    /// Names of all steps of the book, wherever they stand.
    all_names: BTreeSet<String>,
    barriers: usize,
    /// Templates that a step includes, and that were looked at.
    templates: BTreeSet<(String, String)>,
    checked: Checked,
}

/// What can be named at a place of the book.
#[derive(Clone)]
struct Names {
    types: Record,
    /// Names whose values are secret, as in `inputs.token`.
    secrets: BTreeSet<String>,
}

pub(super) fn check(book: &Book, source: &BookSource<'_>, is_whole: bool) -> Checked {
    let mut all_names = BTreeSet::new();
    for step in book.steps.iter().chain(&book.handlers) {
        step.visit(&mut |step| {
            all_names.extend(step.options.register.iter().cloned());
            all_names.extend([step.id.clone(), step.name().to_owned()]);
        });
    }
    let mut check = NameCheck {
        source,
        renderer: TextRenderer::new(Arc::clone(&source.files)),
        is_whole,
        producers: Vec::new(),
        all_names,
        barriers: 0,
        templates: BTreeSet::new(),
        checked: Checked {
            faults: Vec::new(),
            sensitive: BTreeSet::new(),
            facts: BTreeSet::new(),
            gathered: BTreeMap::new(),
            read_results: BTreeSet::new(),
            asks_fleet: AskedFleet::default(),
        },
    };
    let secret_vars = source.secret_vars.iter();
    let names = check.document_names(
        &known::everywhere(),
        &book.inputs,
        &book.vars,
        &book.compute,
        secret_vars.map(|name| format!("vars.{name}")).collect(),
    );
    check.steps(&book.steps, &names);
    check.barriers += 1;
    check.steps(&book.handlers, &names);
    if let Some(gate) = &book.run.gate {
        let mut outer = names.clone();
        if let Some(probe) = &gate.probe {
            check.step(probe, &outer);
        }
        outer
            .types
            .insert("result".to_owned(), Type::map(Type::Any));
        if let Some(that) = &gate.that {
            check.truth(that, &outer);
        }
    }
    check.checked
}

/// Marks steps in which a secret is used.
pub(super) fn mark_sensitive(steps: &mut [Step], sensitive: &BTreeSet<String>) {
    for step in steps {
        step.options.is_sensitive |= sensitive.contains(&step.id);
        if let Work::Block(block) = &mut step.work {
            mark_sensitive(&mut block.steps, sensitive);
            mark_sensitive(&mut block.rescue, sensitive);
            mark_sensitive(&mut block.always, sensitive);
        }
    }
}

impl NameCheck<'_> {
    /// The names that a document declares, with its computed values checked. `given` are names whose values are secret, whatever
    /// the document says of them.
    fn document_names(
        &mut self,
        outer: &Record,
        inputs: &BTreeMap<String, Input>,
        vars: &Map<String, Value>,
        compute: &[(String, Decision)],
        given: BTreeSet<String>,
    ) -> Names {
        let secret = inputs.iter().filter(|(_, input)| input.is_secret);
        let secret = secret.map(|(name, _)| format!("inputs.{name}"));
        let mut names = Names {
            types: outer.clone(),
            secrets: secret.collect(),
        };
        names
            .types
            .insert("inputs".to_owned(), known::input_types(inputs));
        let mut fields: Record = vars
            .iter()
            .map(|(name, value)| (name.clone(), known::type_of(value)))
            .collect();
        names
            .types
            .insert("vars".to_owned(), Type::Record(fields.clone()));
        names.secrets.extend(given);
        for (name, value) in vars {
            if self.texts(value, &names, &self.book_place()) {
                names.secrets.insert(format!("vars.{name}"));
            }
        }
        for (name, decision) in compute {
            let kind = self.decision(decision, &names);
            if self.uses_secret(decision, &names) {
                names.secrets.insert(format!("vars.{name}"));
            }
            fields.insert(name.clone(), kind);
            names
                .types
                .insert("vars".to_owned(), Type::Record(fields.clone()));
        }
        names
    }

    fn book_place(&self) -> Place {
        Place::new(
            &self.source.file.into(),
            portolan_yaml::Position { line: 1, column: 1 },
        )
    }

    fn steps(&mut self, steps: &[Step], names: &Names) {
        for step in steps {
            self.step(step, names);
        }
    }

    fn step(&mut self, step: &Step, outer: &Names) {
        let options = &step.options;
        if options.barrier == Barrier::Run {
            self.barriers += 1;
        }
        let mut names = outer.clone();
        let mut is_sensitive = options.is_sensitive;
        if let Some(items) = &options.for_each {
            if self.items(items, step, &names) {
                is_sensitive = true;
                names.secrets.extend(["item".to_owned(), "key".to_owned()]);
            }
            for (name, kind) in [
                ("item", Type::Any),
                ("index", Type::Integer),
                ("key", Type::Text),
            ] {
                names.types.insert(name.to_owned(), kind);
            }
        }
        if !options.vars.is_empty() {
            let Some(Type::Record(mut fields)) = names.types.get("vars").cloned() else {
                return;
            };
            for (name, value) in &options.vars {
                if self.texts(value, &names, &step.place) {
                    names.secrets.insert(format!("vars.{name}"));
                }
                fields.insert(name.clone(), known::type_of(value));
            }
            names.types.insert("vars".to_owned(), Type::Record(fields));
        }
        if let Some(when) = &options.when {
            is_sensitive |= self.truth(when, &names);
        }
        for value in options.env.values() {
            is_sensitive |= self.texts(value, &names, &step.place);
        }
        match &step.work {
            Work::Module(call) => is_sensitive |= self.call(call, step, &names),
            Work::Block(block) => {
                let inner = match &block.included {
                    Some(included) => {
                        let mut secret = BTreeSet::new();
                        for (name, value) in &included.given {
                            if self.texts(value, &names, &step.place) {
                                secret.insert(format!("inputs.{name}"));
                            }
                        }
                        let mut around = known::everywhere();
                        for name in ["item", "index", "key"] {
                            if let Some(kind) = names.types.get(name) {
                                around.insert(name.to_owned(), kind.clone());
                            }
                        }
                        self.document_names(
                            &around,
                            &included.inputs,
                            &included.vars,
                            &included.compute,
                            secret,
                        )
                    }
                    None => names.clone(),
                };
                self.steps(&block.steps, &inner);
                let mut rescued = inner.clone();
                let error = Type::record([("step", Type::Text), ("message", Type::Text)]);
                rescued.types.insert("error".to_owned(), error);
                self.steps(&block.rescue, &rescued);
                self.steps(&block.always, &inner);
            }
            Work::Flush | Work::Barrier => {}
        }
        self.check_placement(step);
        let mut after = names.clone();
        after
            .types
            .insert("result".to_owned(), Type::map(Type::Any));
        let over_result = [&options.success, &options.changed, &options.retries.until];
        for decision in over_result.into_iter().flatten() {
            is_sensitive |= self.truth(decision, &after);
        }
        if is_sensitive {
            self.checked.sensitive.insert(step.id.clone());
        }
        self.producers.push(Producer {
            id: step.id.clone(),
            step: step.id.clone(),
            barriers: self.barriers,
            is_taken: self.source.selection.takes(&options.tags),
        });
        for alias in &options.register {
            self.producers.push(Producer {
                id: alias.clone(),
                step: step.id.clone(),
                barriers: self.barriers,
                is_taken: self.source.selection.takes(&options.tags),
            });
            if is_sensitive {
                self.checked.sensitive.insert(alias.clone());
            }
        }
    }

    /// Where a step runs and how many nodes take it at once is said of steps that call modules.
    fn check_placement(&mut self, step: &Step) {
        let options = &step.options;
        if matches!(step.work, Work::Module(_)) {
            return;
        }
        let option = match (&options.run_on, options.throttle) {
            (RunOn::All, 0) => return,
            (RunOn::All, _) => "throttle",
            _ => "runOn",
        };
        let message = format!("`{option}` is an option of steps that call a module");
        let hint = "put it on the steps inside".to_owned();
        self.fault(&step.place, message, Some(hint));
    }

    /// Checks what a step is taken for. Says whether a secret is used in it.
    fn items(&mut self, items: &Items, step: &Step, names: &Names) -> bool {
        match items {
            Items::Values(value) => self.texts(value, names, &step.place),
            Items::Decided(decision) => {
                let kind = self.decision(decision, names);
                if !matches!(
                    kind,
                    Type::Any | Type::List(_) | Type::Map(_) | Type::Record(_)
                ) {
                    self.fault(
                        &decision.place,
                        format!("`forEach` needs a list or map, not {kind}"),
                        None,
                    );
                }
                self.uses_secret(decision, names)
            }
        }
    }

    /// Checks a call of a module. Says whether a secret is used in it.
    fn call(&mut self, call: &ModuleCall, step: &Step, names: &Names) -> bool {
        let mut literal = call.parameters.clone();
        let template = call.parameters.get("template").and_then(Value::as_str);
        let has_template = call
            .module
            .parameters
            .iter()
            .any(|known| known.name == "template");
        if has_template && template.is_some() && literal.remove("template").is_some() {
            // A template is content that is rendered later.
            literal.insert("content".to_owned(), Value::from("{{ template }}"));
        }
        let place_of = |name: &str| call.places.get(name).unwrap_or(&step.place).clone();
        for (name, message, hint) in parameters::problems(call.module, &literal) {
            self.fault(&place_of(&name), message, hint);
        }
        let mut uses_secret = false;
        for asserted in &call.asserted {
            uses_secret |= self.truth(asserted, names);
        }
        for (name, value) in &call.parameters {
            let is_secret = self.texts(value, names, &place_of(name));
            uses_secret |= is_secret;
            if is_secret
                && call.module.name == "command"
                && matches!(name.as_str(), "run" | "shell")
            {
                let message = format!(
                    "`command.{name}` puts a secret where every user of the node can read it"
                );
                let hint = "pass it by `env` or `stdin`".to_owned();
                self.fault(&place_of(name), message, Some(hint));
            }
        }
        for name in super::file_parameters(call.module.name) {
            let known = call
                .module
                .parameters
                .iter()
                .any(|known| known.name == *name);
            let path = call.parameters.get(*name).and_then(Value::as_str);
            let Some(path) = path.filter(|path| known && !crate::text::is_template(path)) else {
                continue;
            };
            if *name == "template" {
                uses_secret |= self.template_file(path, step, names);
            } else if super::is_book_file(path) {
                let found = self.source.files.read(Utf8Path::new(path)).map(|_| ());
                let listed = || self.source.files.list(Utf8Path::new(path)).map(|_| ());
                if let Err(error) = found.or_else(|error| listed().map_err(|_| error)) {
                    self.fault(&place_of(name), error.to_string(), None);
                }
            }
        }
        uses_secret
    }

    fn template_file(&mut self, path: &str, step: &Step, names: &Names) -> bool {
        match self.renderer.names_in_file(path) {
            Ok(used) => {
                let place =
                    Place::new(&path.into(), portolan_yaml::Position { line: 1, column: 1 });
                let text = self
                    .source
                    .files
                    .read(Utf8Path::new(path))
                    .unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                self.results(&steps_in_text(&text), &place);
                let mut uses_secret = self.used_names(&used, names, &place)
                    | self.asks_sensitive(&steps_in_text(&text));
                for inner in templates_in_text(&text) {
                    let found = inner_template(&*self.source.files, &inner, path);
                    let inner = found.unwrap_or(inner);
                    // A circle is found when the template is rendered; here each is read once.
                    if self.templates.insert((step.id.clone(), inner.clone())) {
                        uses_secret |= self.template_file(&inner, step, names);
                    }
                }
                uses_secret
            }
            Err(error) => {
                let file = error.file.as_deref().unwrap_or(path);
                let at = portolan_yaml::Position {
                    line: error.line,
                    column: u32::from(error.line > 0),
                };
                let place = match error.line {
                    0 => Self::template_place(step),
                    _ => Place::new(&file.into(), at),
                };
                self.fault(
                    &place,
                    format!("cannot use the template `{path}`: {}", error.message),
                    None,
                );
                false
            }
        }
    }

    fn template_place(step: &Step) -> Place {
        let place = match &step.work {
            Work::Module(call) => call.places.get("template"),
            _ => None,
        };
        place.unwrap_or(&step.place).clone()
    }

    /// Checks every text of a value. Says whether a secret is used in it.
    fn texts(&mut self, value: &Value, names: &Names, place: &Place) -> bool {
        match value {
            Value::String(text) => match self.renderer.names_in_text(text) {
                Ok(used) => {
                    self.results(&steps_in_text(text), place);
                    self.used_names(&used, names, place) | self.asks_sensitive(&steps_in_text(text))
                }
                Err(error) => {
                    self.fault(
                        place,
                        format!("cannot use the template `{text}`: {}", error.message),
                        None,
                    );
                    false
                }
            },
            Value::Array(items) => {
                let secrets: Vec<bool> = items
                    .iter()
                    .map(|item| self.texts(item, names, place))
                    .collect();
                secrets.contains(&true)
            }
            Value::Object(map) => {
                let secrets: Vec<bool> = map
                    .values()
                    .map(|item| self.texts(item, names, place))
                    .collect();
                secrets.contains(&true)
            }
            _ => false,
        }
    }

    /// Checks names such as `inputs.version`. Says whether one is secret.
    fn used_names(&mut self, used: &[String], names: &Names, place: &Place) -> bool {
        let mut is_secret = false;
        for path in used {
            let mut parts = path.split('.');
            let root = parts.next().unwrap_or_default();
            if root == "results" || root == "nodes" {
                let message =
                    format!("`{root}()` is only for expressions, as in `when` and `forEach`");
                self.fault(place, message, None);
                continue;
            }
            if root == "steps" {
                continue;
            }
            self.checked.asks_fleet.peers |= root == "peers";
            let Some(kind) = names.types.get(root) else {
                let known: Vec<&str> = names.types.keys().map(String::as_str).collect();
                self.fault(
                    place,
                    format!("`{root}` is not known here"),
                    advice(root, &known),
                );
                continue;
            };
            if root == "facts" {
                self.note_fact(path.split('.').nth(1));
            }
            let mut kind = kind.clone();
            for part in parts {
                kind = match kind {
                    Type::Record(fields) => match fields.get(part) {
                        Some(kind) => kind.clone(),
                        None => {
                            let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                            self.fault(
                                place,
                                format!("there is no `{path}`"),
                                advice(part, &known),
                            );
                            break;
                        }
                    },
                    Type::Map(value) => *value,
                    _ => break,
                };
            }
            let is_whole_root = path == root
                && names
                    .secrets
                    .iter()
                    .any(|name| name.starts_with(&format!("{root}.")));
            is_secret |= is_whole_root
                || names
                    .secrets
                    .iter()
                    .any(|name| path == name || path.starts_with(&format!("{name}.")));
        }
        is_secret
    }

    /// Checks an expression that must be true or false. Says whether a secret is used in it.
    fn truth(&mut self, decision: &Decision, names: &Names) -> bool {
        let kind = self.decision(decision, names);
        if !kind.meets(&Type::Boolean) {
            let message = format!("`{}` must be true or false, not {kind}", decision.text());
            self.fault(&decision.place, message, None);
        }
        self.uses_secret(decision, names)
    }

    fn decision(&mut self, decision: &Decision, names: &Names) -> Type {
        let mut types = names.types.clone();
        let steps = self
            .all_names
            .iter()
            .map(|name| (name.clone(), Type::map(Type::Any)));
        types.insert("steps".to_owned(), Type::Record(steps.collect()));
        let (kind, faults) =
            portolan_cel::check(decision.expression(), &types, &known::functions());
        for fault in faults {
            let message = format!("`{}`: {}", decision.text(), fault.message);
            // A step that could not be read is missing among the results.
            let is_consequence = !self.is_whole && decision.expression().names("steps");
            self.checked.faults.push(BookFault {
                place: decision.place.clone(),
                message,
                hint: fault.hint,
                is_consequence,
            });
        }
        let asked = &mut self.checked.asks_fleet;
        asked.peers |= decision.expression().names("peers");
        asked.nodes |= decision.expression().calls("nodes");
        for fact in decision.expression().keys_of("facts") {
            self.note_fact(Some(&fact));
        }
        let asked = decision.expression().keys_of("steps");
        let known: Vec<String> = asked
            .into_iter()
            .filter(|name| self.all_names.contains(name))
            .collect();
        self.results(&known, &decision.place);
        for name in decision.expression().keys_of("results") {
            self.all_results(&name, &decision.place);
        }
        kind
    }

    fn note_fact(&mut self, fact: Option<&str>) {
        self.checked.facts.insert(fact.unwrap_or("*").to_owned());
    }

    fn uses_secret(&self, decision: &Decision, names: &Names) -> bool {
        let expression = decision.expression();
        let uses = |name: &String| {
            let Some((root, field)) = name.split_once('.') else {
                return expression.names(name);
            };
            let keys = expression.keys_of(root);
            // The whole map, without a key, has the secret in it.
            keys.iter().any(|key| key == field) || (expression.names(root) && keys.is_empty())
        };
        let asks = |of: &str| self.asks_sensitive(&expression.keys_of(of));
        names.secrets.iter().any(uses) || asks("steps") || asks("results")
    }

    fn asks_sensitive(&self, asked: &[String]) -> bool {
        let is_named =
            |id: &String, name: &String| id == name || id.rsplit('/').next() == Some(name);
        asked
            .iter()
            .any(|name| self.checked.sensitive.iter().any(|id| is_named(id, name)))
    }

    /// Checks that the results of these steps are there when they are asked for.
    fn results(&mut self, asked: &[String], place: &Place) {
        for name in asked {
            let producer = self.producer(name);
            let fault = match producer {
                Some(producer) if producer.is_taken => {
                    let step = producer.step.clone();
                    self.checked.read_results.insert(step);
                    continue;
                }
                Some(_) => (
                    format!("the result of `{name}` is needed, but the tags skip that step"),
                    Some("add one of its tags to --tags".to_owned()),
                ),
                None if self.all_names.contains(name) => (
                    format!("the result of `{name}` is needed before that step is taken"),
                    None,
                ),
                None => {
                    let known: Vec<&str> = self.all_names.iter().map(String::as_str).collect();
                    (format!("there is no step `{name}`"), advice(name, &known))
                }
            };
            self.checked.faults.push(BookFault {
                place: place.clone(),
                message: fault.0,
                hint: fault.1,
                is_consequence: !self.is_whole,
            });
        }
    }

    fn all_results(&mut self, name: &str, place: &Place) {
        let before = self.producer(name).map(|producer| producer.barriers);
        if let Some(producer) = self.producer(name) {
            let id = producer.step.clone();
            self.checked.gathered.insert(name.to_owned(), id);
        }
        if before.is_none() {
            self.results(&[name.to_owned()], place);
        } else if before.is_some_and(|before| before >= self.barriers) {
            let message =
                format!("`results('{name}')` needs a barrier between that step and this one");
            let hint = "add `barrier: run` to this step, or to one between them".to_owned();
            self.fault(place, message, Some(hint));
        }
    }

    /// The last step of this name or path before the current one.
    fn producer(&self, name: &str) -> Option<&Producer> {
        let is_named = |producer: &&Producer| {
            producer.id == name || producer.id.rsplit('/').next() == Some(name)
        };
        self.producers.iter().rev().find(is_named)
    }

    fn fault(&mut self, place: &Place, message: String, hint: Option<String>) {
        self.checked.faults.push(BookFault {
            place: place.clone(),
            message,
            hint,
            is_consequence: false,
        });
    }
}
