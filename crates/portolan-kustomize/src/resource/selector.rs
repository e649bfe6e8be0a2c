//! Choosing resources: by patterns on their identity and by label and annotation selectors.

use portolan_budget::Budget;
use portolan_yaml::Text;

use crate::config::read_gvk;
use crate::error::{Error, Result};
use crate::load::decode::{Fields, Strictness};
use crate::resource::Resource;
use crate::resource::id::{Gvk, ResourceId};
use crate::resource::set::ResourceSet;
use crate::schema::Schema;
use crate::value::cost::{PATTERN_STEPS, RESOURCE_STEPS};
use crate::value::field::metadata_pairs;
use crate::value::regexp::Pattern;

/// A selector as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) id: ResourceId,
    pub(crate) labels: Text,
    pub(crate) annotations: Text,
}

/// A selector ready to match.
#[derive(Debug)]
pub(crate) struct Matcher {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    labels: Requirements,
    annotations: Requirements,
}

// === impl Selector ===

impl Selector {
    pub(crate) fn read(node: &portolan_yaml::Node, strictness: Strictness) -> Result<Self> {
        let names = [
            "group",
            "version",
            "kind",
            "name",
            "namespace",
            "annotationSelector",
            "labelSelector",
        ];
        let fields = Fields::read(node, "Selector", &names, strictness)?;
        Ok(Self {
            id: ResourceId {
                gvk: read_gvk(&fields)?,
                name: fields.text("name")?,
                namespace: fields.text("namespace")?,
            },
            labels: fields.text("labelSelector")?,
            annotations: fields.text("annotationSelector")?,
        })
    }

    /// Charges what preparing the patterns costs, and returns them.
    pub(crate) fn matcher(&self, budget: &Budget) -> Result<Matcher> {
        let id = &self.id;
        for pattern in [
            &id.gvk.group,
            &id.gvk.version,
            &id.gvk.kind,
            &id.name,
            &id.namespace,
        ] {
            if Pattern::is_regex(pattern) {
                budget.step(PATTERN_STEPS)?;
            }
        }
        Ok(Matcher {
            group: Pattern::whole(&self.id.gvk.group)?,
            version: Pattern::whole(&self.id.gvk.version)?,
            kind: Pattern::whole(&self.id.gvk.kind)?,
            name: Pattern::whole(&self.id.name)?,
            namespace: Pattern::whole(&self.id.namespace)?,
            labels: Requirements::parse(&self.labels)?,
            annotations: Requirements::parse(&self.annotations)?,
        })
    }

    /// The positions of the resources that match, in order.
    pub(crate) fn select(
        &self,
        set: &mut ResourceSet,
        schema: &Schema,
        budget: &Budget,
    ) -> Result<Vec<usize>> {
        let matcher = self.matcher(budget)?;
        let mut found = matcher.candidates(set, schema);
        budget.step(found.len() as u64 * RESOURCE_STEPS)?;
        found.retain(|position| {
            let resource = set.get(*position).filter(|one| !one.is_empty());
            resource.is_some_and(|resource| matcher.takes(resource, schema))
        });
        Ok(found)
    }
}

// === impl Matcher ===

impl Matcher {
    /// Where matching resources can be, in order: nearly all selectors name one exactly.
    pub(crate) fn candidates(&self, set: &mut ResourceSet, schema: &Schema) -> Vec<usize> {
        match self.name.exact() {
            Some(name) => set.candidates(name, schema),
            None => (0..set.len()).collect(),
        }
    }

    /// Whether a patch with this target changes the resource.
    fn takes(&self, resource: &Resource, schema: &Schema) -> bool {
        // The cheapest question first.
        if !self.kind.is_match(&resource.kind()) {
            return false;
        }
        let (current, original) = (resource.comparable_id(schema), resource.original_id(schema));
        (self.namespace.is_match(&original.namespace)
            || self.namespace.is_match(&current.namespace))
            && (self.name.is_match(&original.name) || self.name.is_match(&current.name))
            && self.takes_type(&current.gvk)
            && self.takes_metadata(resource)
    }

    pub(crate) fn takes_type(&self, gvk: &Gvk) -> bool {
        self.group.is_match(&gvk.group)
            && self.version.is_match(&gvk.version)
            && self.kind.is_match(&gvk.kind)
    }

    /// Whether an identity matches, its namespace as written.
    pub(crate) fn takes_id(&self, id: &ResourceId) -> bool {
        self.takes_type(&id.gvk)
            && self.name.is_match(&id.name)
            && self.namespace.is_match(&id.namespace)
    }

    pub(crate) fn takes_metadata(&self, resource: &Resource) -> bool {
        self.labels.match_pairs(resource, "labels")
            && self.annotations.match_pairs(resource, "annotations")
    }
}

/// A Kubernetes selector: all requirements must hold.
#[derive(Debug)]
struct Requirements(Vec<Requirement>);

#[derive(Debug)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug)]
enum Operator {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl Requirements {
    fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser {
            rest: text.trim(),
            whole: text,
        };
        let mut requirements = Vec::new();
        while !parser.rest.is_empty() {
            requirements.push(parser.requirement()?);
            parser.skip_space();
            match parser.rest.strip_prefix(',') {
                Some(rest) => parser.rest = rest.trim_start(),
                None if parser.rest.is_empty() => break,
                None => return Err(parser.wrong()),
            }
            if parser.rest.is_empty() {
                return Err(parser.wrong());
            }
        }
        Ok(Self(requirements))
    }

    fn match_pairs(&self, resource: &Resource, field: &str) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let pairs = metadata_pairs(&resource.node, field);
        self.0.iter().all(|requirement| requirement.holds(&pairs))
    }
}

impl Requirement {
    fn holds(&self, pairs: &[(Text, Text)]) -> bool {
        let value = pairs
            .iter()
            .find(|(key, _)| key.as_str() == self.key)
            .map(|(_, value)| value);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::Missing => value.is_none(),
            Operator::In(values) => {
                value.is_some_and(|value| values.iter().any(|known| *value == known.as_str()))
            }
            Operator::NotIn(values) => {
                value.is_none_or(|value| values.iter().all(|known| *value != known.as_str()))
            }
            Operator::Greater(bound) => number().is_some_and(|number| number > *bound),
            Operator::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    whole: &'a str,
}

impl<'a> Parser<'a> {
    fn requirement(&mut self) -> Result<Requirement> {
        self.skip_space();
        if let Some(rest) = self.rest.strip_prefix('!') {
            self.rest = rest;
            self.skip_space();
            let key = self.key()?;
            return Ok(Requirement {
                key,
                operator: Operator::Missing,
            });
        }
        let key = self.key()?;
        self.skip_space();
        let operator = self.operator()?;
        Ok(Requirement { key, operator })
    }

    fn operator(&mut self) -> Result<Operator> {
        for (sign, make) in SIGNS {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                self.skip_space();
                let value = self.word().to_owned();
                return make(value).ok_or_else(|| self.wrong());
            }
        }
        if self.rest.is_empty() || self.rest.starts_with(',') {
            return Ok(Operator::Exists);
        }
        match self.word() {
            "in" => Ok(Operator::In(self.values()?)),
            "notin" => Ok(Operator::NotIn(self.values()?)),
            _ => Err(self.wrong()),
        }
    }

    fn values(&mut self) -> Result<Vec<String>> {
        self.skip_space();
        let inner = self
            .rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'));
        let Some((inner, rest)) = inner else {
            return Err(self.wrong());
        };
        self.rest = rest;
        Ok(inner
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect())
    }

    fn key(&mut self) -> Result<String> {
        let word = self.word();
        let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
        if word.is_empty() || !word.chars().all(is_valid) {
            return Err(self.wrong());
        }
        Ok(word.to_owned())
    }

    fn word(&mut self) -> &'a str {
        let is_end = |letter: char| letter.is_whitespace() || "=!,()<>".contains(letter);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn wrong(&self) -> Error {
        Error::refused(format!(
            "unable to parse selector `{}` at `{}`",
            self.whole, self.rest
        ))
    }
}

type MakeOperator = fn(String) -> Option<Operator>;

/// Longer signs first.
const SIGNS: [(&str, MakeOperator); 5] = [
    ("==", |value| Some(Operator::In(vec![value]))),
    ("=", |value| Some(Operator::In(vec![value]))),
    ("!=", |value| Some(Operator::NotIn(vec![value]))),
    (">", |value| value.parse().ok().map(Operator::Greater)),
    ("<", |value| value.parse().ok().map(Operator::Less)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let pairs: Vec<(Text, Text)> = labels
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect();
        let requirements = Requirements::parse(selector).unwrap();
        let held = requirements
            .0
            .iter()
            .all(|requirement| requirement.holds(&pairs));
        assert_eq!(held, expected, "{selector}");
    }

    #[test]
    fn selectors_follow_kubernetes() {
        check("a=b", &[("a", "b")], true);
        check("a!=b", &[], true);
        check("a in (b, c),d", &[("a", "c"), ("d", "")], true);
        check("a notin (b)", &[("a", "b")], false);
        check("!a", &[("a", "")], false);
        check("", &[], true);
    }

    #[test]
    fn a_broken_selector_is_refused() {
        for selector in ["a=b,", "a b", "=", "a in b", "a,,b"] {
            assert!(Requirements::parse(selector).is_err(), "{selector}");
        }
    }
}
