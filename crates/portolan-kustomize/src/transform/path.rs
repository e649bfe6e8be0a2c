//! Field paths with dots, as replacements and variables write them: `spec.containers.[name=web].image`, `a.*.b`, `a.0`.

use portolan_budget::Budget;
use portolan_yaml::{Node, Style, Text, Value};

use crate::error::{Error, Result};
use crate::value::cost::PATTERN_STEPS;
use crate::value::field::{plain, text, wrong_shape};

/// What matching one value against a pattern costs.
const STEPS_PER_MATCH: u64 = 8;

/// What is made where a path leads to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Create {
    /// Nothing.
    No,
    /// A scalar without a type of its own.
    Scalar,
    /// An empty list.
    List,
    /// An empty map.
    Map,
}

impl Create {
    /// The kind that holds such a value.
    pub(super) fn like(value: &Node) -> Self {
        match &value.value {
            Value::Scalar(_) => Self::Scalar,
            Value::List(_) => Self::List,
            Value::Map(_) => Self::Map,
        }
    }

    /// What a field is made as, given the part of the path that follows it.
    fn node_before(self, next: Option<&String>) -> Node {
        match next {
            Some(next) if is_list_part(next) || index(next).is_some() => Node::list(),
            Some(_) => Node::map(),
            None => match self {
                Self::List => Node::list(),
                Self::Map => Node::map(),
                Self::No | Self::Scalar => plain(Text::default()),
            },
        }
    }
}

/// Splits a path at dots; `\.` keeps one, and brackets hold theirs.
pub(super) fn split(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut pieces = path.split('.').peekable();
    if path.starts_with('.') && path.len() > 1 {
        pieces.next();
    }
    for piece in pieces {
        match parts.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push('.');
                last.push_str(piece);
            }
            _ => parts.push(piece.to_owned()),
        }
    }
    join_brackets(parts)
}

fn join_brackets(parts: Vec<String>) -> Vec<String> {
    let mut result = Vec::new();
    let mut parts = parts.into_iter();
    while let Some(mut part) = parts.next() {
        if part.starts_with('[') && !part.ends_with(']') {
            for more in parts.by_ref() {
                part.push('.');
                part.push_str(&more);
                if more.ends_with(']') {
                    break;
                }
            }
            if !part.contains('=') {
                part = part.trim_matches(['[', ']']).into();
            }
        }
        result.push(part);
    }
    result
}

fn is_list_part(part: &str) -> bool {
    part.starts_with('[') && part.ends_with(']')
}

fn index(part: &str) -> Option<usize> {
    part.parse::<i64>()
        .ok()
        .and_then(|index| usize::try_from(index).ok())
}

fn name_and_value(part: &str) -> Result<(&str, &str)> {
    let inner = part.strip_suffix(']').unwrap_or(part);
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    inner.split_once('=').ok_or_else(|| {
        Error::refused("list path element must contain fieldName=fieldValue for element to match")
    })
}

/// The value at the end of a path without wildcards; a part that does not fit the tree is an error.
pub(super) fn lookup<'a>(node: &'a Node, path: &[String]) -> Result<Option<&'a Node>> {
    let mut node = node;
    for part in path
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
    {
        match step(node, part)? {
            Some(next) => node = next,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

fn step<'a>(node: &'a Node, part: &str) -> Result<Option<&'a Node>> {
    if let Ok(index) = part.parse::<i64>() {
        let index = usize::try_from(index)
            .map_err(|_| Error::refused(format!("array index {index} cannot be negative")))?;
        return Ok(items(node)?.get(index));
    }
    match part {
        "-" => Ok(items(node)?.last()),
        "*" => Err(Error::refused("wildcard is not supported here")),
        _ if is_list_part(part) => {
            let (name, value) = name_and_value(part)?;
            let is_match = |item: &&Node| match name {
                "" => text(item).as_str() == value,
                _ => item
                    .get(name)
                    .is_some_and(|found| text(found).as_str() == value),
            };
            Ok(items(node)?.iter().find(is_match))
        }
        _ if node.is_null() => Ok(None),
        _ => match node.as_map() {
            Some(map) => Ok(map.get(part)),
            None => Err(wrong_shape("MappingNode", node)),
        },
    }
}

fn items(node: &Node) -> Result<&[Node]> {
    match &node.value {
        Value::List(list) => Ok(list.iter().as_slice()),
        _ if node.is_null() => Ok(&[]),
        _ => Err(wrong_shape("SequenceNode", node)),
    }
}

/// Calls `set` for everything a path with wildcards and patterns leads to; says how often.
pub(super) fn visit(
    node: &mut Node,
    path: &[String],
    create: Create,
    budget: &Budget,
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<usize> {
    let Some((part, rest)) = path.split_first() else {
        set(node)?;
        return Ok(1);
    };
    if let Some(index) = index(part) {
        return visit_index(node, index, rest, create, budget, set);
    }
    if is_list_part(part) {
        return visit_matching(node, part, rest, create, budget, set);
    }
    if part == "*" {
        let mut count = 0;
        let items = items_mut(node)?;
        budget.step(items.len() as u64)?;
        for item in items {
            count += visit(item, rest, create, budget, set)?;
        }
        return Ok(count);
    }
    visit_field(node, part, rest, create, budget, set)
}

fn visit_field(
    node: &mut Node,
    part: &str,
    rest: &[String],
    create: Create,
    budget: &Budget,
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<usize> {
    if node.is_null() && create == Create::No {
        return Ok(0);
    }
    if node.as_map().is_none() {
        return Err(wrong_shape("MappingNode", node));
    }
    let Some(map) = node.as_map_mut() else {
        return Ok(0);
    };
    if !map.contains_key(part) {
        if create == Create::No {
            return Ok(0);
        }
        map.insert(part, create.node_before(rest.first()));
    }
    let Some(field) = map.get_mut(part) else {
        return Ok(0);
    };
    if field.as_scalar().is_some() && !rest.is_empty() {
        return Err(Error::refused(format!(
            "`{part}` is a scalar, and the path goes on"
        )));
    }
    visit(field, rest, create, budget, set)
}

fn visit_index(
    node: &mut Node,
    index: usize,
    rest: &[String],
    create: Create,
    budget: &Budget,
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<usize> {
    let items = items_mut(node)?;
    if items.len() == index && create != Create::No {
        items.push(create.node_before(rest.first()));
    }
    let count = items.len();
    match items.get_mut(index) {
        Some(item) => visit(item, rest, create, budget, set),
        None => Err(Error::refused(format!(
            "index {index} specified but only {count} elements found"
        ))),
    }
}

fn visit_matching(
    node: &mut Node,
    part: &str,
    rest: &[String],
    create: Create,
    budget: &Budget,
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<usize> {
    let (name, pattern) = name_and_value(part)?;
    budget.step(PATTERN_STEPS)?;
    let regex = crate::value::regexp::compile(pattern)?;
    let mut count = 0;
    let items = items_mut(node)?;
    budget.step(items.len() as u64 * STEPS_PER_MATCH)?;
    for item in items {
        if name.is_empty() {
            if regex.is_match(&printed(item)) {
                set(item)?;
                count += 1;
            }
        } else if item
            .get(name)
            .is_some_and(|value| regex.is_match(&printed(value)))
        {
            count += visit(item, rest, create, budget, set)?;
        }
    }
    if count > 0 || create == Create::No {
        return Ok(count);
    }
    let items = items_mut(node)?;
    let mut item = plain(pattern);
    if !name.is_empty() {
        let value = std::mem::replace(&mut item, Node::map());
        if let Some(map) = item.as_map_mut() {
            map.insert(name, value);
        }
    }
    items.push(item);
    let Some(item) = items.last_mut() else {
        return Ok(0);
    };
    if name.is_empty() {
        set(item)?;
        return Ok(1);
    }
    visit(item, rest, create, budget, set)
}

/// How a value looks in the file: quotes are part of what patterns see.
fn printed(node: &Node) -> String {
    match &node.value {
        Value::Scalar(scalar) => match scalar.style {
            Style::Double => format!("\"{}\"", scalar.text),
            Style::Single => format!("'{}'", scalar.text),
            _ => scalar.text.trim().to_owned(),
        },
        _ => String::new(),
    }
}

fn items_mut(node: &mut Node) -> Result<&mut Vec<Node>> {
    if node.as_list().is_none() {
        return Err(wrong_shape("SequenceNode", node));
    }
    let list = node.as_list_mut().expect("checked to be a list just above");
    Ok(list.items_mut())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_brackets_and_behind_backslashes_stay() {
        assert_eq!(
            split(r"metadata.annotations.a\.b/c"),
            ["metadata", "annotations", "a.b/c"]
        );
        assert_eq!(split("x.[name=a.b].c"), ["x", "[name=a.b]", "c"]);
        assert_eq!(split("x.[a.b].c"), ["x", "a.b", "c"]);
        assert_eq!(split("a.0.*"), ["a", "0", "*"]);
    }
}
