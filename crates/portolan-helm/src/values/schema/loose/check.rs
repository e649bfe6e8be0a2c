//! Values checked against a compiled schema.
//!
//! Each subschema collects its findings and a score of how well the value matched. If one of several alternatives had
//! to match, the findings of the best one are shown.

use std::fmt;
use std::rc::Rc;

use portolan_budget::{Budget, Exceeded};
use portolan_gotmpl::{Map, Value};

use super::super::progress::Progress;
use super::super::subschema::{Id, Needs, Rest};
use super::compile::{Items, Node, Schema};
use super::format;
use crate::values::json;

/// How deep values may nest, and how many references may lead to each other.
const MAX_DEPTH: usize = 400;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The path to the value, `(root)` for the whole.
    field: String,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

#[derive(Default)]
struct Outcome {
    findings: Vec<Finding>,
    score: i64,
}

impl Outcome {
    fn fits(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, path: &Path<'_>, message: impl Into<String>) {
        self.findings.push(Finding {
            field: path.to_string(),
            message: message.into(),
        });
        self.score -= 2;
    }

    fn merge(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.score += other.score;
    }
}

/// The way to a value: a chain of stack frames, written out only for a finding.
struct Path<'p> {
    above: Option<&'p Self>,
    name: &'p str,
    depth: usize,
    progress: &'p Progress<'p>,
}

impl Path<'_> {
    fn below<'a>(&'a self, name: &'a str) -> Path<'a> {
        Path {
            above: Some(self),
            name,
            depth: self.depth + 1,
            progress: self.progress,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.above {
            Some(above) if above.above.is_some() => write!(f, "{above}.{}", self.name),
            _ => f.write_str(self.name),
        }
    }
}

impl Schema {
    pub(super) fn check(&self, value: &Value, budget: &Budget) -> Result<Vec<Finding>, Exceeded> {
        let progress = Progress::new(budget);
        let root = Path {
            above: None,
            name: "(root)",
            depth: 0,
            progress: &progress,
        };
        let outcome = self.apply(self.root, value, &root, 0);
        progress.finish(outcome.findings)
    }

    fn apply(&self, id: Id, value: &Value, path: &Path<'_>, depth: usize) -> Outcome {
        let mut outcome = Outcome::default();
        if !path.progress.goes_on() {
            return outcome;
        }
        if depth + path.depth > MAX_DEPTH {
            outcome.add(path, "values or schema are nested too deep");
            return outcome;
        }
        let depth = depth + 1;
        let node = self.node(id);
        if let Some(pass) = node.rare().pass {
            if !pass {
                outcome.add(path, "False always fails validation");
            }
            return outcome;
        }
        if let Some(reference) = node.reference {
            return self.apply(reference, value, path, depth);
        }
        let given = type_of(value);
        if !node.accepts(given) {
            let expected = match node.types.as_slice() {
                [only] => (*only).to_owned(),
                several => format!("[{}]", several.join(",")),
            };
            outcome.add(
                path,
                format!("Invalid type. Expected: {expected}, given: {given}"),
            );
            return outcome;
        }
        self.combined(node, value, path, depth, &mut outcome);
        match value {
            Value::List(items) => {
                self.list(node, items, path, depth, &mut outcome);
                common(node, value, path, &mut outcome);
            }
            Value::Map(map) => {
                self.object(node, map, path, depth, &mut outcome);
                common(node, value, path, &mut outcome);
                for (name, id) in &node.properties {
                    if let Some(below) = map.get(name) {
                        outcome.merge(self.apply(*id, &below, &path.below(name), depth));
                    }
                }
            }
            _ => {
                if let Some(number) = as_number(value) {
                    numeric(node, number, path, &mut outcome);
                }
                common(node, value, path, &mut outcome);
                if let Some(text) = value.as_str() {
                    textual(node, text, path, &mut outcome);
                }
            }
        }
        outcome.score += 1;
        outcome
    }

    /// `anyOf`, `oneOf`, `allOf`, `not`, `dependencies` and `if`.
    fn combined(
        &self,
        node: &Node,
        value: &Value,
        path: &Path<'_>,
        depth: usize,
        outcome: &mut Outcome,
    ) {
        if !node.rare().any_of.is_empty() {
            let (fitting, best) = self.alternatives(&node.rare().any_of, value, path, depth, true);
            if fitting == 0 {
                outcome.add(path, "Must validate at least one schema (anyOf)");
                outcome.merge(best.unwrap_or_default());
            }
        }
        if !node.rare().one_of.is_empty() {
            let (fitting, best) = self.alternatives(&node.rare().one_of, value, path, depth, false);
            if fitting != 1 {
                outcome.add(path, "Must validate one and only one schema (oneOf)");
                if fitting == 0 {
                    outcome.merge(best.unwrap_or_default());
                }
            }
        }
        if !node.rare().all_of.is_empty() {
            let mut all_fit = true;
            for id in &node.rare().all_of {
                let one = self.apply(*id, value, path, depth);
                all_fit &= one.fits();
                outcome.merge(one);
            }
            if !all_fit {
                outcome.add(path, "Must validate all the schemas (allOf)");
            }
        }
        if let Some(not) = node.rare().not
            && self.apply(not, value, path, depth).fits()
        {
            outcome.add(path, "Must not validate the schema (not)");
        }
        if let Value::Map(map) = value {
            self.dependencies(node, map, path, depth, outcome);
        }
        self.conditional(node, value, path, depth, outcome);
        outcome.score += 1;
    }

    /// How many alternatives fit, and the outcome of the best that does not.
    fn alternatives(
        &self,
        ids: &[Id],
        value: &Value,
        path: &Path<'_>,
        depth: usize,
        first_is_enough: bool,
    ) -> (usize, Option<Outcome>) {
        let mut fitting = 0;
        let mut best: Option<Outcome> = None;
        for id in ids {
            let outcome = self.apply(*id, value, path, depth);
            if outcome.fits() {
                fitting += 1;
                if first_is_enough {
                    break;
                }
            } else if fitting == 0 && best.as_ref().is_none_or(|b| outcome.score > b.score) {
                best = Some(outcome);
            }
        }
        (fitting, best)
    }

    fn dependencies(
        &self,
        node: &Node,
        map: &Rc<Map>,
        path: &Path<'_>,
        depth: usize,
        outcome: &mut Outcome,
    ) {
        for (name, needs) in &node.rare().dependencies {
            if map.get(name).is_none() {
                continue;
            }
            match needs {
                Needs::Properties(names) => {
                    for needed in names.iter().filter(|needed| map.get(needed).is_none()) {
                        outcome.add(path, format!("Has a dependency on {needed}"));
                    }
                }
                Needs::Schema(id) => {
                    outcome.merge(self.apply(*id, &Value::Map(Rc::clone(map)), path, depth));
                }
            }
        }
    }

    fn conditional(
        &self,
        node: &Node,
        value: &Value,
        path: &Path<'_>,
        depth: usize,
        outcome: &mut Outcome,
    ) {
        let Some(condition) = node.rare().condition else {
            return;
        };
        let (branch, message) = if self.apply(condition, value, path, depth).fits() {
            (
                node.rare().then,
                "Must validate \"then\" as \"if\" was valid",
            )
        } else {
            (
                node.rare().otherwise,
                "Must validate \"else\" as \"if\" was not valid",
            )
        };
        if let Some(branch) = branch {
            let found = self.apply(branch, value, path, depth);
            if !found.fits() {
                outcome.add(path, message);
                outcome.merge(found);
            }
        }
    }

    fn list(
        &self,
        node: &Node,
        items: &[Value],
        path: &Path<'_>,
        depth: usize,
        outcome: &mut Outcome,
    ) {
        for (index, item) in items.iter().enumerate() {
            let schema = match (&node.items, node.rare().additional_items) {
                (Some(Items::Each(id)), _) => Some(*id),
                (Some(Items::ByPlace(ids)), rest) => match (ids.get(index), rest) {
                    (Some(id), _) => Some(*id),
                    (None, Some(Rest::Schema(id))) if !ids.is_empty() => Some(id),
                    _ => None,
                },
                (None, _) => None,
            };
            if let Some(id) = schema {
                let name = index.to_string();
                outcome.merge(self.apply(id, item, &path.below(&name), depth));
            }
        }
        if let (Some(Items::ByPlace(ids)), Some(Rest::Allowed(false))) =
            (&node.items, node.rare().additional_items)
            && !ids.is_empty()
            && ids.len() < items.len()
        {
            outcome.add(path, "No additional items allowed on array");
        }
        let count = items.len() as u64;
        if let Some(min) = node.rare().min_items.filter(|min| count < *min) {
            outcome.add(path, format!("Array must have at least {min} items"));
        }
        if let Some(max) = node.rare().max_items.filter(|max| count > *max) {
            outcome.add(path, format!("Array must have at most {max} items"));
        }
        if node.rare().unique_items {
            unique(items, path, outcome);
        }
        if let Some(contains) = node.rare().contains {
            self.contains(contains, items, path, depth, outcome);
        }
        outcome.score += 1;
    }

    fn contains(
        &self,
        id: Id,
        items: &[Value],
        path: &Path<'_>,
        depth: usize,
        outcome: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        for (index, item) in items.iter().enumerate() {
            let name = index.to_string();
            let found = self.apply(id, item, &path.below(&name), depth);
            if found.fits() {
                return;
            }
            if best.as_ref().is_none_or(|b| found.score > b.score) {
                best = Some(found);
            }
        }
        outcome.add(path, "At least one of the items must match");
        outcome.merge(best.unwrap_or_default());
    }

    fn object(
        &self,
        node: &Node,
        map: &Rc<Map>,
        path: &Path<'_>,
        depth: usize,
        outcome: &mut Outcome,
    ) {
        let count = map.len() as u64;
        if let Some(min) = node.rare().min_properties.filter(|min| count < *min) {
            outcome.add(path, format!("Must have at least {min} properties"));
        }
        if let Some(max) = node.rare().max_properties.filter(|max| count > *max) {
            outcome.add(path, format!("Must have at most {max} properties"));
        }
        for name in &node.required {
            if map.get(name).is_some() {
                outcome.score += 1;
            } else {
                outcome.add(path, format!("{name} is required"));
            }
        }
        if node.rare().pattern_properties.is_empty()
            && node.rare().additional_properties.is_none()
            && node.rare().property_names.is_none()
        {
            outcome.score += 1;
            return;
        }
        for (name, value) in map.snapshot() {
            self.property(node, &name, &value, path, depth, outcome);
        }
        if let Some(names) = node.rare().property_names {
            for (name, _) in map.snapshot() {
                let found = self.apply(names, &Value::Str(name.clone()), path, depth);
                if !found.fits() {
                    outcome.add(path, format!("Property name of \"{name}\" does not match"));
                    outcome.merge(found);
                }
            }
        }
        outcome.score += 1;
    }

    /// `patternProperties`, and `additionalProperties` for what nothing describes.
    fn property(
        &self,
        node: &Node,
        name: &str,
        value: &Value,
        path: &Path<'_>,
        depth: usize,
        outcome: &mut Outcome,
    ) {
        let mut described = false;
        for (pattern, id) in &node.rare().pattern_properties {
            if pattern.is_match(name) {
                described = true;
                outcome.merge(self.apply(*id, value, &path.below(name), depth));
            }
        }
        if described {
            outcome.score += 1;
        }
        if described || node.properties.contains_key(name) {
            return;
        }
        match node.rare().additional_properties {
            Some(Rest::Allowed(false)) => {
                outcome.add(path, format!("Additional property {name} is not allowed"));
            }
            Some(Rest::Schema(id)) => {
                outcome.merge(self.apply(id, value, &path.below(name), depth));
            }
            Some(Rest::Allowed(true)) | None => {}
        }
    }
}

impl Node {
    fn accepts(&self, given: &str) -> bool {
        self.types.is_empty()
            || self
                .types
                .iter()
                .any(|name| *name == given || (given == "integer" && *name == "number"))
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(_, number) => Some(*number),
        Value::Int(_, number) => Some(*number as f64),
        _ => None,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Int(..) => "integer",
        Value::Float(_, number) if number.fract() == 0.0 => "integer",
        Value::Float(..) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "null",
    }
}

/// `const`, `enum` and `format`.
fn common(node: &Node, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    if let Some(constant) = &node.rare().constant
        && json::text(value) != *constant
    {
        outcome.add(path, format!("{path} does not match: {constant}"));
    }
    if !node.allowed.is_empty() && !node.allowed.contains(&json::text(value)) {
        let allowed = node.allowed.join(", ");
        outcome.add(
            path,
            format!("{path} must be one of the following: {allowed}"),
        );
    }
    if let Some(text) = value.as_str()
        && !node.rare().format.is_empty()
        && !format::fits(&node.rare().format, text)
    {
        outcome.add(
            path,
            format!("Does not match format '{}'", node.rare().format),
        );
    }
    outcome.score += 1;
}

fn textual(node: &Node, text: &str, path: &Path<'_>, outcome: &mut Outcome) {
    let length = text.chars().count() as u64;
    if let Some(min) = node.rare().min_length.filter(|min| length < *min) {
        outcome.add(
            path,
            format!("String length must be greater than or equal to {min}"),
        );
    }
    if let Some(max) = node.rare().max_length.filter(|max| length > *max) {
        outcome.add(
            path,
            format!("String length must be less than or equal to {max}"),
        );
    }
    if let Some(pattern) = node.rare().pattern.as_ref().filter(|p| !p.is_match(text)) {
        outcome.add(
            path,
            format!("Does not match pattern '{}'", pattern.as_str()),
        );
    }
    outcome.score += 1;
}

fn numeric(node: &Node, number: f64, path: &Path<'_>, outcome: &mut Outcome) {
    let mut bound = |bound: Option<f64>, broken: fn(f64, f64) -> bool, words: &str| {
        if let Some(bound) = bound.filter(|bound| broken(number, *bound)) {
            outcome.add(path, format!("Must be {words} {bound}"));
        }
    };
    bound(
        node.rare().multiple_of,
        |number, of| (number / of).fract() != 0.0,
        "a multiple of",
    );
    bound(
        node.rare().maximum,
        |n, max| n > max,
        "less than or equal to",
    );
    bound(
        node.rare().exclusive_maximum,
        |n, max| n >= max,
        "less than",
    );
    bound(
        node.rare().minimum,
        |n, min| n < min,
        "greater than or equal to",
    );
    bound(
        node.rare().exclusive_minimum,
        |n, min| n <= min,
        "greater than",
    );
    outcome.score += 1;
}

fn unique(items: &[Value], path: &Path<'_>, outcome: &mut Outcome) {
    let mut seen: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(earlier) = seen.insert(json::text(item), index) {
            outcome.add(
                path,
                format!("array items[{earlier},{index}] must be unique"),
            );
        }
    }
}
