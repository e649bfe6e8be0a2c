//! Which findings are wanted: the `test` part of `portolan.yaml`, and an annotation on the object itself.
//!
//! ```yaml
//! test:
//!   disable: [reference/missing]
//!   ignore:
//!   - rule: schema/*
//!     kind: Deployment
//!     namespace: legacy
//!     reason: goes away with the old cluster
//! ```

use portolan_object::Object;
use portolan_yaml::{Dialect, List, Node, Position, parse_one};
use thiserror::Error;

use crate::finding::Finding;
use crate::rule::{RULES, Rule};

/// Names the rules, separated by commas, that an object is excused from; `schema/*` means the whole group, `*` all.
pub const IGNORE_ANNOTATION: &str = "portolan.dev/ignore";

/// What is switched off for everything or for some objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    disabled: Vec<String>,
    ignored: Vec<Ignored>,
}

/// One excuse; what is not named may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ignored {
    rule: String,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

/// Why settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// It is not YAML.
    #[error("{0}")]
    Syntax(String),
    /// A rule is named that does not exist.
    #[error("no rule is called `{rule}`")]
    UnknownRule {
        /// The name.
        rule: String,
        /// Where it stands.
        at: Position,
    },
    /// An excuse has no rule, or no reason.
    #[error("an entry of `test.ignore` needs `{field}`")]
    Incomplete {
        /// What it needs.
        field: &'static str,
        /// Where it stands.
        at: Position,
    },
}

impl Settings {
    /// Reads the `test` part of a `portolan.yaml`; a file without one switches nothing off.
    pub fn read(yaml: &str) -> Result<Self, SettingsError> {
        let root = parse_one(yaml, Dialect::Helm)
            .map_err(|errors| SettingsError::Syntax(errors.to_string()))?;
        let items = |key| root.at_path(&["test", key]).and_then(Node::as_list);
        let disabled = items("disable")
            .into_iter()
            .flat_map(List::iter)
            .map(pattern);
        let ignored = items("ignore")
            .into_iter()
            .flat_map(List::iter)
            .map(ignored);
        Ok(Self {
            disabled: disabled.collect::<Result<_, _>>()?,
            ignored: ignored.collect::<Result<_, _>>()?,
        })
    }

    /// Whether a rule counts at all.
    pub fn enables(&self, rule: &Rule) -> bool {
        !self.disabled.iter().any(|pattern| covers(pattern, rule.id))
    }

    /// Whether a finding about an object counts.
    pub(crate) fn wants(&self, finding: &Finding, object: Option<&Object>) -> bool {
        let id = finding.rule.id;
        let excused =
            object.is_some_and(|object| self.excuses(id, object) || annotated(id, object));
        !excused && self.enables(finding.rule)
    }

    fn excuses(&self, id: &str, object: &Object) -> bool {
        let fits = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        self.ignored.iter().any(|ignored| {
            covers(&ignored.rule, id)
                && fits(&ignored.kind, object.kind())
                && fits(&ignored.namespace, object.namespace())
                && fits(&ignored.name, object.name())
        })
    }
}

fn annotated(id: &str, object: &Object) -> bool {
    let patterns = object.annotation(IGNORE_ANNOTATION).unwrap_or_default();
    patterns
        .split(',')
        .any(|pattern| covers(pattern.trim(), id))
}

fn covers(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(group) => id.starts_with(group),
        None => pattern == id,
    }
}

fn pattern(node: &Node) -> Result<String, SettingsError> {
    let text = node.as_str().unwrap_or_default();
    if RULES.iter().any(|rule| covers(text, rule.id)) {
        return Ok(text.to_owned());
    }
    Err(SettingsError::UnknownRule {
        rule: text.to_owned(),
        at: node.at,
    })
}

fn ignored(node: &Node) -> Result<Ignored, SettingsError> {
    let text = |key| node.get(key).and_then(Node::as_str).map(str::to_owned);
    let incomplete = |field| SettingsError::Incomplete { field, at: node.at };
    // The reason is for people; asking for it keeps excuses from gathering without one.
    text("reason").ok_or_else(|| incomplete("reason"))?;
    let rule = pattern(node.get("rule").ok_or_else(|| incomplete("rule"))?)?;
    Ok(Ignored {
        rule,
        kind: text("kind"),
        namespace: text("namespace"),
        name: text("name"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_does_not_exist_is_refused_where_it_stands() {
        let error =
            Settings::read("test:\n  disable: [schema/nothing]\n").expect_err("no such rule");
        assert_eq!(error.to_string(), "no rule is called `schema/nothing`");
        let SettingsError::UnknownRule { at, .. } = error else {
            unreachable!("{error}");
        };
        assert_eq!((at.line, at.column), (2, 13));
    }

    #[test]
    fn an_excuse_needs_a_reason() {
        let error = Settings::read("test: {ignore: [{rule: schema/*}]}").expect_err("no reason");
        assert_eq!(
            error.to_string(),
            "an entry of `test.ignore` needs `reason`"
        );
    }

    #[test]
    fn a_pattern_covers_its_group() {
        assert!(covers("schema/*", "schema/rule") && covers("*", "owner/duplicate"));
        assert!(!covers("schema/*", "owner/duplicate") && !covers("", "schema/rule"));
    }
}
