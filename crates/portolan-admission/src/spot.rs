//! A value inside an object with the path back to the root, and the checks that all values share.
//!
//! A [`Spot`] points to its parent, so nothing is copied until something is wrong.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use portolan_object::{FieldPath, FieldSegment, NameRule};
use portolan_yaml::{List, Map, Node, Text};

use crate::refusal::{Fault, Refusal};

/// What has been refused so far.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    pub(crate) list: Vec<Refusal>,
}

/// A value and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) node: &'a Node,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a Spot<'a>, &'a str),
    Item(&'a Spot<'a>, &'a str, usize),
}

impl Refusals {
    pub(crate) fn add(&mut self, fault: Fault, at: &Spot<'_>, message: impl Into<String>) {
        self.list.push(Refusal {
            fault,
            path: at.path(),
            message: message.into(),
        });
    }

    pub(crate) fn missing(&mut self, at: &Spot<'_>, field: &str) {
        let message = format!("required field `{field}` is missing");
        self.add(Fault::Missing, at, message);
    }

    /// A field that is text must be one of these; an empty one counts as absent.
    pub(crate) fn one_of(&mut self, at: &Spot<'_>, field: &str, allowed: &[&str]) {
        let Some(found) = at.field(field) else { return };
        let Some(text) = found.node.as_str() else {
            return;
        };
        if !text.is_empty() && !allowed.contains(&text) {
            let message = format!("must be {}", choice(allowed));
            self.add(Fault::Value, &found, message);
        }
    }

    /// A field that is a number must lie in a range.
    pub(crate) fn within(&mut self, at: &Spot<'_>, field: &str, range: RangeInclusive<i64>) {
        let Some(found) = at.field(field) else { return };
        let Some(number) = found.node.as_i64() else {
            return;
        };
        if !range.contains(&number) {
            let (least, most) = (range.start(), range.end());
            let message = match *most {
                i64::MAX => format!("must be at least {least}"),
                _ => format!("must be from {least} to {most}"),
            };
            self.add(Fault::Value, &found, message);
        }
    }

    /// A field that is text must be a name of a kind.
    pub(crate) fn named(&mut self, at: &Spot<'_>, field: &str, rule: NameRule) {
        let Some(found) = at.field(field) else { return };
        if found.node.as_str().is_some_and(|name| !rule.fits(name)) {
            self.add(Fault::Name, &found, rule.to_string());
        }
    }

    /// The items of a list differ in a field.
    pub(crate) fn distinct(&mut self, at: &Spot<'_>, list: &str, field: &str) {
        let mut seen = HashSet::new();
        for item in at.items(list) {
            if item.text(field).is_some_and(|name| !seen.insert(name))
                && let Some(name) = item.field(field)
            {
                let message = format!("another item of `{list}` has this `{field}`");
                self.add(Fault::Duplicate, &name, message);
            }
        }
    }

    /// At most one of these fields is there.
    pub(crate) fn at_most_one(&mut self, at: &Spot<'_>, fields: &[&str]) {
        let mut present = fields.iter().filter(|field| at.field(field).is_some());
        if let (Some(first), Some(second)) = (present.next(), present.next()) {
            let message = format!("`{first}` and `{second}` exclude each other");
            self.add(Fault::Conflict, at, message);
        }
    }

    /// Exactly one of these fields is there.
    pub(crate) fn exactly_one(&mut self, at: &Spot<'_>, fields: &[&str]) {
        if fields.iter().any(|field| at.field(field).is_some()) {
            self.at_most_one(at, fields);
        } else {
            self.add(
                Fault::Conflict,
                at,
                format!("needs one of {}", listed(fields)),
            );
        }
    }
}

impl<'a> Spot<'a> {
    pub(crate) fn root(node: &'a Node) -> Self {
        Self {
            node,
            step: Step::Root,
        }
    }

    /// The value of a key; a null counts as absent.
    pub(crate) fn field(&'a self, key: &'a str) -> Option<Self> {
        let node = self.node.get(key).filter(|node| !node.is_null())?;
        let step = Step::Field(self, key);
        Some(Self { node, step })
    }

    /// The items of a list below a key; none when it is no list.
    pub(crate) fn items(&'a self, key: &'a str) -> impl Iterator<Item = Self> {
        let list = self.node.get(key).and_then(Node::as_list);
        let numbered = list.into_iter().flat_map(List::iter).enumerate();
        numbered.map(move |(index, node)| Self {
            node,
            step: Step::Item(self, key, index),
        })
    }

    /// The entries of a map.
    pub(crate) fn entries(&'a self) -> impl Iterator<Item = (&'a str, Self)> {
        let entries = self.node.as_map().into_iter().flat_map(Map::iter);
        entries.map(move |entry| {
            let key = entry.key.as_str();
            let step = Step::Field(self, key);
            let node = &entry.value;
            (key, Self { node, step })
        })
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.node.get(key).and_then(Node::as_str)
    }

    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.node.get(key).and_then(Node::as_i64)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.node.get(key).and_then(Node::as_bool) == Some(true)
    }

    /// The names of a list's items.
    pub(crate) fn names(&self, key: &str) -> HashSet<&'a str> {
        let list = self.node.get(key).and_then(Node::as_list);
        let items = list.into_iter().flat_map(List::iter);
        items
            .filter_map(|item| item.get("name")?.as_str())
            .collect()
    }

    /// Whether a list below a key has items.
    pub(crate) fn has_items(&self, key: &str) -> bool {
        let list = self.node.get(key).and_then(Node::as_list);
        list.is_some_and(|list| !list.is_empty())
    }

    fn path(&self) -> FieldPath {
        let mut segments = Vec::new();
        let mut step = self.step;
        loop {
            let above = match step {
                Step::Root => break,
                Step::Field(above, key) => {
                    segments.push(FieldSegment::Key(Text::from(key)));
                    above
                }
                Step::Item(above, key, index) => {
                    segments.push(FieldSegment::Index(index));
                    segments.push(FieldSegment::Key(Text::from(key)));
                    above
                }
            };
            step = above.step;
        }
        segments.into_iter().rev().collect()
    }
}

/// `` `A`, `B` or `C` ``
fn choice(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or `{last}`", listed(rest)),
        _ => listed(words),
    }
}

fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
