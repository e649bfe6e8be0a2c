//! The validation rules of a CRD (`x-kubernetes-validations`), evaluated as the API server does.
//!
//! ```text
//! schema ──▶ Part (rules, parts below) ┐
//! object ──defaults filled in──▶ value ┴─▶ rules that it breaks, and rules that could not be judged
//! ```
//!
//! Rules are CEL expressions. A rule that cannot be evaluated here is left to the API server and reported as such: a
//! finding must be right, and an unchecked rule must not look like one that holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use kube_cel::cel::Value;
use kube_cel::cel::objects::{Key, KeyRef, Map};
use portolan_budget::{Budget, Limits, Stop};
use portolan_cel::{EvaluationScope, Expression, Failure, Form, Meter, STACK_BYTES, escaped};
use portolan_object::FieldPath;
use portolan_yaml::{List, Map as NodeMap, Node};

use crate::trail::Trail;
use crate::violation::{Problem, Violation};

/// The steps that all rules of an object may take together: Kubernetes' limit on their cost.
const STEPS_PER_OBJECT: u64 = 10_000_000;

/// The longest text of all rules of one definition; more are not read.
const MAX_RULE_BYTES: usize = 1 << 20;

/// The longest message that a rule may compute, in characters; Kubernetes cuts off there too.
const MAX_MESSAGE: usize = 5_120;

/// The rules of one version of a definition.
#[derive(Debug)]
pub(crate) struct Rules {
    root: Result<Part, Failure>,
}

/// What a schema says of one value as far as rules need it.
#[derive(Debug, Default)]
struct Part {
    rules: Vec<Rule>,
    fields: HashMap<String, Self>,
    items: Option<Box<Self>>,
    /// Of entries whose keys are free.
    values: Option<Box<Self>>,
    has_free_keys: bool,
    is_object: bool,
    form: Form,
    default: Option<Node>,
    keeps_null: bool,
    has_rules: bool,
}

#[derive(Debug)]
struct Rule {
    text: String,
    expression: Result<Expression, Failure>,
    message: Option<String>,
    message_expression: Option<Expression>,
    field: Option<String>,
    sees_creation: bool,
}

impl Rules {
    /// Reads the rules; `None` if the schema has none.
    pub(crate) fn read(schema: &Node) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        // The parser needs more stack for an expression than the caller may have left.
        let root = thread::scope(|scope| {
            let reader = thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || Part::read(schema, &mut 0));
            let part = reader.ok()?.join().ok();
            part.filter(|part| part.has_rules)
        });
        let unread = || Failure::Unsupported("they cannot be read here".to_owned());
        Some(Self {
            root: root.ok_or_else(unread),
        })
    }

    /// Every rule that the object breaks, and every one that could not be judged.
    pub(crate) fn broken_by(&self, object: &Node) -> Vec<Violation> {
        let part = match &self.root {
            Ok(part) => part,
            Err(failure) => return vec![unjudged("rules of the definition", failure, object)],
        };
        let limits = Limits {
            steps: STEPS_PER_OBJECT,
            ..Limits::default()
        };
        let mut walk = Walk {
            object,
            budget: &Budget::new(limits, Stop::default()),
            violations: Vec::new(),
        };
        walk.part(part, &part.value(object), Trail::Root);
        walk.violations
    }
}

// === impl Part ===

impl Part {
    /// Reads a schema; `read` counts the bytes of rules that were read before.
    fn read(schema: &Node, read: &mut usize) -> Self {
        let below = |key: &str, read: &mut usize| {
            let below = schema.get(key).filter(|below| below.as_map().is_some());
            below.map(|below| Box::new(Self::read(below, read)))
        };
        let properties = schema.get("properties").and_then(Node::as_map);
        let fields = properties.into_iter().flat_map(NodeMap::iter).map(|entry| {
            let part = Self::read(&entry.value, read);
            (entry.key.as_str().to_owned(), part)
        });
        let fields: HashMap<String, Self> = fields.collect();
        let free = schema.get("additionalProperties");
        let (items, values) = (below("items", read), below("additionalProperties", read));
        let rules = schema.get("x-kubernetes-validations");
        let rules: Vec<Rule> = rules
            .and_then(Node::as_list)
            .into_iter()
            .flat_map(List::iter)
            .filter_map(|rule| Rule::read(rule, read))
            .collect();
        let parts = fields
            .values()
            .chain(items.as_deref())
            .chain(values.as_deref());
        Self {
            has_rules: !rules.is_empty() || parts.into_iter().any(|part| part.has_rules),
            rules,
            fields,
            items,
            values,
            has_free_keys: free.is_some_and(|free| free.as_bool() != Some(false)),
            is_object: flag(schema, "x-kubernetes-embedded-resource"),
            form: form(schema),
            default: schema.get("default").cloned(),
            keeps_null: flag(schema, "nullable"),
        }
    }

    /// A value as rules see it: defaults filled in, fields under the names that rules know them by.
    fn value(&self, node: &Node) -> Value {
        if let Some(list) = node.as_list() {
            let nothing = Self::default();
            let part = self.items.as_deref().unwrap_or(&nothing);
            return Value::List(Arc::new(list.iter().map(|item| part.value(item)).collect()));
        }
        match node.as_map() {
            Some(map) => self.map(map),
            None => portolan_cel::scalar(node, self.form),
        }
    }

    fn map(&self, map: &NodeMap) -> Value {
        let nothing = Self::default();
        let mut entries = HashMap::new();
        let mut add = |key: String, value| entries.insert(Key::String(Arc::new(key)), value);
        for entry in map {
            let (name, value) = (entry.key.as_str(), &entry.value);
            let known = self.fields.get(name).or(self.values.as_deref());
            let part = known.unwrap_or(&nothing);
            if !value.is_null() || part.keeps_null || known.is_none() {
                add(self.key(name), part.value(value));
            }
        }
        for (name, part) in &self.fields {
            let is_given = map
                .get(name)
                .is_some_and(|value| !value.is_null() || part.keeps_null);
            if let (false, Some(default)) = (is_given, &part.default) {
                add(self.key(name), part.value(default));
            }
        }
        if self.is_object {
            for name in ["apiVersion", "kind"] {
                let key = Key::String(Arc::new(name.to_owned()));
                entries.entry(key).or_insert_with(|| portolan_cel::text(""));
            }
        }
        let map = Arc::new(entries);
        Value::Map(Map { map })
    }

    /// Free keys are data and stay as they are.
    fn key(&self, name: &str) -> String {
        if self.has_free_keys {
            name.to_owned()
        } else {
            escaped(name)
        }
    }
}

/// Evaluates an expression in which `self` stands for a value, and `oldSelf` for none.
fn evaluate(expression: &Expression, this: &Value, budget: &Budget) -> Result<Value, Failure> {
    let scope = EvaluationScope::of([("self", this.clone()), ("oldSelf", portolan_cel::none())]);
    portolan_cel::evaluate(expression, &scope, &mut Meter::new(budget))
}

fn form(schema: &Node) -> Form {
    let text = |key| schema.get(key).and_then(Node::as_str);
    if flag(schema, "x-kubernetes-int-or-string") {
        return Form::Plain;
    }
    match (text("type"), text("format")) {
        (Some("number"), _) => Form::Double,
        (_, Some("byte")) => Form::Bytes,
        (_, Some("date-time" | "date")) => Form::Timestamp,
        (_, Some("duration")) => Form::Duration,
        _ => Form::Plain,
    }
}

// === impl Rule ===

impl Rule {
    fn read(node: &Node, read: &mut usize) -> Option<Self> {
        let text = |key| node.get(key).and_then(Node::as_str);
        let rule = text("rule")?;
        let message_expression = text("messageExpression");
        *read += rule.len() + message_expression.map_or(0, str::len);
        let expression = if *read > MAX_RULE_BYTES {
            let why = format!("the rules of its definition are longer than {MAX_RULE_BYTES} bytes");
            Err(Failure::TooLarge(why))
        } else {
            Expression::parse(rule)
        };
        let message_expression = message_expression.filter(|_| expression.is_ok());
        Some(Self {
            text: rule.to_owned(),
            expression,
            message: text("message").map(str::to_owned),
            message_expression: message_expression.and_then(|text| Expression::parse(text).ok()),
            field: text("fieldPath").map(str::to_owned),
            sees_creation: flag(node, "optionalOldSelf"),
        })
    }

    /// Whether a value keeps the rule.
    fn holds(&self, value: &Value, budget: &Budget) -> Result<bool, Failure> {
        let expression = self.expression.as_ref().map_err(Clone::clone)?;
        // Before its first change an object has nothing to be compared with.
        if expression.names("oldSelf") && !self.sees_creation {
            return Ok(true);
        }
        match evaluate(expression, value, budget)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err(Failure::types()),
        }
    }

    fn message(&self, value: &Value, budget: &Budget) -> String {
        let computed = self.message_expression.as_ref().and_then(|expression| {
            match evaluate(expression, value, budget) {
                Ok(Value::String(text)) => Some(text.chars().take(MAX_MESSAGE).collect()),
                _ => None,
            }
        });
        let written = || self.message.clone();
        computed
            .or_else(written)
            .unwrap_or_else(|| format!("failed rule: {}", self.text))
    }

    /// Its text, short enough for a line.
    fn quoted(&self) -> String {
        const MOST: usize = 100;
        let text: String = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(MOST) {
            Some((end, _)) => format!("rule `{}…`", text.get(..end).unwrap_or_default()),
            None => format!("rule `{text}`"),
        }
    }
}

/// A walk over one object's value beside the parts of its schema.
struct Walk<'a> {
    object: &'a Node,
    budget: &'a Budget,
    violations: Vec<Violation>,
}

impl Walk<'_> {
    fn part(&mut self, part: &Part, value: &Value, trail: Trail<'_>) {
        for rule in &part.rules {
            self.rule(rule, value, trail);
        }
        if !part.has_rules {
            return;
        }
        match value {
            Value::Map(map) => self.entries(part, map, trail),
            Value::List(list) => {
                let items = part.items.as_ref().filter(|items| items.has_rules);
                for (index, item) in list.iter().enumerate().filter(|_| items.is_some()) {
                    if let Some(part) = items {
                        self.part(part, item, Trail::Index(&trail, index));
                    }
                }
            }
            _ => {}
        }
    }

    fn entries(&mut self, part: &Part, map: &Map, trail: Trail<'_>) {
        let mut fields: Vec<_> = part
            .fields
            .iter()
            .filter(|(_, part)| part.has_rules)
            .collect();
        fields.sort_by_key(|(name, _)| name.as_str());
        for (name, below) in fields {
            if let Some(value) = map.get(&KeyRef::String(&part.key(name))) {
                self.part(below, value, Trail::Key(&trail, name));
            }
        }
        let Some(below) = part.values.as_deref().filter(|below| below.has_rules) else {
            return;
        };
        let mut keys: Vec<(&Key, &Value)> = map.map.iter().collect();
        keys.sort_by_key(|(key, _)| *key);
        for (key, value) in keys {
            if let Key::String(key) = key
                && !part.fields.contains_key(key.as_str())
            {
                self.part(below, value, Trail::Key(&trail, key));
            }
        }
    }

    fn rule(&mut self, rule: &Rule, value: &Value, trail: Trail<'_>) {
        let holds = rule.holds(value, self.budget);
        if holds == Ok(true) {
            return;
        }
        let mut path = trail.path();
        if let Some(field) = &rule.field {
            path = path.join(&FieldPath::parse(field));
        }
        let problem = match holds {
            Ok(_) => Problem::Rule {
                message: rule.message(value, self.budget),
            },
            Err(failure) => Problem::NotJudged {
                what: rule.quoted(),
                reason: failure.to_string(),
            },
        };
        self.violations.push(Violation {
            at: path.written_in(self.object).node.at,
            path,
            problem,
        });
    }
}

fn unjudged(what: &str, failure: &Failure, object: &Node) -> Violation {
    Violation {
        path: FieldPath::default(),
        at: object.at,
        problem: Problem::NotJudged {
            what: what.to_owned(),
            reason: failure.to_string(),
        },
    }
}

fn has_rules(schema: &Node) -> bool {
    if let Some(map) = schema.as_map() {
        return map.iter().any(|entry| {
            entry.key.as_str() == "x-kubernetes-validations" || has_rules(&entry.value)
        });
    }
    schema
        .as_list()
        .is_some_and(|list| list.iter().any(has_rules))
}

fn flag(node: &Node, key: &str) -> bool {
    node.get(key).and_then(Node::as_bool) == Some(true)
}
