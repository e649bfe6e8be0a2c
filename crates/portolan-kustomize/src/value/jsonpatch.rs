//! JSON patches (RFC 6902) with the extensions of the Go library that kustomize uses: `replace` adds a missing key,
//! indices may be negative.

use portolan_budget::Budget;
use portolan_yaml::{
    Dialect, Node, Position, Scalar, Style, Tag, Value, parse_one, write_kustomize,
};

use crate::error::{Error, Result};
use crate::value::cost::{charge_value, charge_walk};
use crate::value::field::plain_tag;

/// A patch: its operations in order.
#[derive(Debug, Clone)]
pub(crate) struct JsonPatch(Vec<Operation>);

#[derive(Debug, Clone)]
struct Operation {
    kind: String,
    path: Option<String>,
    from: Option<String>,
    value: Option<Node>,
}

impl JsonPatch {
    /// Reads the operations; `None` when the text is null.
    pub(crate) fn read(document: &Node) -> Result<Option<Self>> {
        if document.is_null() {
            return Ok(None);
        }
        let Some(list) = document.as_list() else {
            return Err(Error::refused("a JSON patch is a list of operations"));
        };
        let operations = list
            .iter()
            .map(read_operation)
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Self(operations)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies all operations; a failing one leaves an error and no result.
    pub(crate) fn apply(&self, document: &mut Node, budget: &Budget) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|operation| operation.apply(document, budget))
    }
}

fn read_operation(node: &Node) -> Result<Operation> {
    if node.as_map().is_none() {
        return Err(Error::refused("an operation of a JSON patch is a map"));
    }
    let text = |name| node.get(name).and_then(Node::as_str).map(str::to_owned);
    Ok(Operation {
        kind: text("op").unwrap_or_else(|| "unknown".to_owned()),
        path: text("path"),
        from: text("from"),
        value: node.get("value").cloned(),
    })
}

impl Operation {
    fn apply(&self, document: &mut Node, budget: &Budget) -> Result<()> {
        match self.kind.as_str() {
            "add" => self.add(document, self.new_value(), budget),
            "remove" => self.remove(document, self.path()?, budget).map(drop),
            "replace" => self.replace(document, budget),
            "move" => {
                let value = self.remove(document, self.from()?, budget)?;
                self.add(document, value, budget)
            }
            "copy" => {
                let value = self.get(document, self.from()?, budget)?;
                self.add(document, value, budget)
            }
            "test" => self.test(document, budget),
            other => Err(Error::refused(format!("unexpected kind: `{other}`"))),
        }
    }

    fn path(&self) -> Result<&str> {
        self.path
            .as_deref()
            .ok_or_else(|| Error::refused(format!("{} operation has no path", self.kind)))
    }

    fn from(&self) -> Result<&str> {
        self.from
            .as_deref()
            .ok_or_else(|| Error::refused(format!("{} operation has no from", self.kind)))
    }

    fn new_value(&self) -> Node {
        self.value.clone().unwrap_or_else(Node::null)
    }

    fn missing(&self, path: &str) -> Error {
        Error::refused(format!(
            "{} operation does not apply: doc is missing path: `{path}`",
            self.kind
        ))
    }

    /// Charges a value that is about to be put at the end of a path.
    fn charge(path: &str, value: &Node, budget: &Budget) -> Result<()> {
        let cost = charge_value(value, budget, path)?;
        cost.check_depth(path.matches('/').count(), path)
    }

    fn find<'a>(
        &self,
        document: &'a mut Node,
        path: &str,
        budget: &Budget,
    ) -> Result<(&'a mut Node, String)> {
        find(document, path, budget)?.ok_or_else(|| self.missing(path))
    }

    fn add(&self, document: &mut Node, value: Node, budget: &Budget) -> Result<()> {
        let path = self.path()?;
        Self::charge(path, &value, budget)?;
        let (parent, key) = self.find(document, path, budget)?;
        match &mut parent.value {
            Value::Map(map) => map.insert(key, value),
            Value::List(list) => {
                let index = if key == "-" {
                    list.len()
                } else {
                    index(&key, list.len() + 1)?
                };
                list.items_mut().insert(index, value);
            }
            Value::Scalar(_) => return Err(self.missing(path)),
        }
        Ok(())
    }

    fn remove(&self, document: &mut Node, path: &str, budget: &Budget) -> Result<Node> {
        let (parent, key) = self.find(document, path, budget)?;
        match &mut parent.value {
            Value::Map(map) => map.remove(&key).ok_or_else(|| {
                Error::refused(format!("unable to remove nonexistent key: `{path}`"))
            }),
            Value::List(list) => {
                let index = index(&key, list.len())?;
                Ok(list.items_mut().remove(index))
            }
            Value::Scalar(_) => Err(self.missing(path)),
        }
    }

    fn replace(&self, document: &mut Node, budget: &Budget) -> Result<()> {
        let path = self.path()?;
        if let Some(value) = &self.value {
            Self::charge(path, value, budget)?;
        }
        if path.is_empty() {
            let value = self.new_value();
            if value.as_scalar().is_some() {
                return Err(Error::refused(
                    "replace operation value must be object or array",
                ));
            }
            *document = value;
            return Ok(());
        }
        let (parent, key) = self.find(document, path, budget)?;
        match &mut parent.value {
            Value::Map(map) => map.insert(key, self.new_value()),
            Value::List(list) => {
                let index = index(&key, list.len())?;
                list.items_mut()[index] = self.new_value();
            }
            Value::Scalar(_) => return Err(self.missing(path)),
        }
        Ok(())
    }

    fn get(&self, document: &mut Node, path: &str, budget: &Budget) -> Result<Node> {
        let (parent, key) = self.find(document, path, budget)?;
        match &parent.value {
            Value::Map(map) => map.get(&key).cloned().ok_or_else(|| self.missing(path)),
            Value::List(list) => {
                let index = index(&key, list.len())?;
                list.get(index).cloned().ok_or_else(|| self.missing(path))
            }
            Value::Scalar(_) => Err(self.missing(path)),
        }
    }

    fn test(&self, document: &mut Node, budget: &Budget) -> Result<()> {
        let path = self.path()?;
        let wanted = self.new_value();
        let found = if path.is_empty() {
            document.clone()
        } else {
            self.find(document, path, budget)?;
            let found = self.get(document, path, budget);
            found.unwrap_or_else(|_| Node::null())
        };
        charge_walk(&wanted, budget)?;
        if same_json(&found, &wanted) {
            return Ok(());
        }
        Err(Error::refused(format!("testing value `{path}` failed")))
    }
}

/// The container that a path's last key is in, and the key; `None` when there is none.
fn find<'a>(
    document: &'a mut Node,
    path: &str,
    budget: &Budget,
) -> Result<Option<(&'a mut Node, String)>> {
    let Some((parents, key)) = path.rsplit_once('/') else {
        return Ok(None);
    };
    let mut node = document;
    // Everything before the first slash is ignored.
    for part in parents.split('/').skip(1) {
        budget.step(width(node))?;
        match child(node, &unescape(part)) {
            Some(next) => node = next,
            None => return Ok(None),
        }
    }
    budget.step(width(node))?;
    let is_container = node.as_scalar().is_none();
    Ok(is_container.then(|| (node, unescape(key))))
}

/// How many entries are looked at, and copied if others share them, to find one.
fn width(node: &Node) -> u64 {
    match &node.value {
        Value::Scalar(_) => 1,
        Value::List(list) => list.len() as u64,
        Value::Map(map) => map.len() as u64,
    }
}

fn child<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let found = match &mut node.value {
        Value::Map(map) => map.get_mut(key)?,
        Value::List(list) => {
            let index = index(key, list.len()).ok()?;
            list.items_mut().get_mut(index)?
        }
        Value::Scalar(_) => return None,
    };
    found.as_scalar().is_none().then_some(found)
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// An index below `size`; negative ones count from the end.
fn index(key: &str, size: usize) -> Result<usize> {
    let digits = key.strip_prefix('+').unwrap_or(key);
    let wrong = || Error::refused(format!("unable to access invalid index: `{key}`"));
    let index: i64 = digits.parse().map_err(|_| wrong())?;
    let index = if index < 0 {
        index + size as i64
    } else {
        index
    };
    usize::try_from(index)
        .ok()
        .filter(|index| *index < size)
        .ok_or_else(wrong)
}

/// Equal as JSON: the order of keys does not count, the spelling of numbers does.
fn same_json(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Scalar(a), Value::Scalar(b)) => {
            let is_text = |tag: &Tag| matches!(tag, Tag::Str | Tag::Timestamp);
            (a.tag == Tag::Null && b.tag == Tag::Null)
                || a.text == b.text && (a.tag == b.tag || is_text(&a.tag) && is_text(&b.tag))
        }
        _ => a == b,
    }
}

/// What kustomize's printing does to an object before a patch sees it: folded texts gain line breaks.
pub(crate) fn print_blocks(node: &mut Node) -> Result<()> {
    match &mut node.value {
        Value::Scalar(scalar) if is_changed_by_printing(scalar) => {
            *scalar = printed(scalar)?;
            Ok(())
        }
        Value::Scalar(_) => Ok(()),
        Value::List(list) if !list.iter().any(has_block) => Ok(()),
        Value::List(list) => list.items_mut().iter_mut().try_for_each(print_blocks),
        Value::Map(map) if !map.iter().any(|entry| has_block(&entry.value)) => Ok(()),
        Value::Map(map) => map
            .entries_mut()
            .iter_mut()
            .try_for_each(|entry| print_blocks(&mut entry.value)),
    }
}

fn has_block(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => is_changed_by_printing(scalar),
        Value::List(list) => list.iter().any(has_block),
        Value::Map(map) => map.iter().any(|entry| has_block(&entry.value)),
    }
}

fn is_changed_by_printing(scalar: &Scalar) -> bool {
    match scalar.style {
        Style::Folded => true,
        Style::Literal => scalar.text.starts_with([' ', '\t', '\n']),
        _ => false,
    }
}

fn printed(scalar: &Scalar) -> Result<Scalar> {
    let refused = |error: &dyn std::fmt::Display| Error::refused(error.to_string());
    let mut object = Node::map();
    if let Some(map) = object.as_map_mut() {
        map.insert("text", Node::new(Value::Scalar(scalar.clone())));
    }
    let text = write_kustomize(&object).map_err(|error| refused(&error))?;
    let read = parse_one(text, Dialect::Kustomize).map_err(|error| refused(&error))?;
    let read = read.get("text").and_then(Node::as_scalar);
    Ok(read.unwrap_or(scalar).clone())
}

/// kustomize prints a patched object as JSON and reads it again: numbers become 64-bit floats, and texts lose their
/// quotes unless they need them.
pub(crate) fn reread(node: &mut Node) {
    match &mut node.value {
        Value::Scalar(scalar) => {
            reread_scalar(scalar);
            node.at = Position::default();
        }
        Value::List(list) => list.items_mut().iter_mut().for_each(reread),
        Value::Map(map) => {
            map.entries_mut()
                .iter_mut()
                .for_each(|entry| reread(&mut entry.value));
        }
    }
}

fn reread_scalar(scalar: &mut Scalar) {
    match scalar.tag {
        Tag::Int if scalar.text.len() > 15 => {
            if let Ok(number) = scalar.text.parse::<f64>() {
                scalar.text = number.to_string().into();
            }
        }
        Tag::Str => {
            scalar.style = match scalar.text.as_str() {
                text if text.contains('\n') => Style::Literal,
                text if plain_tag(text) != Tag::Str || is_old_boolean(text) => Style::Double,
                _ => Style::Plain,
            };
        }
        _ => scalar.style = Style::Plain,
    }
}

/// What YAML 1.1 took for a boolean; the printer quotes it still.
fn is_old_boolean(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "y" | "yes" | "on" | "n" | "no" | "off"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_from_both_ends() {
        assert_eq!(index("0", 2).unwrap(), 0);
        assert_eq!(index("-1", 2).unwrap(), 1);
        assert!(index("2", 2).is_err());
        assert!(index("-3", 2).is_err());
        assert!(index("x", 2).is_err());
    }
}
