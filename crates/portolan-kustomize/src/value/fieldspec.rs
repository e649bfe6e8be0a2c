//! Visits the fields that a field spec selects.

use std::borrow::Cow;

use portolan_yaml::{Node, Value};

use crate::config::FieldSpec;
use crate::error::{Error, Result};
use crate::load::read::MAX_DEPTH;
use crate::resource::id::Gvk;
use crate::value::field::field_or_create;

/// What is made where the last field of a path is missing, if the spec asks for creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Nothing: what is missing stays missing.
    Leave,
    /// An empty scalar.
    Scalar,
    /// An empty map.
    Map,
}

/// Calls `set` for every field of the object that the spec means, if it means the object's type at all.
pub(crate) fn visit(
    object: &mut Node,
    gvk: &Gvk,
    spec: &FieldSpec,
    missing: Missing,
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<()> {
    if !gvk.is_selected(&spec.gvk) {
        return Ok(());
    }
    let missing = if spec.create { missing } else { Missing::Leave };
    // Most paths are too short to hold that many names, and need not be counted.
    if spec.path.len() > MAX_DEPTH && spec.path.matches('/').count() >= MAX_DEPTH {
        return Err(Error::TooDeep(spec.path.to_string()));
    }
    walk(object, Some(&spec.path), missing, set)
}

/// Follows the rest of a path; `None` is its end.
pub(crate) fn walk(
    node: &mut Node,
    path: Option<&str>,
    missing: Missing,
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<()> {
    let Some(path) = path else { return set(node) };
    if node.is_null() {
        return Ok(());
    }
    match &mut node.value {
        Value::Scalar(_) => Err(Error::refused("expected sequence or mapping node")),
        Value::List(list) if list.is_empty() => Ok(()),
        Value::List(list) => list
            .items_mut()
            .iter_mut()
            .try_for_each(|item| walk(item, Some(path), missing, set)),
        Value::Map(_) => walk_map(node, path, missing, set),
    }
}

fn walk_map(
    node: &mut Node,
    path: &str,
    missing: Missing,
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<()> {
    let (segment, rest) = split_segment(path);
    let (name, is_list) = match segment.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (segment.as_ref(), false),
    };
    if name.is_empty() {
        return Err(Error::refused("cannot set or create an empty field name"));
    }
    if name == "*" {
        return Err(Error::refused("wildcard is not supported in PathGetter"));
    }
    let make: Option<fn() -> Node> = match (missing, rest) {
        _ if is_list => None,
        (Missing::Leave, _) => None,
        (Missing::Scalar, None) => Some(|| Node::string("")),
        _ => Some(Node::map),
    };
    let field = match make {
        Some(make) => field_or_create(node, name, make)?,
        None => match node.get_mut(name) {
            Some(field) => field,
            None => return Ok(()),
        },
    };
    if field.is_null() {
        if is_list {
            *field = Node::list();
        } else if let Some(make) = make {
            *field = make();
        }
    }
    walk(field, rest, missing, set)
}

/// The first name of a path and what follows it.
fn split_segment(path: &str) -> (Cow<'_, str>, Option<&str>) {
    let path = path.strip_prefix('/').unwrap_or(path);
    let Some(end) = path.find('/') else {
        return (path.into(), None);
    };
    if !path[..end].ends_with('\\') {
        return (path[..end].into(), Some(&path[end + 1..]));
    }
    let mut name = String::new();
    let mut rest = Some(path);
    while let Some(text) = rest {
        let (part, after) = match text.split_once('/') {
            Some((part, after)) => (part, Some(after)),
            None => (text, None),
        };
        rest = after;
        match part.strip_suffix('\\') {
            Some(part) if after.is_some() => {
                name.push_str(part);
                name.push('/');
            }
            _ => {
                name.push_str(part);
                break;
            }
        }
    }
    (name.into(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_keeps_a_slash_in_a_name() {
        let (name, rest) = split_segment(r"ingress.kubernetes.io\/auth-secret");
        assert_eq!(
            (name.as_ref(), rest),
            ("ingress.kubernetes.io/auth-secret", None)
        );
        let (name, rest) = split_segment(r"a\/b/c/d");
        assert_eq!((name.as_ref(), rest), ("a/b", Some("c/d")));
    }
}
