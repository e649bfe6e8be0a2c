//! What a field must be beyond its type, as a table that defaults, validation, documentation and schemas are made from.

use portolan_object::{FieldPath, NameRule, Selector};
use serde_json::{Map, Value};

use crate::fault::Faults;
use crate::read::quoted;
use crate::span::read_span;

/// What a field of a spec must be.
#[derive(Debug, Clone, Copy)]
pub struct FieldRule {
    /// The field, as in `rules[].verbs`: `[]` for every item of a list, `*` for every value of a map.
    pub path: &'static str,
    /// What it must be.
    pub demand: FieldDemand,
}

/// What a field must be.
#[derive(Debug, Clone, Copy)]
pub enum FieldDemand {
    /// It must be there, and neither be an empty text nor an empty list.
    Required,
    /// It is set to this if it is not there, when the object is written.
    Default(FixedValue),
    /// A name by this rule.
    Name(NameRule),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number in this range, both ends included.
    Between(u32, u32),
    /// A span of time such as `10m`, of at least and at most so many seconds.
    Span(u64, u64),
    /// A label selector.
    LabelSelector,
    /// At most so many characters.
    Length(usize),
    /// At most so many items or entries.
    Items(usize),
}

/// Rules that several kinds share, and a kind's own ones. `SUM` is how many these are together.
pub(crate) const fn joined<const SHARED: usize, const OWN: usize, const SUM: usize>(
    shared: &[FieldRule; SHARED],
    own: &[FieldRule; OWN],
) -> [FieldRule; SUM] {
    const { assert!(SHARED + OWN == SUM && SHARED > 0) };
    let mut all = [shared[0]; SUM];
    let mut at = 0;
    while at < SUM {
        all[at] = if at < SHARED {
            shared[at]
        } else {
            own[at - SHARED]
        };
        at += 1;
    }
    all
}

/// A default.
#[derive(Debug, Clone, Copy)]
pub enum FixedValue {
    /// A text or word.
    Text(&'static str),
    /// True or false.
    Flag(bool),
    /// A whole number.
    Count(u32),
}

impl FixedValue {
    /// The value as JSON.
    pub fn to_json(self) -> Value {
        match self {
            Self::Text(text) => Value::from(text),
            Self::Flag(flag) => Value::Bool(flag),
            Self::Count(count) => Value::from(count),
        }
    }
}

impl FieldDemand {
    /// The demand in words, for documentation; `None` where the schema shows it otherwise.
    pub fn in_words(self) -> Option<String> {
        Some(match self {
            Self::Required => "required".to_owned(),
            Self::Default(value) => format!("default: {}", plain(&value.to_json())),
            Self::Name(rule) => rule.to_string(),
            Self::OneOf(words) => format!("one of {}", quoted(words)),
            Self::Between(least, most) => format!("from {least} to {most}"),
            Self::Span(..) => "a span of time such as `90s`, `10m` or `1h30m`".to_owned(),
            Self::LabelSelector => "a label selector such as `role=web,zone in (a,b)`".to_owned(),
            Self::Length(most) => format!("at most {most} characters"),
            Self::Items(most) => format!("at most {most}"),
        })
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Sets the defaults of a spec.
pub(crate) fn set_defaults(rules: &[FieldRule], spec: &mut Value) {
    for rule in rules {
        if let FieldDemand::Default(default) = rule.demand {
            let (above, name) = split(rule.path);
            visit_mut(spec, &above, &mut |map| {
                if !map.contains_key(name) {
                    map.insert(name.to_owned(), default.to_json());
                }
            });
        }
    }
}

/// Checks a spec against its rules.
pub(crate) fn check(rules: &[FieldRule], spec: &Value, faults: &mut Faults<'_>) {
    let top = FieldPath::top("spec");
    for rule in rules {
        if let FieldDemand::Required = rule.demand {
            let (above, name) = split(rule.path);
            visit(spec, &above, &top, &mut |value, path| {
                if value.is_object() && is_blank(value.get(name)) {
                    faults.add(&path.key(name), "must be there and not be empty");
                }
            });
        } else {
            let steps: Vec<&str> = steps(rule.path).collect();
            visit(spec, &steps, &top, &mut |value, path| {
                check_value(rule.demand, value, path, faults);
            });
        }
    }
}

fn is_blank(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn check_value(demand: FieldDemand, value: &Value, path: &FieldPath, faults: &mut Faults<'_>) {
    let text = value.as_str().unwrap_or_default();
    match demand {
        FieldDemand::Name(rule) if !rule.fits(text) => faults.add(path, rule.to_string()),
        FieldDemand::OneOf(words) if !words.contains(&text) => {
            let hint = crate::read::advice(text, words);
            faults.add_hint(
                path,
                format!("must be one of {}", quoted(words)),
                Some(hint),
            );
        }
        FieldDemand::Between(least, most) => {
            let range = u64::from(least)..=u64::from(most);
            if !value.as_u64().is_some_and(|number| range.contains(&number)) {
                faults.add(path, format!("must be from {least} to {most}"));
            }
        }
        FieldDemand::Span(least, most) => match read_span(text) {
            Err(message) => faults.add(path, message),
            Ok(span) if span.as_secs() < least || span.as_secs() > most => {
                faults.add(path, format!("must be from {least}s to {most}s"));
            }
            Ok(_) => {}
        },
        FieldDemand::LabelSelector => {
            if let Err(error) = text.parse::<Selector>() {
                faults.add(path, format!("is no label selector: {error}"));
            }
        }
        FieldDemand::Length(most) if text.chars().count() > most => {
            faults.add(path, format!("must have at most {most} characters"));
        }
        FieldDemand::Items(most) => {
            let count = value.as_array().map(Vec::len);
            let count = count.or_else(|| value.as_object().map(Map::len));
            if count.is_some_and(|count| count > most) {
                faults.add(path, format!("must have at most {most} entries"));
            }
        }
        // What is required is asked before, and these fit.
        FieldDemand::Required
        | FieldDemand::Default(_)
        | FieldDemand::Name(_)
        | FieldDemand::OneOf(_)
        | FieldDemand::Length(_) => {}
    }
}

/// `rules[].verbs` is `rules`, `[]`, `verbs`.
fn steps(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('.')
        .flat_map(|part| match part.strip_suffix("[]") {
            Some(name) => vec![name, "[]"],
            None => vec![part],
        })
}

fn split(path: &'static str) -> (Vec<&'static str>, &'static str) {
    let mut above: Vec<&str> = steps(path).collect();
    let name = above.pop().unwrap_or_default();
    (above, name)
}

fn visit(
    value: &Value,
    steps: &[&str],
    path: &FieldPath,
    found: &mut dyn FnMut(&Value, &FieldPath),
) {
    let Some((step, rest)) = steps.split_first() else {
        return found(value, path);
    };
    match (*step, value) {
        ("[]", Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                visit(item, rest, &path.index(index), found);
            }
        }
        ("*", Value::Object(map)) => {
            for (key, value) in map {
                visit(value, rest, &path.key(key), found);
            }
        }
        (key, Value::Object(map)) => {
            if let Some(value) = map.get(key) {
                visit(value, rest, &path.key(key), found);
            }
        }
        _ => {}
    }
}

fn visit_mut(value: &mut Value, steps: &[&str], found: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Some((step, rest)) = steps.split_first() else {
        if let Value::Object(map) = value {
            found(map);
        }
        return;
    };
    match (*step, value) {
        ("[]", Value::Array(items)) => {
            for item in items {
                visit_mut(item, rest, found);
            }
        }
        ("*", Value::Object(map)) => {
            for value in map.values_mut() {
                visit_mut(value, rest, found);
            }
        }
        (key, Value::Object(map)) => {
            if let Some(value) = map.get_mut(key) {
                visit_mut(value, rest, found);
            }
        }
        _ => {}
    }
}
