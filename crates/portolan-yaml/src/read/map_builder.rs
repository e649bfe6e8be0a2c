//! A map under construction: keys become texts, repeated keys are resolved, `<<` is merged.
//!
//! The entries of all open maps are on one stack, so a finished map uses only the memory that it needs.
//!
//! The two libraries differ in nearly all of this. v2 turns every key into a text, lets the last of equal keys win,
//! and merges at the place of `<<`. kyaml keeps a key's spelling, refuses equal keys, and merges after the map is
//! read: an explicit key overrides a merged one wherever it is.

use std::collections::HashMap;

use crate::Dialect;
use crate::error::Error;
use crate::read::go_syntax;
use crate::value::node::{Entry, Key, Map, Node, Position, Scalar, Style, Tag, Value};
use crate::value::number::{self, Number};
use crate::value::resolve;
use crate::value::text::Text;

/// From this many keys on, a table finds equal ones.
const LARGE: usize = 16;

/// A map under construction; keys and values are added in turn.
pub(crate) struct MapBuilder {
    dialect: Dialect,
    strict: bool,
    /// Written as `{…}`.
    flow: bool,
    /// Where its entries begin on the stack.
    start: usize,
    /// Where each key stands, once there are many.
    places: HashMap<Text, usize>,
    waiting: Option<Waiting>,
    merge: Option<Node>,
}

/// What the next value belongs to.
enum Waiting {
    Key(Key),
    Merge(Position),
    /// A quoted `<<`, which kyaml removes together with its value.
    Nothing,
    /// A key that JSON cannot have, as Go shows it with its type.
    Unsupported(String, Position),
}

impl MapBuilder {
    pub(crate) fn new(dialect: Dialect, strict: bool) -> Self {
        Self {
            dialect,
            strict,
            flow: false,
            start: 0,
            places: HashMap::new(),
            waiting: None,
            merge: None,
        }
    }

    /// Begins a map whose entries will follow those on the stack.
    pub(crate) fn begin(&mut self, flow: bool, stack: &[Entry]) {
        self.flow = flow;
        self.start = stack.len();
        self.waiting = None;
        self.merge = None;
        if !self.places.is_empty() {
            self.places.clear();
        }
    }

    /// Adds a key or, after a key, its value.
    pub(crate) fn add(
        &mut self,
        stack: &mut Vec<Entry>,
        node: Node,
        alias: bool,
    ) -> Result<(), Error> {
        match self.waiting.take() {
            None => self.waiting = Some(self.key(node)?),
            Some(Waiting::Key(key)) => self.set(stack, key, node)?,
            Some(Waiting::Merge(at)) => self.take_merge(stack, node, alias, at)?,
            Some(Waiting::Nothing) => {}
            Some(Waiting::Unsupported(key, at)) => return Err(unsupported_key(&key, &node, at)),
        }
        Ok(())
    }

    /// Whether the next node is a key.
    pub(crate) fn awaits_key(&self) -> bool {
        self.waiting.is_none()
    }

    /// Adds a plain key and its value at once.
    pub(crate) fn add_entry(
        &mut self,
        stack: &mut Vec<Entry>,
        key: Text,
        at: Position,
        value: Node,
    ) -> Result<(), Error> {
        let scalar = Scalar {
            tag: resolve::plain(self.dialect, &key),
            text: key,
            style: Style::Plain,
        };
        let waiting = match self.dialect {
            _ if scalar.tag == Tag::Str => Waiting::Key(Key { scalar, at }),
            Dialect::Helm => helm_key(scalar, at),
            Dialect::Kustomize => kustomize_key(scalar, at)?,
        };
        match waiting {
            Waiting::Key(key) => self.set(stack, key, value),
            other => {
                self.waiting = Some(other);
                self.add(stack, value, false)
            }
        }
    }

    /// The finished map.
    pub(crate) fn finish(&mut self, stack: &mut Vec<Entry>) -> Result<Map, Error> {
        if let Some(merge) = self.merge.take() {
            self.merge_last(stack, &merge)?;
        }
        Ok(Map::read(stack.drain(self.start..)))
    }

    // Keys.

    fn key(&self, node: Node) -> Result<Waiting, Error> {
        let at = node.at;
        let Value::Scalar(scalar) = node.value else {
            let message = format!("invalid map key: {}", go_syntax::show(&node));
            return Err(Error::new(at, message));
        };
        match self.dialect {
            Dialect::Helm if scalar.tag == Tag::Merge => Ok(Waiting::Merge(at)),
            Dialect::Helm => Ok(helm_key(scalar, at)),
            Dialect::Kustomize => kustomize_key(scalar, at),
        }
    }

    // Values.

    /// Sets a key that is a text already.
    pub(crate) fn set(
        &mut self,
        stack: &mut Vec<Entry>,
        key: Key,
        value: Node,
    ) -> Result<(), Error> {
        let Some(place) = self.find(stack, &key.scalar.text) else {
            self.push(stack, key, value);
            return Ok(());
        };
        let entry = &mut stack[place];
        let name = key.as_str();
        match self.dialect {
            Dialect::Kustomize => {
                let first = entry.key.at.line;
                let message = format!("mapping key {name:?} already defined at line {first}");
                Err(Error::new(key.at, message).with_go_line(key.at.line))
            }
            Dialect::Helm if self.strict => {
                let message = format!("key {name:?} already set in map");
                Err(Error::new(key.at, message).with_go_line(value.at.line))
            }
            Dialect::Helm => {
                *entry = Entry { key, value };
                Ok(())
            }
        }
    }

    fn find(&self, stack: &[Entry], key: &Text) -> Option<usize> {
        let own = &stack[self.start..];
        if own.len() >= LARGE {
            return self.places.get(key).copied();
        }
        let found = own.iter().position(|entry| entry.key.scalar.text == *key);
        found.map(|place| self.start + place)
    }

    fn push(&mut self, stack: &mut Vec<Entry>, key: Key, value: Node) {
        stack.push(Entry { key, value });
        let count = stack.len() - self.start;
        if count >= LARGE {
            let new = if count == LARGE {
                self.start
            } else {
                stack.len() - 1
            };
            let known = stack.iter().enumerate().skip(new);
            self.places
                .extend(known.map(|(place, entry)| (entry.key.scalar.text.clone(), place)));
        }
    }

    // Merging.

    fn take_merge(
        &mut self,
        stack: &mut Vec<Entry>,
        node: Node,
        alias: bool,
        at: Position,
    ) -> Result<(), Error> {
        if alias && !matches!(node.value, Value::Map(_)) {
            return Err(not_mergeable(at));
        }
        if self.dialect == Dialect::Kustomize {
            if self.merge.replace(node).is_some() {
                return Err(Error::new(at, "duplicate merge key"));
            }
            return Ok(());
        }
        for map in merged_maps(&node, at)? {
            for entry in map {
                self.set(stack, entry.key.clone(), entry.value.clone())?;
            }
        }
        Ok(())
    }

    /// Adds the keys of merged maps that the map does not set itself; of two merged maps the first one wins.
    fn merge_last(&mut self, stack: &mut Vec<Entry>, merge: &Node) -> Result<(), Error> {
        let explicit = stack.len();
        for map in merged_maps(merge, merge.at)? {
            for entry in map {
                let mut entry = entry.clone();
                if !self.flow {
                    unquote(&mut entry.value);
                }
                match self.find(stack, &entry.key.scalar.text) {
                    None => self.push(stack, entry.key, entry.value),
                    Some(place) if place >= explicit => stack[place] = entry,
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// A value that moves out of `{…}` gets no quotes.
fn unquote(value: &mut Node) {
    if let Value::Scalar(scalar) = &mut value.value
        && scalar.style == Style::Flow
    {
        scalar.style = Style::Plain;
    }
}

/// The maps of a `<<` value, the one that wins last.
fn merged_maps(node: &Node, at: Position) -> Result<Vec<&Map>, Error> {
    match &node.value {
        Value::Map(map) => Ok(vec![map]),
        Value::List(list) => {
            let maps = list.iter().rev().map(|item| item.as_map());
            maps.collect::<Option<_>>().ok_or_else(|| not_mergeable(at))
        }
        Value::Scalar(_) => Err(not_mergeable(at)),
    }
}

fn not_mergeable(at: Position) -> Error {
    Error::new(
        at,
        "map merge requires map or sequence of maps as the value",
    )
}

/// The text sigs.k8s.io/yaml makes of a key.
fn helm_key(scalar: Scalar, at: Position) -> Waiting {
    let text = match scalar.tag {
        Tag::Null => return Waiting::Unsupported("%!s(<nil>), key: <nil>".to_owned(), at),
        Tag::Bool if scalar.as_bool() == Some(true) => Text::from_static("true"),
        Tag::Bool => Text::from_static("false"),
        Tag::Int | Tag::Float => match number::of(&scalar) {
            Some(Number::Int(value)) => value.to_string().into(),
            Some(Number::Float(value)) => {
                let mut text = String::new();
                number::write_key(&mut text, value);
                text.into()
            }
            Some(Number::Uint(value)) => {
                return Waiting::Unsupported(format!("uint64, key: {value:#x}"), at);
            }
            None => scalar.text,
        },
        _ => scalar.text,
    };
    let scalar = Scalar {
        text,
        tag: Tag::Str,
        style: scalar.style,
    };
    Waiting::Key(Key { scalar, at })
}

fn unsupported_key(key: &str, value: &Node, at: Position) -> Error {
    let value = if value.is_null() {
        "<nil>".to_owned()
    } else {
        go_syntax::show(value)
    };
    let message = format!("unsupported map key of type: {key}, value: {value}");
    Error::new(at, message).without_prefix()
}

fn kustomize_key(mut scalar: Scalar, at: Position) -> Result<Waiting, Error> {
    if scalar.tag == Tag::Merge {
        return Ok(Waiting::Merge(at));
    }
    if scalar.text == "<<" {
        return Ok(Waiting::Nothing);
    }
    if scalar.tag == Tag::Null {
        if !scalar.text.is_empty() {
            // kyaml adds such a key once more when it looks for merges, and then refuses it.
            let line = at.line;
            let message = format!(
                "mapping key {:?} already defined at line {line}",
                scalar.text
            );
            return Err(Error::new(at, message).with_go_line(line));
        }
        // Without a tag it is printed as '' and read again as a text.
        if matches!(scalar.style, Style::Plain | Style::Flow) {
            scalar.tag = Tag::Str;
            scalar.style = Style::Single;
        }
    }
    Ok(Waiting::Key(Key { scalar, at }))
}
