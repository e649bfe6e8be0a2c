//! The variables of a Kustomization: collected from other objects and from its own spec, then substituted in the text
//! of objects.
//!
//! ```text
//! substituteFrom (in order, later wins) ─┐
//! substitute (wins over all) ────────────┴─▶ Variables ──▶ text of one object ──▶ object
//! ```

use std::collections::BTreeMap;

use portolan_envsubst as envsubst;
use portolan_object::{holds_placeholder, placeholder};
use portolan_yaml::{Dialect, Node, Text, Value};

use crate::api::{DataKind, PostBuild, SubstituteReference, SubstituteStrategy};
use crate::session::fingerprint::Fingerprint;

/// The label or annotation that keeps an object as it is.
const OPT_OUT: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// Variable names and values, newlines taken out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    values: BTreeMap<Text, String>,
    always: bool,
    unset: Unset,
}

/// What becomes of a variable that nothing in the repository sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Unset {
    /// It is empty.
    #[default]
    Empty,
    /// It is empty here, and an error to Flux.
    Refused,
    /// Data that something makes in the cluster may set it: a placeholder stands for it.
    Unknown,
    /// Data that nothing in the repository makes may set it, and Flux refuses to go on: a placeholder stands for it
    /// where other variables are put in, and otherwise nothing is.
    Missing,
}

/// The keys and texts of a ConfigMap or Secret.
pub(crate) type Data = BTreeMap<Text, Vec<u8>>;

/// A variable that nobody sets, where Flux demands that somebody does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsetVariable {
    /// Its name, where one variable is to blame.
    pub name: Option<String>,
    /// What Flux says.
    pub message: String,
    /// The line of the object's text that holds the expression.
    pub line: String,
}

/// Why an object's text could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum SubstitutionError {
    /// A variable cannot be called that.
    #[error("`{0}` is no name for a variable: letters, digits and `_`, no digit first")]
    Name(Text),
    /// The text could not be completed.
    #[error("{message}: in `{line}`")]
    Expression {
        /// What Flux says.
        message: String,
        /// The line of the object's text that holds the expression.
        line: String,
    },
    /// What came out is not YAML any more.
    #[error("after substitution the text is not YAML: {0}")]
    Yaml(String),
}

impl SubstitutionError {
    /// The line of the object's text that holds the expression; empty when it is not about one.
    pub(crate) fn line(&self) -> &str {
        match self {
            Self::Expression { line, .. } => line,
            Self::Name(_) | Self::Yaml(_) => "",
        }
    }
}

impl Variables {
    /// Collects the variables; `data` finds an object's content. The second part names what is missing and not optional.
    pub(crate) fn collect(
        post_build: &PostBuild,
        unset: Unset,
        mut data: impl FnMut(DataKind, &str) -> Option<Data>,
    ) -> (Self, Vec<SubstituteReference>) {
        let mut variables = Self {
            values: BTreeMap::new(),
            always: post_build.strategy == SubstituteStrategy::Always,
            unset,
        };
        let mut missing = Vec::new();
        for reference in &post_build.from {
            match data(reference.kind, &reference.name) {
                Some(data) => variables.extend(data),
                None if reference.optional => {}
                None => missing.push(reference.clone()),
            }
        }
        for (name, value) in &post_build.substitute {
            variables.values.insert(name.clone(), one_line(value));
        }
        (variables, missing)
    }

    /// Adds everything that decides what is put in.
    pub(crate) fn fingerprint(&self, key: &mut Fingerprint) {
        key.flag(self.always);
        key.number(self.unset as u64);
        key.number(self.values.len() as u64);
        for (name, value) in &self.values {
            key.text(name);
            key.text(value);
        }
    }

    fn extend(&mut self, data: Data) {
        for (name, value) in data {
            self.values
                .insert(name, one_line(&String::from_utf8_lossy(&value)));
        }
    }

    /// Whether an object is to be completed at all: nothing happens without a single variable unless asked for.
    pub(crate) fn applies_to(&self, object: &Node) -> bool {
        let may_be_set = !self.values.is_empty() || self.unset == Unset::Unknown;
        (self.always || may_be_set) && !opted_out(object)
    }

    /// Completes an object through its text, as Flux does: values are read again, so `${X}` may become a number.
    ///
    /// A variable that nobody sets is empty. Where Flux is strict about that, the error it gives comes along.
    pub(crate) fn substitute(
        &self,
        object: &Node,
    ) -> Result<(Node, Option<UnsetVariable>), SubstitutionError> {
        if let Some(name) = self.values.keys().find(|name| !is_name(name)) {
            return Err(SubstitutionError::Name(name.clone()));
        }
        if !has_dollar(object) {
            return Ok((object.clone(), None));
        }
        let text = portolan_yaml::write_kustomize(object)
            .map_err(|error| SubstitutionError::Yaml(error.to_string()))?;
        let (completed, unset) = self.complete(&text)?;
        let mut node = portolan_yaml::parse_one(completed, Dialect::Helm)
            .map_err(|error| SubstitutionError::Yaml(error.to_string()))?;
        keep_positions(object, &mut node);
        Ok((node, unset))
    }

    /// Puts variables into a line of text; nothing when that fails.
    pub(crate) fn complete_line(&self, line: &str) -> Option<String> {
        let fill = |name: &str| unknown_variable(name);
        let unset = match self.unset {
            Unset::Empty | Unset::Refused => envsubst::Unset::Empty,
            Unset::Unknown | Unset::Missing => envsubst::Unset::Filled(&fill),
        };
        self.put_into(line, unset).ok()
    }

    fn complete(&self, text: &str) -> Result<(String, Option<UnsetVariable>), SubstitutionError> {
        let fill = |name: &str| unknown_variable(name);
        let unset = match self.unset {
            Unset::Empty => envsubst::Unset::Empty,
            Unset::Refused => envsubst::Unset::Refused,
            Unset::Unknown | Unset::Missing => envsubst::Unset::Filled(&fill),
        };
        let error = match self.put_into(text, unset) {
            Ok(completed) => return Ok((completed, None)),
            Err(error) => error,
        };
        let (line, message) = (line_at(text, error.offset), error.to_string());
        if self.unset == Unset::Refused
            && let Ok(completed) = self.put_into(text, envsubst::Unset::Empty)
        {
            let name = match error.kind {
                envsubst::ErrorKind::NotSet(name) => Some(name),
                _ => None,
            };
            let unset = UnsetVariable {
                name,
                message,
                line,
            };
            return Ok((completed, Some(unset)));
        }
        Err(SubstitutionError::Expression { message, line })
    }

    fn put_into(&self, text: &str, unset: envsubst::Unset<'_>) -> Result<String, envsubst::Error> {
        let lookup = |name: &str| self.values.get(name).map(String::as_str);
        envsubst::substitute_opaque(text, unset, lookup, derived_placeholder)
    }
}

/// What stands for a part of a value that is not known here, where the part of its placeholder would not tell it apart.
fn derived_placeholder(value: &str, result: &[u8]) -> Option<String> {
    let result = String::from_utf8_lossy(result);
    let is_lost = holds_placeholder(value) && !holds_placeholder(&result);
    is_lost.then(|| placeholder(&format!("{value} as {result}")))
}

/// What stands for a variable that only the cluster can set: the same wherever it is used.
fn unknown_variable(name: &str) -> String {
    placeholder(&format!("variable/{name}"))
}

/// Whether there is anything to substitute: printing an object only to see that there is not costs more than looking.
fn has_dollar(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => scalar.text.contains('$'),
        Value::List(list) => list.iter().any(has_dollar),
        Value::Map(map) => map
            .iter()
            .any(|entry| entry.key.as_str().contains('$') || has_dollar(&entry.value)),
    }
}

/// Gives a tree that was printed and read again the places of the tree it was printed from.
fn keep_positions(before: &Node, after: &mut Node) {
    after.at = before.at;
    match (&before.value, &mut after.value) {
        (Value::Map(before), Value::Map(after)) => {
            for entry in after.entries_mut() {
                if let Some(value) = before.get(entry.key.as_str()) {
                    keep_positions(value, &mut entry.value);
                }
            }
        }
        (Value::List(before), Value::List(after)) => {
            for (before, after) in before.iter().zip(after.items_mut()) {
                keep_positions(before, after);
            }
        }
        _ => {}
    }
}

/// Whether an object asks for no substitution.
pub(crate) fn opted_out(object: &Node) -> bool {
    is_disabled(object, OPT_OUT)
}

/// Whether an object has a label or annotation `KEY: disabled`.
pub(crate) fn is_disabled(object: &Node, key: &str) -> bool {
    ["labels", "annotations"].iter().any(|field| {
        let value = object.at_path(&["metadata", field, key]);
        value.and_then(Node::as_str) == Some("disabled")
    })
}

fn one_line(value: &str) -> String {
    value.replace('\n', "")
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    bytes.next().is_some_and(letter) && bytes.all(|byte| letter(byte) || byte.is_ascii_digit())
}

fn line_at(text: &str, offset: usize) -> String {
    let offset = (0..=offset.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    text[start..]
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}
