//! The path from an object to one of its fields, as people write it: `spec.containers[web].image`.

use portolan_yaml::{Node, Value};

use crate::ReviewError;

/// The way from an object to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldQuery(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A key of a map.
    Key(String),
    /// In brackets: a number or name in a list, or a key of a map that has dots.
    Bracket(String),
}

impl FieldQuery {
    /// Reads a path; items of lists are written by number or name in brackets.
    pub fn parse(text: &str) -> Result<Self, ReviewError> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (name, behind) = inside.split_once(']').ok_or_else(|| {
                    ReviewError::refused(format!("`{text}` has a `[` without its `]`"))
                })?;
                steps.push(Step::Bracket(name.trim_matches(['"', '\'']).to_owned()));
                rest = behind;
            } else {
                rest = rest.strip_prefix('.').unwrap_or(rest);
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                if end == 0 {
                    return Err(ReviewError::refused(format!(
                        "`{text}` is no path of fields"
                    )));
                }
                steps.push(Step::Key(rest[..end].to_owned()));
                rest = &rest[end..];
            }
        }
        Ok(Self(steps))
    }

    /// The value at the end of the way.
    pub fn find<'n>(&self, root: &'n Node) -> Result<&'n Node, ReviewError> {
        let mut node = root;
        for (at, step) in self.0.iter().enumerate() {
            node = step.follow(node).ok_or_else(|| self.lost(at, step, node))?;
        }
        Ok(node)
    }

    /// The value at the end of the way, if it leads anywhere.
    pub fn get<'n>(&self, root: &'n Node) -> Option<&'n Node> {
        self.0.iter().try_fold(root, |node, step| step.follow(node))
    }

    /// The last key, which files are likely to spell out.
    pub fn last_key(&self) -> &str {
        let keys = self.0.iter().rev().map(Step::text);
        keys.clone()
            .find(|key| key.parse::<usize>().is_err())
            .unwrap_or_default()
    }

    fn lost(&self, at: usize, step: &Step, node: &Node) -> ReviewError {
        let before: Vec<&str> = self.0[..at].iter().map(Step::text).collect();
        let place = if before.is_empty() {
            "the object".to_owned()
        } else {
            format!("`{}`", before.join("."))
        };
        let error = ReviewError::refused(format!("{place} has no `{}`", step.text()));
        let keys = keys_of(node);
        if keys.is_empty() {
            return error;
        }
        error.hint(format!("it has {}", keys.join(", ")))
    }
}

impl Step {
    fn text(&self) -> &str {
        match self {
            Self::Key(text) | Self::Bracket(text) => text,
        }
    }

    fn follow<'n>(&self, node: &'n Node) -> Option<&'n Node> {
        let text = self.text();
        match &node.value {
            Value::Map(map) => map.get(text),
            Value::List(list) => match text.parse::<usize>() {
                Ok(index) => list.get(index),
                Err(_) => list
                    .iter()
                    .find(|item| item.get("name").and_then(Node::as_str) == Some(text)),
            },
            Value::Scalar(_) => None,
        }
    }
}

/// What could stand after this point.
fn keys_of(node: &Node) -> Vec<String> {
    match &node.value {
        Value::Map(map) => map.keys().map(|key| format!("`{key}`")).collect(),
        Value::List(list) => list
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let name = item.get("name").and_then(Node::as_str);
                name.map_or_else(|| format!("`[{index}]`"), |name| format!("`[{name}]`"))
            })
            .collect(),
        Value::Scalar(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::{Dialect, parse_one};

    use super::*;

    #[test]
    fn a_path_leads_through_maps_and_lists_by_number_and_name() {
        let text =
            "spec: {containers: [{name: web, image: a}, {name: log, image: b}], on: {a.b: 1}}";
        let node = parse_one(text, Dialect::Kustomize).unwrap();
        let get = |path: &str| {
            let path = FieldQuery::parse(path).unwrap();
            path.get(&node)
                .and_then(Node::as_scalar)
                .map(|scalar| scalar.text.to_string())
        };
        assert_eq!(get("spec.containers[log].image").as_deref(), Some("b"));
        assert_eq!(get("spec.containers[0].image").as_deref(), Some("a"));
        assert_eq!(get("spec.on[a.b]").as_deref(), Some("1"));
        assert_eq!(get("spec.containers[none].image"), None);
    }
}
