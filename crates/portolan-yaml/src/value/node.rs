//! The value type: scalars, lists and maps with positions and key order.
//!
//! A [`Node`] owns its place in the tree; lists and maps are behind an `Arc` and are copied only when a shared one is
//! changed. So cloning a whole manifest costs one reference count, and a change of a clone is never visible in the
//! original.

use crate::value::number::{self, Number};
use crate::value::shared::Shared;
use crate::value::text::Text;

/// Where something begins in its source: line and column from 1, columns in characters; 0 where it was made, not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// What a scalar is, as the dialect that read it resolves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tag {
    /// `!!null`
    Null,
    /// `!!bool`
    Bool,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!str`
    #[default]
    Str,
    /// `!!timestamp`
    Timestamp,
    /// `!!binary`
    Binary,
    /// `!!merge`
    Merge,
    /// Any other tag. Its name is not kept: all printers drop it.
    Other,
}

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Style {
    /// Without quotes, or made by a program.
    #[default]
    Plain,
    /// `'…'`
    Single,
    /// `"…"`
    Double,
    /// `|`
    Literal,
    /// `>`
    Folded,
    /// Without quotes inside `{…}` or `[…]`, where kustomize puts some: an absent value, a time of day. That makes a
    /// text of them.
    Flow,
}

/// A text with what it means and how it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scalar {
    /// The content, quotes and escapes resolved, numbers as spelled.
    pub text: Text,
    /// The resolved type.
    pub tag: Tag,
    /// How it was written.
    pub style: Style,
}

/// A map's key with its place.
#[derive(Debug, Clone, Default)]
pub struct Key {
    /// The key's text and type; nearly always a string.
    pub scalar: Scalar,
    /// Where it begins.
    pub at: Position,
}

/// A key and its value.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Node,
}

/// Up to this many entries a map takes no more room than it needs.
const SMALL_MAP: usize = 8;

/// The entries of a map in the order they were written.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: Shared<Entry>,
}

/// The items of a list.
#[derive(Debug, Clone, Default)]
pub struct List {
    items: Shared<Node>,
}

/// The three shapes of a value.
#[derive(Debug, Clone)]
pub enum Value {
    /// A single value.
    Scalar(Scalar),
    /// A list.
    List(List),
    /// A map.
    Map(Map),
}

/// A value and where it was read.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it begins.
    pub at: Position,
}

// === impl Scalar ===

impl Scalar {
    /// A plain string.
    pub fn string(text: impl Into<Text>) -> Self {
        Self {
            text: text.into(),
            tag: Tag::Str,
            style: Style::Plain,
        }
    }

    /// The boolean, when it is one.
    pub fn as_bool(&self) -> Option<bool> {
        let yes = matches!(
            self.text.as_bytes(),
            [b't' | b'T' | b'y' | b'Y', ..] | [b'o' | b'O', b'n' | b'N']
        );
        (self.tag == Tag::Bool).then_some(yes)
    }
}

// === impl Key ===

impl Key {
    /// The key's text.
    pub fn as_str(&self) -> &str {
        self.scalar.text.as_str()
    }
}

impl<T: Into<Text>> From<T> for Key {
    fn from(text: T) -> Self {
        Self {
            scalar: Scalar::string(text),
            at: Position::default(),
        }
    }
}

// === impl Map ===

impl Map {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// A map of these entries, in this order.
    pub fn from_entries(entries: Vec<Entry>) -> Self {
        Self {
            entries: entries.into(),
        }
    }

    /// A map as it was read.
    pub(crate) fn read(entries: impl Iterator<Item = Entry>) -> Self {
        Self {
            entries: entries.collect(),
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.key.as_str())
    }

    /// The entries, to change; copies them first when they are shared.
    pub fn entries_mut(&mut self) -> &mut Vec<Entry> {
        self.entries.to_mut()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|entry| entry.key.as_str() == key)
            .map(|entry| &entry.value)
    }

    /// Whether the key is there.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let index = self.position(key)?;
        Some(&mut self.entries.slice_mut()[index].value)
    }

    /// Sets a key: in its place when it is there, at the end when it is new.
    pub fn insert(&mut self, key: impl Into<Key>, value: Node) {
        let key = key.into();
        match self.position(key.as_str()) {
            Some(index) => self.entries.slice_mut()[index].value = value,
            None => self.push(Entry { key, value }),
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let index = self.position(key)?;
        Some(self.entries_mut().remove(index).value)
    }

    /// The value of a key, made by `make` and put at the end when it is not there.
    pub fn get_or_insert_with(&mut self, key: &str, make: impl FnOnce() -> Node) -> &mut Node {
        let index = self.position(key).unwrap_or_else(|| {
            self.push(Entry {
                key: Key::from(key),
                value: make(),
            });
            self.len() - 1
        });
        &mut self.entries.slice_mut()[index].value
    }

    /// Small maps grow by one: most get a label or a namespace and stay so, thousands at a time.
    fn push(&mut self, entry: Entry) {
        let entries = self.entries.to_mut();
        if entries.len() < SMALL_MAP {
            entries.reserve_exact(1);
        }
        entries.push(entry);
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| entry.key.as_str() == key)
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = &'a Entry;
    type IntoIter = std::slice::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

// === impl List ===

impl List {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// A list of these items.
    pub fn from_items(items: Vec<Node>) -> Self {
        Self {
            items: items.into(),
        }
    }

    /// A list as it was read.
    pub(crate) fn read(items: impl Iterator<Item = Node>) -> Self {
        Self {
            items: items.collect(),
        }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Node> {
        self.items.iter()
    }

    /// The item at an index.
    pub fn get(&self, index: usize) -> Option<&Node> {
        self.items.get(index)
    }

    /// The items, to change; copies them first when they are shared.
    pub fn items_mut(&mut self) -> &mut Vec<Node> {
        self.items.to_mut()
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = &'a Node;
    type IntoIter = std::slice::Iter<'a, Node>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

// === impl Node ===

impl Node {
    /// A node that was made, not read.
    pub fn new(value: Value) -> Self {
        Self {
            value,
            at: Position::default(),
        }
    }

    /// A string.
    pub fn string(text: impl Into<Text>) -> Self {
        Self::new(Value::Scalar(Scalar::string(text)))
    }

    /// A null.
    pub fn null() -> Self {
        Self::tagged("null", Tag::Null)
    }

    /// A boolean.
    pub fn bool(value: bool) -> Self {
        Self::tagged(if value { "true" } else { "false" }, Tag::Bool)
    }

    /// A whole number.
    pub fn int(value: i64) -> Self {
        Self::new(Value::Scalar(Scalar {
            text: value.to_string().into(),
            tag: Tag::Int,
            style: Style::Plain,
        }))
    }

    /// A number that is not whole; also NaN and the infinities.
    pub fn float(value: f64) -> Self {
        let mut text = String::new();
        number::write_yaml(&mut text, value);
        Self::new(Value::Scalar(Scalar {
            text: text.into(),
            tag: Tag::Float,
            style: Style::Plain,
        }))
    }

    /// An empty map.
    pub fn map() -> Self {
        Self::new(Value::Map(Map::new()))
    }

    /// An empty list.
    pub fn list() -> Self {
        Self::new(Value::List(List::new()))
    }

    fn tagged(text: &'static str, tag: Tag) -> Self {
        let text = Text::from_static(text);
        Self::new(Value::Scalar(Scalar {
            text,
            tag,
            style: Style::Plain,
        }))
    }

    /// The scalar, when it is one.
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The text of a string; numbers, booleans and nulls are none.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(Scalar {
                text,
                tag: Tag::Str,
                ..
            }) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The boolean, when it is one.
    pub fn as_bool(&self) -> Option<bool> {
        self.as_scalar()?.as_bool()
    }

    /// The number, when it is one.
    pub fn number(&self) -> Option<Number> {
        number::of(self.as_scalar()?)
    }

    /// The whole number, when it is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.number()? {
            Number::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The number as a float, when it is a number: how Helm sees all of them.
    pub fn as_f64(&self) -> Option<f64> {
        self.number().map(Number::as_f64)
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(Scalar { tag: Tag::Null, .. }))
    }

    /// The map, when it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The map, to change, when it is one.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match &mut self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The list, when it is one.
    pub fn as_list(&self) -> Option<&List> {
        match &self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// The list, to change, when it is one.
    pub fn as_list_mut(&mut self) -> Option<&mut List> {
        match &mut self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// The value of a key, when this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// The value of a key, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        self.as_map_mut()?.get_mut(key)
    }

    /// The value at the end of a path of keys.
    pub fn at_path(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }
}

/// Null.
impl Default for Node {
    fn default() -> Self {
        Self::null()
    }
}

/// Equal content: positions and styles do not count, nor does the order of a map's keys.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Scalar(a), Value::Scalar(b)) => a.tag == b.tag && a.text == b.text,
            (Value::List(a), Value::List(b)) => a.items.is_same(&b.items) || *a.items == *b.items,
            (Value::Map(a), Value::Map(b)) => a.entries.is_same(&b.entries) || same_entries(a, b),
            _ => false,
        }
    }
}

fn same_entries(a: &Map, b: &Map) -> bool {
    let matches = |(left, right): (&Entry, &Entry)| {
        let right = if left.key.as_str() == right.key.as_str() {
            Some(&right.value)
        } else {
            b.get(left.key.as_str())
        };
        right.is_some_and(|right| left.value == *right)
    };
    a.len() == b.len() && a.iter().zip(b.iter()).all(matches)
}
