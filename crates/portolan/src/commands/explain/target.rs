//! The object and field that a user names.

use portolan_object::nearest;
use portolan_yaml::{Node, Value};

use crate::error::CommandError;
use crate::inventory::{Placed, kind_names};

/// An object that was named, and perhaps a field of it.
pub(super) struct Target<'a> {
    pub(super) placed: &'a Placed<'a>,
    pub(super) field: Option<FieldPath>,
}

/// The way from an object to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A key of a map.
    Key(String),
    /// In brackets: a number or name in a list, or a key of a map that has dots.
    Bracket(String),
}

impl<'a> Target<'a> {
    /// The objects that `KIND/[NAMESPACE/]NAME[.FIELD]` names, one for each cluster that has it.
    pub(super) fn find(
        text: &str,
        namespace: Option<&str>,
        objects: &'a [Placed<'a>],
    ) -> Result<Vec<Self>, CommandError> {
        let (kind, rest) = text.split_once('/').ok_or_else(|| {
            CommandError::usage(format!("`{text}` names no object"))
                .hint("write KIND/NAME, as in `deploy/web` or `deploy/web.spec.replicas`")
        })?;
        let kinds = kind_names(objects);
        let (namespace, rest) = match namespace_in(rest) {
            Some((namespace, rest)) => (Some(namespace), rest),
            None => (namespace, rest),
        };
        let of_kind: Vec<&Placed<'_>> = objects
            .iter()
            .filter(|placed| kinds.is(kind, &placed.id.gvk))
            .filter(|placed| namespace.is_none_or(|wanted| placed.id.namespace == wanted))
            .collect();
        // Names have dots too: the longest name that an object has is meant.
        let longest = of_kind
            .iter()
            .filter(|placed| is_name_in(rest, &placed.id.name))
            .map(|placed| placed.id.name.len())
            .max();
        let Some(length) = longest else {
            return Err(not_there(kind, rest, &of_kind));
        };
        let field = match rest[length..].trim_start_matches('.') {
            "" => None,
            field => Some(FieldPath::parse(field)?),
        };
        let named: Vec<&Placed<'_>> = of_kind
            .into_iter()
            .filter(|placed| placed.id.name == rest[..length])
            .collect();
        refuse_several(&named, text)?;
        Ok(named
            .into_iter()
            .map(|placed| Self {
                placed,
                field: field.clone(),
            })
            .collect())
    }
}

/// The namespace before a slash; a slash in a field's name comes after a dot or bracket, which no namespace has.
fn namespace_in(text: &str) -> Option<(&str, &str)> {
    text.split_once('/')
        .filter(|(namespace, _)| !namespace.contains(['.', '[']))
}

/// Whether the text is the name, or the name and a field.
fn is_name_in(text: &str, name: &str) -> bool {
    let rest = text.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn not_there(kind: &str, rest: &str, of_kind: &[&Placed<'_>]) -> CommandError {
    let error = CommandError::usage(format!("no object is `{kind}/{rest}`"));
    let wanted = [rest.split('.').next().unwrap_or(rest).to_owned()];
    match nearest(&wanted, of_kind.iter(), |placed| placed.id.name.as_str()) {
        Some(placed) => error.hint(format!(
            "there is `{kind}/{}` in {}",
            placed.id.name, placed.id.namespace
        )),
        None => error.hint("`portolan get objects` lists all objects with their kinds"),
    }
}

/// One name in two namespaces of a cluster means that the user has to say which.
fn refuse_several(named: &[&Placed<'_>], text: &str) -> Result<(), CommandError> {
    let mut namespaces: Vec<&str> = named
        .iter()
        .map(|placed| placed.id.namespace.as_str())
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    if namespaces.len() < 2 {
        return Ok(());
    }
    let error = CommandError::usage(format!("`{text}` is in several namespaces"));
    Err(error.hint(format!("choose one: -n {}", namespaces.join(", -n "))))
}

// === impl FieldPath ===

impl FieldPath {
    fn parse(text: &str) -> Result<Self, CommandError> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (name, behind) = inside.split_once(']').ok_or_else(|| {
                    CommandError::usage(format!("`{text}` has a `[` without its `]`"))
                })?;
                steps.push(Step::Bracket(name.trim_matches(['"', '\'']).to_owned()));
                rest = behind;
            } else {
                rest = rest.strip_prefix('.').unwrap_or(rest);
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                if end == 0 {
                    return Err(CommandError::usage(format!(
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
    pub(super) fn find<'n>(&self, root: &'n Node) -> Result<&'n Node, CommandError> {
        let mut node = root;
        for (at, step) in self.0.iter().enumerate() {
            node = step.follow(node).ok_or_else(|| self.lost(at, step, node))?;
        }
        Ok(node)
    }

    /// The value at the end of the way, if it leads anywhere.
    pub(super) fn get<'n>(&self, root: &'n Node) -> Option<&'n Node> {
        self.0.iter().try_fold(root, |node, step| step.follow(node))
    }

    /// The last key, which files are likely to spell out.
    pub(super) fn last_key(&self) -> &str {
        let keys = self.0.iter().rev().map(Step::text);
        keys.clone()
            .find(|key| key.parse::<usize>().is_err())
            .unwrap_or_default()
    }

    fn lost(&self, at: usize, step: &Step, node: &Node) -> CommandError {
        let before: Vec<&str> = self.0[..at].iter().map(Step::text).collect();
        let place = if before.is_empty() {
            "the object".to_owned()
        } else {
            format!("`{}`", before.join("."))
        };
        let error = CommandError::usage(format!("{place} has no `{}`", step.text()));
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
            let path = FieldPath::parse(path).unwrap();
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
