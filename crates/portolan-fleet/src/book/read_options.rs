//! Reads the options of a step, each with a note for what is wrong with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portolan_kinds::read_span;
use portolan_modules::{Account, Effect};
use portolan_yaml::{Entry, Node, Tag};
use serde_json::{Map, Value};

use super::read::json;
use super::{Barrier, Items, OnUnknown, RunOn, StepOptions};
use crate::decision::Decision;
use crate::fault::{Faults, Place, advice};

/// Every option of a step.
pub(crate) const OPTIONS: &[&str] = &[
    "when",
    "forEach",
    "as",
    "env",
    "vars",
    "tags",
    "retries",
    "timeout",
    "success",
    "changed",
    "onError",
    "notify",
    "register",
    "runOn",
    "barrier",
    "throttle",
    "effect",
    "onUnknown",
    "sensitive",
];

/// The most attempts of a step, and nodes of a throttle or limit.
const MAX_COUNT: i64 = 10_000;

/// The longest time-out and pause.
const MAX_SPAN: Duration = Duration::from_hours(7 * 24);

pub(super) struct OptionReader<'a> {
    pub(super) file: &'a Arc<str>,
    pub(super) faults: &'a mut Faults,
    /// Positions of handlers by name, the innermost book last.
    pub(super) scopes: &'a [BTreeMap<String, usize>],
}

impl OptionReader<'_> {
    /// Reads one option into the options of a step; what is not an option is left alone.
    pub(super) fn read(&mut self, entry: &Entry, options: &mut StepOptions) {
        let node = &entry.value;
        match entry.key.as_str() {
            "when" => options.when = self.decision(node),
            "forEach" => options.for_each = self.items(node),
            "as" => options.account = self.account(node),
            "env" => options.env = self.texts(node, "env"),
            "vars" => options.vars = self.map(node, "vars"),
            "tags" => options.tags = self.names(node, "tags").into_iter().collect(),
            "retries" => self.retries(node, options),
            "timeout" => {
                if let Some(span) = self.span(node, "timeout") {
                    options.timeout = span;
                }
            }
            "success" => options.success = self.decision(node),
            "changed" => options.changed = self.decision(node),
            "onError" => {
                options.ignores_errors =
                    self.word(node, "onError", &["fail", "ignore"]) == Some("ignore");
            }
            "notify" => options.notify = self.handlers(node),
            "register" => options.register = self.names(node, "register"),
            "runOn" => options.run_on = self.run_on(node),
            "barrier" => {
                options.barrier = match self.word(node, "barrier", &["none", "batch", "run"]) {
                    Some("batch") => Barrier::Batch,
                    Some("run") => Barrier::Run,
                    _ => Barrier::None,
                };
            }
            "throttle" => options.throttle = self.count(node, "throttle").unwrap_or_default(),
            "effect" => {
                options.effect = match self.word(node, "effect", &["read", "converge", "once"]) {
                    Some("read") => Some(Effect::Read),
                    Some("converge") => Some(Effect::Converge),
                    Some("once") => Some(Effect::Once),
                    _ => None,
                };
            }
            "onUnknown" => {
                options.on_unknown =
                    match self.word(node, "onUnknown", &["fail", "verify", "rerun"]) {
                        Some("verify") => OnUnknown::Verify,
                        Some("rerun") => OnUnknown::Rerun,
                        _ => OnUnknown::Fail,
                    };
            }
            "sensitive" => match node.as_bool() {
                Some(flag) => options.is_sensitive = flag,
                None => self.fault(node, "`sensitive` must be true or false"),
            },
            _ => {}
        }
    }

    /// A CEL expression; `true` and `false` need no quotes.
    pub(super) fn decision(&mut self, node: &Node) -> Option<Decision> {
        let text = match node.as_scalar() {
            Some(scalar) if matches!(scalar.tag, Tag::Str | Tag::Bool) => scalar.text.as_str(),
            _ => {
                self.fault(node, "must be a CEL expression");
                return None;
            }
        };
        if text.contains("{{") {
            let hint = "write the expression without braces, as in `facts.os.family == 'debian'`";
            let place = Place::new(self.file, node.at);
            self.faults.add_hint(
                place,
                "decisions are CEL, not templates",
                Some(hint.to_owned()),
            );
            return None;
        }
        match Decision::parse(text, Place::new(self.file, node.at)) {
            Ok(decision) => Some(decision),
            Err(failure) => {
                self.fault(node, format!("`{text}` is not an expression: {failure}"));
                None
            }
        }
    }

    fn items(&mut self, node: &Node) -> Option<Items> {
        if node.as_list().is_some() || node.as_map().is_some() {
            return json(node).map(Items::Values);
        }
        self.decision(node).map(Items::Decided)
    }

    fn account(&mut self, node: &Node) -> Option<Account> {
        if let Some(user) = node.as_str().filter(|user| !user.is_empty()) {
            return Some(Account {
                user: user.to_owned(),
                group: None,
            });
        }
        self.known_keys(node, "as", &["user", "group"]);
        let user = node.get("user").and_then(Node::as_str);
        if user.is_none() {
            self.fault(
                node,
                "`as` must be a user, or a map with `user` and `group`",
            );
        }
        Some(Account {
            user: user?.to_owned(),
            group: node.get("group").and_then(Node::as_str).map(str::to_owned),
        })
    }

    fn retries(&mut self, node: &Node, options: &mut StepOptions) {
        let retries = &mut options.retries;
        if node.as_map().is_none() {
            self.fault(
                node,
                "`retries` must be a map such as `{limit: 3, interval: 10s}`",
            );
            return;
        }
        self.known_keys(node, "retries", &["limit", "interval", "backoff", "until"]);
        if let Some(limit) = node.get("limit") {
            retries.limit = self.count(limit, "limit").unwrap_or_default();
        }
        if let Some(interval) = node
            .get("interval")
            .and_then(|node| self.span(node, "interval"))
        {
            retries.interval = interval;
        }
        if let Some(backoff) = node.get("backoff") {
            match backoff
                .as_f64()
                .filter(|factor| (1.0..=10.0).contains(factor))
            {
                Some(factor) => retries.backoff = (factor * 1_000.0).round() as u32,
                None => self.fault(backoff, "`backoff` must be a number from 1 to 10"),
            }
        }
        if let Some(until) = node.get("until") {
            retries.until = self.decision(until);
        }
    }

    fn run_on(&mut self, node: &Node) -> RunOn {
        match node.as_str() {
            Some("all") => return RunOn::All,
            Some("first") => return RunOn::First,
            _ => {}
        }
        if node.as_map().is_none() {
            self.fault(
                node,
                "`runOn` must be `all`, `first` or a map with `group`, `selector` or `nodes`",
            );
            return RunOn::All;
        }
        self.known_keys(
            node,
            "runOn",
            &["group", "selector", "nodes", "limit", "per"],
        );
        let text = |key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
        let nodes = node.get("nodes").map(|nodes| self.names(nodes, "nodes"));
        let selector = text("selector");
        if let Some(Err(error)) = selector
            .as_deref()
            .map(str::parse::<portolan_object::Selector>)
        {
            self.fault(node, format!("`selector` is no label selector: {error}"));
        }
        let per = node
            .get("per")
            .and_then(|per| self.word(per, "per", &["node", "run"]));
        let run_on = RunOn::Others {
            group: text("group"),
            selector,
            nodes: nodes.unwrap_or_default(),
            limit: node
                .get("limit")
                .and_then(|limit| self.count(limit, "limit")),
            once_per_run: per == Some("run"),
        };
        if let RunOn::Others {
            group: None,
            selector: None,
            nodes,
            ..
        } = &run_on
            && nodes.is_empty()
        {
            self.fault(
                node,
                "`runOn` names no nodes: it needs `group`, `selector` or `nodes`",
            );
        }
        run_on
    }

    fn handlers(&mut self, node: &Node) -> Vec<usize> {
        let mut positions = Vec::new();
        for name in self.names(node, "notify") {
            let found = self.scopes.iter().rev().find_map(|scope| scope.get(&name));
            if let Some(position) = found {
                positions.push(*position);
                continue;
            }
            let known: Vec<&str> = self
                .scopes
                .iter()
                .flat_map(|scope| scope.keys().map(String::as_str))
                .collect();
            let place = Place::new(self.file, node.at);
            let hint =
                advice(&name, &known).or_else(|| Some("the book has no `handlers`".to_owned()));
            self.faults
                .add_hint(place, format!("there is no handler `{name}`"), hint);
        }
        positions
    }

    /// A list of texts; a single text is a list of one.
    fn names(&mut self, node: &Node, option: &str) -> Vec<String> {
        if let Some(name) = node.as_str() {
            return vec![name.to_owned()];
        }
        let names: Option<Vec<String>> = node.as_list().and_then(|list| {
            let names = list.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect()
        });
        if names.is_none() {
            self.fault(node, format!("`{option}` must be a list of texts"));
        }
        names.unwrap_or_default()
    }

    fn map(&mut self, node: &Node, option: &str) -> Map<String, Value> {
        match json(node) {
            Some(Value::Object(map)) => map,
            _ => {
                self.fault(node, format!("`{option}` must be a map"));
                Map::new()
            }
        }
    }

    fn texts(&mut self, node: &Node, option: &str) -> Map<String, Value> {
        let map = self.map(node, option);
        for (name, value) in &map {
            if !value.is_string() {
                let place = Place::new(self.file, node.at);
                let hint = format!("quote it: {name}: \"{value}\"");
                let message = format!("`{option}.{name}` must be a text");
                self.faults.add_hint(place, message, Some(hint));
            }
        }
        map
    }

    fn span(&mut self, node: &Node, option: &str) -> Option<Duration> {
        let span = node.as_str().map(read_span);
        match span {
            Some(Ok(span)) if span <= MAX_SPAN => return Some(span),
            Some(Ok(_)) => self.fault(node, format!("`{option}` must be at most 168h")),
            _ => self.fault(
                node,
                format!("`{option}` must be a span of time such as `90s`, `10m` or `1h30m`"),
            ),
        }
        None
    }

    fn count(&mut self, node: &Node, option: &str) -> Option<u32> {
        let count = node
            .as_i64()
            .filter(|count| (0..=MAX_COUNT).contains(count));
        if count.is_none() {
            self.fault(
                node,
                format!("`{option}` must be a whole number from 0 to {MAX_COUNT}"),
            );
        }
        u32::try_from(count?).ok()
    }

    fn word(&mut self, node: &Node, option: &str, words: &[&'static str]) -> Option<&'static str> {
        let text = node.as_scalar().map_or("", |scalar| scalar.text.as_str());
        let found = words.iter().find(|word| **word == text).copied();
        if found.is_none() {
            let place = Place::new(self.file, node.at);
            let message = format!("`{option}` must be one of {}", words.join(", "));
            self.faults.add_hint(place, message, advice(text, words));
        }
        found
    }

    fn known_keys(&mut self, node: &Node, option: &str, known: &[&str]) {
        for Entry { key, .. } in node.as_map().into_iter().flatten() {
            if !known.contains(&key.as_str()) {
                let place = Place::new(self.file, key.at);
                let message = format!("`{}` is not a field of `{option}`", key.as_str());
                self.faults
                    .add_hint(place, message, advice(key.as_str(), known));
            }
        }
    }

    fn fault(&mut self, node: &Node, message: impl Into<String>) {
        self.faults.add(Place::new(self.file, node.at), message);
    }
}
