//! Label selectors.
//!
//! A selector is a list of requirements that must all hold. It is read from text (`app=web,tier in (a,b),!old`) by
//! [`parse`], or from the `matchLabels` and `matchExpressions` of an object; either way every key and value is
//! checked, with the error messages of Kubernetes.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use portolan_yaml::{Map, Node};
use thiserror::Error;

use crate::selection::label::{key_problems, value_problems};

/// Requirements that must all hold; without any it selects everything.
///
/// ```
/// use portolan_object::Selector;
///
/// let selector: Selector = "app in (web, api), !legacy".parse()?;
/// assert!(selector.matches(|key| (key == "app").then_some("web")));
/// assert!(!selector.matches(|key| (key == "app").then_some("db")));
/// assert_eq!(selector.to_string(), "app in (api,web),!legacy");
/// # Ok::<(), portolan_object::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// Sorted by key.
    requirements: Vec<Requirement>,
}

/// What one label must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`: is the value.
    Equals,
    /// `==`: is the value.
    DoubleEquals,
    /// `!=`: is not the value, or is absent.
    NotEquals,
    /// `in`: is one of the values.
    In,
    /// `notin`: is none of the values, or is absent.
    NotIn,
    /// The key alone: is there.
    Exists,
    /// `!`: is not there.
    DoesNotExist,
    /// `>`: is a greater whole number.
    GreaterThan,
    /// `<`: is a smaller whole number.
    LessThan,
}

/// Why a selector was refused, in the words of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SelectorError(pub(crate) String);

impl Selector {
    /// The selector that every object matches.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether all requirements hold for the labels that `label` looks up.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.holds(label(&requirement.key)))
    }

    /// From these requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements }
    }

    /// From a `LabelSelector`: `{matchLabels: {…}, matchExpressions: […]}`.
    ///
    /// As in Kubernetes a selector that is absent or null selects nothing, which is not a selector: that is for the
    /// caller to tell apart. An empty one selects everything.
    pub fn from_node(node: &Node) -> Result<Self, SelectorError> {
        let map = as_map(node, "label selector")?;
        let mut requirements = Vec::new();
        if let Some(labels) = present(map.get("matchLabels")) {
            for entry in as_map(labels, "matchLabels")? {
                let value = text(&entry.value, "value of matchLabels")?;
                requirements.push(Requirement::new(
                    entry.key.as_str(),
                    Operator::Equals,
                    [value],
                )?);
            }
        }
        if let Some(expressions) = present(map.get("matchExpressions")) {
            let list = expressions
                .as_list()
                .ok_or_else(|| unlike("matchExpressions", "a list"))?;
            for expression in list {
                requirements.push(Requirement::from_node(expression)?);
            }
        }
        Ok(Self::new(requirements))
    }
}

impl Requirement {
    /// A requirement, when key, values and their number suit the operator.
    pub fn new<T: Into<String>>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Self, SelectorError> {
        let values: BTreeSet<String> = values.into_iter().map(Into::into).collect();
        let problems = problems(key, operator, &values);
        match problems.len() {
            0 => Ok(Self {
                key: key.to_owned(),
                operator,
                values,
            }),
            1 => Err(SelectorError(problems.concat())),
            _ => Err(SelectorError(format!("[{}]", problems.join(", ")))),
        }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label is compared.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What the label is compared with, sorted.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(String::as_str)
    }

    fn from_node(node: &Node) -> Result<Self, SelectorError> {
        let map = as_map(node, "matchExpressions")?;
        let field = |key: &'static str| match map.get(key) {
            Some(node) => text(node, key),
            None => Ok(""),
        };
        let operator = match field("operator")? {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                let message = format!("{other:?} is not a valid label selector operator");
                return Err(SelectorError(message));
            }
        };
        let values = match present(map.get("values")) {
            Some(values) => {
                let list = values.as_list().ok_or_else(|| unlike("values", "a list"))?;
                list.iter()
                    .map(|value| text(value, "values"))
                    .collect::<Result<Vec<_>, _>>()?
            }
            None => Vec::new(),
        };
        Self::new(field("key")?, operator, values)
    }

    fn holds(&self, label: Option<&str>) -> bool {
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                label.is_some_and(|label| self.values.contains(label))
            }
            Operator::NotIn | Operator::NotEquals => {
                label.is_none_or(|label| !self.values.contains(label))
            }
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self
                .bound_and(label)
                .is_some_and(|(bound, label)| label > bound),
            Operator::LessThan => self
                .bound_and(label)
                .is_some_and(|(bound, label)| label < bound),
        }
    }

    fn bound_and(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((self.values.first()?.parse().ok()?, label?.parse().ok()?))
    }
}

fn problems(key: &str, operator: Operator, values: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let wrong_key = key_problems(key);
    if !wrong_key.is_empty() {
        problems.push(invalid("key", key, &wrong_key.join("; ")));
    }
    if let Some(detail) = wrong_count(operator, values.len()) {
        problems.push(format!(
            "values: Invalid value: {}: {detail}",
            json_list(values)
        ));
    }
    for (index, value) in values.iter().enumerate() {
        let ordered = matches!(operator, Operator::GreaterThan | Operator::LessThan);
        if ordered && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            problems.push(invalid(&format!("values[{index}]"), value, detail));
        }
    }
    for (index, value) in values.iter().enumerate() {
        let wrong_value = value_problems(value);
        if !wrong_value.is_empty() {
            let path = format!("values[{index}][{key}]");
            problems.push(invalid(&path, value, &wrong_value.join("; ")));
        }
    }
    problems
}

fn wrong_count(operator: Operator, count: usize) -> Option<&'static str> {
    match (operator, count) {
        (Operator::In | Operator::NotIn, 0) => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        (Operator::Equals | Operator::DoubleEquals | Operator::NotEquals, count) if count != 1 => {
            Some("exact-match compatibility requires one single value")
        }
        (Operator::Exists | Operator::DoesNotExist, count) if count != 0 => {
            Some("values set must be empty for exists and does not exist")
        }
        (Operator::GreaterThan | Operator::LessThan, count) if count != 1 => {
            Some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
        _ => None,
    }
}

/// A refused field as the API server words it.
pub(crate) fn invalid(path: &str, value: &str, detail: &str) -> String {
    format!("{path}: Invalid value: {value:?}: {detail}")
}

fn json_list(values: &BTreeSet<String>) -> String {
    if values.is_empty() {
        return "null".to_owned();
    }
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", quoted.join(","))
}

fn present(node: Option<&Node>) -> Option<&Node> {
    node.filter(|node| !node.is_null())
}

fn as_map<'a>(node: &'a Node, what: &str) -> Result<&'a Map, SelectorError> {
    node.as_map().ok_or_else(|| unlike(what, "a map"))
}

fn text<'a>(node: &'a Node, what: &str) -> Result<&'a str, SelectorError> {
    node.as_str().ok_or_else(|| unlike(what, "a string"))
}

fn unlike(what: &str, expected: &str) -> SelectorError {
    SelectorError(format!("{what} must be {expected}"))
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text).map(Self::new)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values().collect::<Vec<_>>().join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
