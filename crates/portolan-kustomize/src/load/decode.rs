//! Reads configuration as Go's JSON decoder does: field names in any case, null as absent, no type conversion.

use portolan_yaml::{Node, Tag, Text, Value};

use crate::error::{Error, Result};

/// How unknown fields and unquoted values are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Kustomization files: unknown fields and wrong types are errors.
    Strict,
    /// A kustomization file that somebody else has decoded and written again, as Flux does: what it did not know is gone.
    KnownFields,
    /// Plugin configurations: unknown fields are ignored, and numbers and booleans pass as text.
    Lenient,
}

/// The fields of a map, by their known names.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    what: &'static str,
    strictness: Strictness,
    found: Vec<(&'static str, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// Reads a map whose fields are all among `names`.
    pub(crate) fn read(
        node: &'a Node,
        what: &'static str,
        names: &[&'static str],
        strictness: Strictness,
    ) -> Result<Self> {
        let mut fields = Self {
            what,
            strictness,
            found: Vec::new(),
        };
        if node.is_null() {
            return Ok(fields);
        }
        let Some(map) = node.as_map() else {
            return Err(Error::field(
                what,
                format!("expected a map, found {}", describe(node)),
            ));
        };
        for entry in map {
            let key = entry.key.as_str();
            let exact = names.iter().find(|name| **name == key);
            let known = exact.or_else(|| names.iter().find(|name| name.eq_ignore_ascii_case(key)));
            match known {
                Some(_) if entry.value.is_null() => {}
                Some(name) => fields.found.push((name, &entry.value)),
                None if strictness != Strictness::Strict => {}
                None => return Err(Error::field(what, format!("unknown field `{key}`"))),
            }
        }
        Ok(fields)
    }

    pub(crate) fn strictness(&self) -> Strictness {
        self.strictness
    }

    /// A field that is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Node> {
        self.found
            .iter()
            .rev()
            .find(|(known, _)| *known == name)
            .map(|(_, node)| *node)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A text; empty where it is missing.
    pub(crate) fn text(&self, name: &str) -> Result<Text> {
        match self.get(name) {
            Some(node) => self.as_text(node, name),
            None => Ok(Text::default()),
        }
    }

    fn as_text(&self, node: &Node, name: &str) -> Result<Text> {
        match &node.value {
            Value::Scalar(scalar) if scalar.tag == Tag::Null => Ok(Text::default()),
            Value::Scalar(scalar)
                if is_text(scalar.tag) || self.strictness == Strictness::Lenient =>
            {
                Ok(scalar.text.clone())
            }
            _ => Err(self.wrong(name, "string", node)),
        }
    }

    /// A boolean; false where it is missing.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(node) => node.as_bool().ok_or_else(|| self.wrong(name, "bool", node)),
        }
    }

    /// A whole number.
    pub(crate) fn int(&self, name: &str) -> Result<Option<i64>> {
        let Some(node) = self.get(name) else {
            return Ok(None);
        };
        let number = node
            .as_scalar()
            .filter(|scalar| scalar.tag == Tag::Int || scalar.tag == Tag::Float);
        let parsed = number.and_then(|scalar| parse_int(&scalar.text));
        parsed
            .map(Some)
            .ok_or_else(|| self.wrong(name, "int", node))
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<Text>> {
        list(self.get(name), name)?
            .map(|node| self.as_text(node, name))
            .collect()
    }

    /// A map of texts, sorted by key.
    pub(crate) fn pairs(&self, name: &str) -> Result<Vec<(Text, Text)>> {
        let Some(node) = self.get(name) else {
            return Ok(Vec::new());
        };
        let Some(map) = node.as_map() else {
            return Err(self.wrong(name, "map[string]string", node));
        };
        let mut pairs: Vec<(Text, Text)> = Vec::new();
        for entry in map {
            pairs.push((
                entry.key.scalar.text.clone(),
                self.as_text(&entry.value, name)?,
            ));
        }
        pairs.sort();
        Ok(pairs)
    }

    fn wrong(&self, name: &str, expected: &str, node: &Node) -> Error {
        let problem = format!(
            "line {}: cannot use {} as field `{name}` of type {expected}",
            node.at.line,
            describe(node)
        );
        Error::field(self.what, problem)
    }
}

/// The items of a list field; none where it is missing.
pub(crate) fn list<'a>(node: Option<&'a Node>, name: &str) -> Result<std::slice::Iter<'a, Node>> {
    match node {
        None => Ok([].iter()),
        Some(node) if node.is_null() => Ok([].iter()),
        Some(node) => match node.as_list() {
            Some(list) => Ok(list.iter()),
            None => Err(Error::field(
                name,
                format!("expected a list, found {}", describe(node)),
            )),
        },
    }
}

/// Texts and what JSON makes texts of.
fn is_text(tag: Tag) -> bool {
    matches!(tag, Tag::Str | Tag::Timestamp | Tag::Binary)
}

fn parse_int(text: &str) -> Option<i64> {
    let plain = text.replace('_', "");
    plain.parse().ok().or_else(|| {
        let float: f64 = plain.parse().ok()?;
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
    })
}

fn describe(node: &Node) -> &'static str {
    match &node.value {
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        Value::Scalar(scalar) => match scalar.tag {
            Tag::Null => "null",
            Tag::Bool => "a boolean",
            Tag::Int | Tag::Float => "a number",
            _ => "a text",
        },
    }
}
