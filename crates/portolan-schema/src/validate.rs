//! Walks through a value together with its schema and collects every violation.
//!
//! A null counts as absent: that is how Kubernetes' own types read it, and what Helm and kustomize mean by it.

use portolan_yaml::{Entry, List, Map, Node, Number, Position, Scalar as Text, Style, Tag, Value};

use crate::check::{self, Check};
use crate::kubernetes::Kubernetes;
use crate::schema::{Record, Scalar, Schema, Shape, Unique};
use crate::trail::Trail;
use crate::violation::{Problem, Violation};

/// Values and alternatives that are looked at for one object; real objects need some thousands.
const MAX_STEPS: u64 = 10_000_000;

/// A walk over one object.
pub(crate) struct Walk<'a> {
    types: &'a Kubernetes,
    violations: Vec<Violation>,
    steps_left: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(types: &'a Kubernetes) -> Self {
        Self {
            types,
            violations: Vec::new(),
            steps_left: MAX_STEPS,
        }
    }

    /// Every violation; a walk that took too many steps ends with what was not looked at.
    pub(crate) fn finish(mut self) -> Vec<Violation> {
        if self.steps_left == 0 {
            let problem = Problem::NotJudged {
                what: "the rest of the object".to_owned(),
                reason: format!("its definition needs more than {MAX_STEPS} steps"),
            };
            self.report(Trail::Root, Position::default(), problem);
        }
        self.violations
    }

    /// Charges steps; once there are none left, nothing more is judged.
    fn may_go_on(&mut self, steps: usize) -> bool {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps_left = self.steps_left.saturating_sub(steps);
        self.steps_left > 0
    }

    /// Checks one value and everything below it.
    pub(crate) fn value(&mut self, schema: &Schema, node: &Node, trail: Trail<'_>) {
        if node.is_null() || !self.may_go_on(1) {
            return;
        }
        match &schema.shape {
            Shape::Any => {}
            Shape::Scalar(expected) => {
                if let Err(problem) = scalar(*expected, node) {
                    return self.report(trail, node.at, problem);
                }
            }
            Shape::List { item, unique } => match node.as_list() {
                Some(list) => self.list(item, unique, list, trail),
                None => return self.wrong_type("a list", node, trail),
            },
            Shape::Map(values) => match node.as_map() {
                Some(map) => self.map(values, map, trail),
                None => return self.wrong_type("a map", node, trail),
            },
            Shape::Record(record) => match node.as_map() {
                Some(map) => self.record(record, map, node.at, trail),
                None => return self.wrong_type("a map", node, trail),
            },
            Shape::Named(number) => match (self.types.named(*number), node.as_map()) {
                (Some(record), Some(map)) => self.record(record, map, node.at, trail),
                (_, None) => return self.wrong_type("a map", node, trail),
                (None, _) => {}
            },
        }
        for check in &schema.checks {
            self.check(check, node, trail);
        }
    }

    /// Checks a map with known keys.
    pub(crate) fn record(&mut self, record: &Record, map: &Map, at: Position, trail: Trail<'_>) {
        for entry in map {
            self.entry(record, entry, trail);
        }
        let absent = |name: &str| map.get(name).is_none_or(Node::is_null);
        let fields = record.fields.iter();
        let missing = fields
            .filter(|field| field.required && !field.schema.has_default && absent(&field.name))
            .map(|field| field.name.to_string());
        let unnamed = record.required.iter().filter(|name| absent(name)).cloned();
        for field in missing.chain(unnamed) {
            self.report(trail, at, Problem::MissingField { field });
        }
    }

    fn entry(&mut self, record: &Record, entry: &Entry, trail: Trail<'_>) {
        let name = entry.key.as_str();
        let below = Trail::Key(&trail, name);
        match record.field(name) {
            Some(field) => self.value(&field.schema, &entry.value, below),
            None if record.open => {}
            None => {
                let problem = Problem::UnknownField {
                    field: name.to_owned(),
                    similar: record.similar(name),
                };
                self.report(below, entry.key.at, problem);
            }
        }
    }

    fn map(&mut self, values: &Schema, map: &Map, trail: Trail<'_>) {
        for entry in map {
            self.value(values, &entry.value, Trail::Key(&trail, entry.key.as_str()));
        }
    }

    fn list(&mut self, item: &Schema, unique: &Unique, list: &List, trail: Trail<'_>) {
        for (index, node) in list.iter().enumerate() {
            self.value(item, node, Trail::Index(&trail, index));
        }
        let again = match unique {
            Unique::No => None,
            Unique::Values => check::repeated(list.iter().map(|node| Some(vec![node]))),
            Unique::Keys(keys) => check::repeated(list.iter().map(|node| key_of(node, keys))),
        };
        if let Some((index, node)) = again.and_then(|index| Some((index, list.get(index)?))) {
            let must = match unique {
                Unique::Keys(keys) => {
                    format!("must not repeat `{}` of another item", keys.join("`, `"))
                }
                _ => "must not repeat another item".to_owned(),
            };
            self.report(
                Trail::Index(&trail, index),
                node.at,
                Problem::Invalid { must },
            );
        }
    }

    fn check(&mut self, check: &Check, node: &Node, trail: Trail<'_>) {
        if !self.may_go_on(check.steps(node)) {
            return;
        }
        let must = match check {
            // Each part must hold by itself, so its own words say best what is wrong.
            Check::AllOf(parts) => {
                for part in parts {
                    self.value(part, node, trail);
                }
                return;
            }
            Check::AnyOf(parts) => (!parts.iter().any(|part| self.holds(part, node)))
                .then(|| alternatives("at least", parts)),
            Check::OneOf(parts) => (parts.iter().filter(|part| self.holds(part, node)).count()
                != 1)
                .then(|| alternatives("exactly", parts)),
            Check::Not(part) => self
                .holds(part, node)
                .then(|| "must not have the form its definition forbids".to_owned()),
            other => other.broken_by(node),
        };
        // Alternatives that were not all looked at prove nothing.
        if let Some(must) = must.filter(|_| self.steps_left > 0) {
            self.report(trail, node.at, Problem::Invalid { must });
        }
    }

    fn holds(&mut self, schema: &Schema, node: &Node) -> bool {
        let mut walk = Walk {
            types: self.types,
            violations: Vec::new(),
            steps_left: self.steps_left,
        };
        walk.value(schema, node, Trail::Root);
        self.steps_left = walk.steps_left;
        walk.violations.is_empty()
    }

    fn wrong_type(&mut self, expected: &'static str, node: &Node, trail: Trail<'_>) {
        let found = found(node);
        self.report(trail, node.at, Problem::WrongType { expected, found });
    }

    fn report(&mut self, trail: Trail<'_>, at: Position, problem: Problem) {
        self.violations.push(Violation {
            path: trail.path(),
            at,
            problem,
        });
    }
}

/// What a choice between forms asks for: the fields of each when that is what tells them apart.
fn alternatives(how_many: &str, parts: &[Schema]) -> String {
    let required = |part: &Schema| match &part.shape {
        Shape::Record(record) => {
            let fields = record.fields.iter().filter(|field| field.required);
            let mut names: Vec<String> = fields.map(|field| field.name.to_string()).collect();
            names.extend(record.required.iter().cloned());
            names.join(" and ")
        }
        _ => String::new(),
    };
    let names: Vec<String> = parts.iter().map(required).collect();
    if names.iter().any(String::is_empty) {
        return format!("must have {how_many} one of the forms its definition allows");
    }
    format!("must have {how_many} one of `{}`", names.join("`, `"))
}

fn key_of<'n>(node: &'n Node, keys: &[String]) -> Option<Vec<&'n Node>> {
    let map = node.as_map()?;
    let present: Vec<&Node> = keys.iter().filter_map(|key| map.get(key)).collect();
    // An item without all its keys may get defaults; the server knows, this does not.
    (present.len() == keys.len()).then_some(present)
}

fn scalar(expected: Scalar, node: &Node) -> Result<(), Problem> {
    let Value::Scalar(text) = &node.value else {
        return Err(mismatch(expected, node));
    };
    let fits = match expected {
        Scalar::String => is_text(text),
        Scalar::Bool => text.tag == Tag::Bool || is_old_bool(text),
        Scalar::Int32 => match whole(node) {
            Some(number) if i32::try_from(number).is_err() => {
                let must = "must fit into 32 bits".to_owned();
                return Err(Problem::Invalid { must });
            }
            number => number.is_some(),
        },
        Scalar::Int64 => whole(node).is_some(),
        Scalar::Number => node.number().is_some(),
        Scalar::Bytes => is_text(text) && is_base64(&text.text),
        Scalar::Time => is_text(text) && is_time(&text.text),
        Scalar::Quantity => node.number().is_some() || (is_text(text) && is_quantity(&text.text)),
        Scalar::IntOrString => whole(node).is_some() || is_text(text),
    };
    if fits {
        Ok(())
    } else {
        Err(mismatch(expected, node))
    }
}

fn mismatch(expected: Scalar, node: &Node) -> Problem {
    Problem::WrongType {
        expected: expected.expected(),
        found: found(node),
    }
}

fn found(node: &Node) -> &'static str {
    match &node.value {
        Value::Map(_) => "a map",
        Value::List(_) => "a list",
        Value::Scalar(scalar) => match scalar.tag {
            Tag::Bool => "`true` or `false`",
            Tag::Int => "a whole number",
            Tag::Float => "a number",
            _ => "text",
        },
    }
}

fn is_text(scalar: &Text) -> bool {
    !matches!(scalar.tag, Tag::Bool | Tag::Int | Tag::Float | Tag::Null)
}

/// kustomize passes `yes` and `on` along as they stand, and Kubernetes' reader takes them for booleans.
fn is_old_bool(scalar: &Text) -> bool {
    let words = ["y", "yes", "on", "n", "no", "off"];
    scalar.style == Style::Plain
        && words
            .iter()
            .any(|word| scalar.text.eq_ignore_ascii_case(word))
}

/// A number without a fraction; JSON knows no other difference between `1` and `1.0`.
fn whole(node: &Node) -> Option<i128> {
    match node.number()? {
        Number::Int(number) => Some(number.into()),
        Number::Uint(number) => Some(number.into()),
        Number::Float(number) => {
            (number.fract() == 0.0 && number.abs() < 9e18).then_some(number as i128)
        }
    }
}

fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    // Go's decoder skips line ends.
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok()
}

/// Roughly RFC 3339: what the server refuses beyond it is rare, what it accepts is never refused here.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    (0..4).all(digit) && is(4, b'-') && is(7, b'-') && bytes.len() >= 19 && is(13, b':')
}

/// A number with an optional suffix.
fn is_quantity(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    let digits = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &unsigned[..unsigned.len() - digits.len()];
    let exponent = |rest: &str| {
        let rest = rest.trim_start_matches(['+', '-']);
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
    };
    let suffix = matches!(
        digits,
        "" | "n"
            | "u"
            | "m"
            | "k"
            | "M"
            | "G"
            | "T"
            | "P"
            | "E"
            | "Ki"
            | "Mi"
            | "Gi"
            | "Ti"
            | "Pi"
            | "Ei"
    ) || digits.strip_prefix(['e', 'E']).is_some_and(exponent);
    number.bytes().any(|byte| byte.is_ascii_digit())
        && number.matches('.').count() <= 1
        && text.len() - unsigned.len() <= 1
        && suffix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers_with_a_suffix() {
        for good in [
            "1", "0.5", "500m", "1Gi", "1e3", "-1k", "+.5", "1E", "1E6", "100Mi", "5.",
        ] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in [
            "", "Gi", "1gb", "1 Gi", "1GB", "--1", "1.2.3", "abc", "1e", "10mi",
        ] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }
}
