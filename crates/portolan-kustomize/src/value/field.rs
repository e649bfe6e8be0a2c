//! Reads and writes fields of a resource as kyaml does: what counts as missing, and which type a new text gets.

use portolan_yaml::{Entry, Key, Map, Node, Position, Scalar, Style, Tag, Text, Value};

use crate::error::{Error, Result};

/// The text of a scalar; empty for anything else.
pub(crate) fn text(node: &Node) -> Text {
    node.as_scalar()
        .map(|scalar| scalar.text.clone())
        .unwrap_or_default()
}

/// The text of a scalar that is not null.
pub(crate) fn present_text(node: Option<&Node>) -> Text {
    node.filter(|node| !is_blank(node))
        .map(text)
        .unwrap_or_default()
}

/// A map of entries whose keys are known to differ: they are not looked for among the others.
pub(crate) fn distinct_map<K: Into<Key>>(entries: impl IntoIterator<Item = (K, Node)>) -> Node {
    let entries = entries.into_iter().map(|(key, value)| Entry {
        key: key.into(),
        value,
    });
    Node::new(Value::Map(Map::from_entries(entries.collect())))
}

/// Null, an empty map or an empty list.
pub(crate) fn is_blank(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => scalar.tag == Tag::Null,
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
    }
}

/// The kind of a node for messages.
pub(crate) fn shape(node: &Node) -> &'static str {
    match &node.value {
        Value::Scalar(_) => "ScalarNode",
        Value::List(_) => "SequenceNode",
        Value::Map(_) => "MappingNode",
    }
}

/// The refusal of a node of the wrong kind.
pub(crate) fn wrong_shape(expected: &str, node: &Node) -> Error {
    Error::refused(format!(
        "wrong node kind: expected {expected} but got {}",
        shape(node)
    ))
}

/// What type a new text has: that of the writer, or what a plain text reads as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewTag {
    /// A string whatever it looks like.
    Str,
    /// A whole number, unless the field was quoted before.
    Int,
    /// What the text reads as when it is printed without quotes.
    AsRead,
}

/// The place of scalars that have no type of their own yet: a text put into them later is typed anew.
pub(crate) const UNTYPED: Position = Position { line: 0, column: 1 };

/// Puts a new text into a scalar; the way the old one was written stays, and with it whether a number can be one.
pub(crate) fn set_scalar(node: &mut Node, new: impl Into<Text>, tag: NewTag) -> Result<()> {
    let style = match &node.value {
        Value::Scalar(scalar) if scalar.tag == Tag::Null => Style::Plain,
        Value::Scalar(scalar) => scalar.style,
        _ => return Err(wrong_shape("ScalarNode", node)),
    };
    let text = new.into();
    let place = if tag == NewTag::AsRead {
        UNTYPED
    } else {
        Position::default()
    };
    let tag = match tag {
        _ if style != Style::Plain => Tag::Str,
        NewTag::Str => Tag::Str,
        NewTag::Int => Tag::Int,
        NewTag::AsRead => plain_tag(&text),
    };
    node.value = Value::Scalar(Scalar { text, tag, style });
    node.at = place;
    Ok(())
}

/// A new scalar printed without quotes: it is what its text reads as.
pub(crate) fn plain(text: impl Into<Text>) -> Node {
    let text = text.into();
    let tag = plain_tag(&text);
    let value = Value::Scalar(Scalar {
        text,
        tag,
        style: Style::Plain,
    });
    Node { value, at: UNTYPED }
}

/// What a plain text reads as in the dialect of kustomize.
pub(crate) fn plain_tag(text: &str) -> Tag {
    // Most texts are names; only these beginnings can read as anything else.
    let is_name = !text.starts_with(|first: char| "0123456789+-.~tTfFnN<".contains(first));
    if is_name || text.contains([' ', ':', '#', '\n']) {
        return Tag::Str;
    }
    let read = portolan_yaml::parse_one(text, portolan_yaml::Dialect::Kustomize);
    match read.map(|node| node.value) {
        Ok(Value::Scalar(Scalar {
            tag,
            style: Style::Plain,
            ..
        })) => tag,
        _ => Tag::Str,
    }
}

/// Sets a field as kyaml's field setter does: null removes it, and a value that takes the place of a quoted scalar is
/// a string from then on.
pub(crate) fn set_field(node: &mut Node, name: &str, mut value: Node) -> Result<()> {
    let found = shape(node);
    let Some(map) = node.as_map_mut() else {
        return Err(Error::refused(format!(
            "wrong node kind: expected MappingNode but got {found}"
        )));
    };
    if value.is_null() {
        map.remove(name);
        return Ok(());
    }
    match map.get(name) {
        Some(old) => adopt_style(&mut value, old),
        None => check_new_key(name)?,
    }
    map.insert(name, value);
    Ok(())
}

/// Takes over how the old scalar was written.
pub(crate) fn adopt_style(value: &mut Node, old: &Node) {
    let (Value::Scalar(new), Value::Scalar(old)) = (&mut value.value, &old.value) else {
        return;
    };
    new.style = old.style;
    if old.style != Style::Plain {
        new.tag = Tag::Str;
    }
}

/// The field of a map, made by `make` where it is missing.
pub(crate) fn field_or_create<'a>(
    node: &'a mut Node,
    name: &str,
    make: impl FnOnce() -> Node,
) -> Result<&'a mut Node> {
    if node.as_map().is_none() {
        return Err(wrong_shape("MappingNode", node));
    }
    let map = node.as_map_mut().expect("checked to be a map just above");
    Ok(map.get_or_insert_with(name, make))
}

/// Sets a string in `metadata`, which is made where it is missing.
pub(crate) fn set_metadata(node: &mut Node, name: &str, value: impl Into<Text>) -> Result<()> {
    let metadata = field_or_create(node, "metadata", Node::map)?;
    let value = Node::string(value);
    set_field(metadata, name, value)
}

/// Replaces `metadata.labels` or `metadata.annotations` by plain strings; none removes the field.
pub(crate) fn set_metadata_map(
    node: &mut Node,
    name: &str,
    mut pairs: Vec<(Text, Text)>,
) -> Result<()> {
    let metadata = field_or_create(node, "metadata", Node::map)?;
    let found = shape(metadata);
    let Some(map) = metadata.as_map_mut() else {
        return Err(Error::refused(format!(
            "wrong node kind: expected MappingNode but got {found}"
        )));
    };
    map.remove(name);
    if pairs.is_empty() {
        return Ok(());
    }
    pairs.sort();
    let mut strings = Node::map();
    if let Some(strings) = strings.as_map_mut() {
        for (key, value) in pairs {
            check_new_key(&key)?;
            strings.insert(key, Node::string(value));
        }
    }
    map.insert(name, strings);
    Ok(())
}

/// kyaml writes new keys without quotes, so that `true` becomes a boolean key, which nothing can print.
pub(crate) fn check_new_key(key: &str) -> Result<()> {
    if key.is_empty() || key == "<<" || plain_tag(key) != Tag::Str {
        return Err(Error::refused(format!(
            "unsupported type: map[interface {{}}]interface {{}}: key `{key}` is not a string without quotes"
        )));
    }
    Ok(())
}

/// The pairs of `metadata.labels` or `metadata.annotations`, every value as text.
pub(crate) fn metadata_pairs(node: &Node, name: &str) -> Vec<(Text, Text)> {
    let Some(map) = node.at_path(&["metadata", name]).and_then(Node::as_map) else {
        return Vec::new();
    };
    map.iter()
        .map(|entry| (entry.key.scalar.text.clone(), text(&entry.value)))
        .collect()
}
