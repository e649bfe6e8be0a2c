//! Replacements inside texts: a path that continues after a text field leads into the JSON or YAML in that text.

use portolan_budget::Budget;
use portolan_yaml::{Dialect, Node, Position, Scalar, Style, Tag, Value};

use super::path::{Create, lookup, visit};
use super::replacement::set_text;
use crate::error::Result;
use crate::value::cost::charge_value;
use crate::value::json::{to_compact_json, to_indented_json};
use crate::value::yamltext::{offset, to_block_yaml, to_yaml_like};

/// Sets a value inside the first text field on the path; false when the path does not lead into one.
pub(super) fn set_inside_text(
    target: &mut Node,
    value: &Node,
    path: &[String],
    create: Create,
    budget: &Budget,
) -> Result<bool> {
    let Some(length) = text_field_length(target, path) else {
        return Ok(false);
    };
    let (outer, inner) = path.split_at(length);
    let Ok(Some(field)) = lookup(target, outer) else {
        return Ok(false);
    };
    let new = match field.as_scalar() {
        Some(scalar) => rewrite(&scalar.text, value, inner, create, budget)?,
        None => None,
    };
    let Some(new) = new else {
        return Ok(false);
    };
    let mut is_set = false;
    let set = &mut |field: &mut Node| {
        if let Value::Scalar(scalar) = &mut field.value {
            let style = if scalar.style == Style::Folded {
                Style::Plain
            } else {
                scalar.style
            };
            *scalar = Scalar {
                text: new.clone().into(),
                tag: Tag::Str,
                style,
            };
            is_set = true;
        }
        Ok(())
    };
    Ok(visit_exact(target, outer, set) && is_set)
}

/// How many parts of the path lead to its first scalar, if the path goes on behind it.
fn text_field_length(target: &Node, path: &[String]) -> Option<usize> {
    (1..path.len()).find(|length| {
        let field = path.get(..*length).map(|start| lookup(target, start));
        matches!(field, Some(Ok(Some(field))) if field.as_scalar().is_some())
    })
}

/// The text with the value set inside; `None` when it holds no such field.
fn rewrite(
    text: &str,
    value: &Node,
    path: &[String],
    create: Create,
    budget: &Budget,
) -> Result<Option<String>> {
    // The text is held as a tree, and written down again.
    budget.allocate(text.len() * 2)?;
    let Ok(mut document) = portolan_yaml::parse_one(text, Dialect::Kustomize) else {
        return Ok(None);
    };
    let is_json = text.trim_start().starts_with(['{', '[']);
    let mut is_right = true;
    let mut edits = Vec::new();
    let count = visit(&mut document, path, create, budget, &mut |field| {
        if let Value::Scalar(scalar) = &field.value {
            let (at, old, new) = (field.at, scalar.clone(), crate::value::field::text(value));
            let fits = set_text(field, new.to_string()).is_ok();
            if !fits {
                // In YAML the field keeps its type, which is written before the text.
                is_right &= !is_json;
                field.value = Value::Scalar(Scalar {
                    text: new,
                    ..old.clone()
                });
            }
            edits.push((at, old, field.clone()));
        } else {
            is_right &= value.as_scalar().is_none() || !field.is_null();
            *field = value.clone();
        }
        Ok(())
    });
    let count = match count {
        Err(error) if error.is_exceeded() => return Err(error),
        Ok(count) if count > 0 && is_right => count,
        _ => return Ok(None),
    };
    charge_value(&document, budget, &path.join("."))?;
    if is_json {
        let is_indented = text.contains('\n') && text.contains("  ");
        return Ok(if is_indented {
            to_indented_json(&document)
        } else {
            to_compact_json(&document)
        });
    }
    // Comments are not part of the tree: where there are any, the text is edited in place.
    let edited = (text.contains('#') && edits.len() == count)
        .then(|| edit(text, edits))
        .flatten();
    let whole = edited.unwrap_or_else(|| to_yaml_like(&document, text));
    Ok(Some(whole.trim().to_owned()))
}

/// Puts new scalars in place of old ones, the last one first; `None` where one does not fit on its line.
fn edit(text: &str, mut edits: Vec<(Position, Scalar, Node)>) -> Option<String> {
    let mut result = text.to_owned();
    edits.sort_by_key(|(at, ..)| (at.line, at.column));
    for (at, old, new) in edits.into_iter().rev() {
        let start = offset(&result, at)?;
        let length = token_length(result.get(start..)?, &old)?;
        let printed = to_block_yaml(&new);
        let token = printed
            .strip_suffix('\n')
            .filter(|token| !token.contains('\n'))?;
        result.replace_range(start..start + length, token);
    }
    Some(result)
}

/// How many bytes a scalar takes in the file; only those on one line can be told.
fn token_length(text: &str, scalar: &Scalar) -> Option<usize> {
    match scalar.style {
        Style::Plain => text
            .starts_with(scalar.text.as_str())
            .then_some(scalar.text.len()),
        Style::Single => text.strip_prefix('\'')?.find('\'').map(|end| end + 2),
        Style::Double if !scalar.text.contains(['"', '\\']) => {
            text.strip_prefix('"')?.find('"').map(|end| end + 2)
        }
        _ => None,
    }
}

/// Follows a path of exact parts to change what is there.
fn visit_exact(
    node: &mut Node,
    path: &[String],
    set: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> bool {
    let Some((part, rest)) = path.split_first() else {
        return set(node).is_ok();
    };
    let next = match &mut node.value {
        Value::Map(map) => map.get_mut(part),
        Value::List(list) => {
            let position = position(list.iter().as_slice(), part);
            position.and_then(|index| list.items_mut().get_mut(index))
        }
        Value::Scalar(_) => None,
    };
    next.is_some_and(|next| visit_exact(next, rest, set))
}

fn position(items: &[Node], part: &str) -> Option<usize> {
    if part == "-" {
        return items.len().checked_sub(1);
    }
    if let Ok(index) = part.parse::<usize>() {
        return Some(index);
    }
    let inner = part.strip_prefix('[')?.strip_suffix(']')?;
    let (name, value) = inner.split_once('=')?;
    items.iter().position(|item| match name {
        "" => crate::value::field::text(item).as_str() == value,
        _ => item
            .get(name)
            .is_some_and(|found| crate::value::field::text(found).as_str() == value),
    })
}
