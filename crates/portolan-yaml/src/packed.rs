//! A tree in one piece of memory, a quarter of the size of its nodes, for trees that wait and are not read meanwhile.
//!
//! ```text
//! number of bytes of all texts │ all texts │ nodes, depth first: shape, length of the text or number of elements, place
//! ```
//!
//! A text that most objects have is a number in place of shape and length.
//!
//! Nothing is lost: an unpacked tree has the same texts, types, styles and positions. Lines are written as the
//! difference to the line before, so that most numbers take one byte.

mod words;

use std::sync::Arc;

use crate::value::node::{Entry, Key, List, Map, Node, Position, Scalar, Style, Tag, Value};
use crate::value::text::Text;

const MAP: u8 = 0;
const LIST: u8 = 1;
/// The first of the numbers that say type and style of a scalar.
const SCALAR: u8 = 2;

const TAGS: [Tag; 9] = [
    Tag::Null,
    Tag::Bool,
    Tag::Int,
    Tag::Float,
    Tag::Str,
    Tag::Timestamp,
    Tag::Binary,
    Tag::Merge,
    Tag::Other,
];

const STYLES: [Style; 6] = [
    Style::Plain,
    Style::Single,
    Style::Double,
    Style::Literal,
    Style::Folded,
    Style::Flow,
];

/// Stands before the number of a text that many objects have, written without quotes.
const WORD: u8 = SCALAR + (TAGS.len() * STYLES.len()) as u8;

/// Packs a tree behind what is there already.
pub fn pack_tree(node: &Node, bytes: &mut Vec<u8>) {
    let mut packer = Packer::default();
    packer.node(node);
    bytes.reserve(packer.texts.len() + packer.shapes.len() + 5);
    push_number(bytes, packer.texts.len() as u64);
    bytes.extend_from_slice(packer.texts.as_bytes());
    bytes.extend_from_slice(&packer.shapes);
}

/// The tree that [`pack_tree`] packed.
///
/// # Panics
///
/// Panics if the bytes are others.
pub fn unpack_tree(bytes: &[u8]) -> Node {
    let node = Unpacker::begin(bytes).and_then(|mut unpacker| unpacker.node());
    node.expect("only `pack_tree` writes these bytes, and nobody changes them")
}

#[derive(Default)]
struct Packer {
    texts: String,
    shapes: Vec<u8>,
    line: u32,
}

impl Packer {
    fn node(&mut self, node: &Node) {
        match &node.value {
            Value::Scalar(scalar) => self.scalar(scalar),
            Value::List(list) => {
                self.shapes.push(LIST);
                push_number(&mut self.shapes, list.len() as u64);
            }
            Value::Map(map) => {
                self.shapes.push(MAP);
                push_number(&mut self.shapes, map.len() as u64);
            }
        }
        self.position(node.at);
        match &node.value {
            Value::Scalar(_) => {}
            Value::List(list) => list.iter().for_each(|item| self.node(item)),
            Value::Map(map) => {
                for entry in map {
                    self.scalar(&entry.key.scalar);
                    self.position(entry.key.at);
                    self.node(&entry.value);
                }
            }
        }
    }

    fn scalar(&mut self, scalar: &Scalar) {
        if (scalar.tag, scalar.style) == (Tag::Str, Style::Plain)
            && let Some(number) = words::number_of(&scalar.text)
        {
            self.shapes.extend([WORD, number]);
            return;
        }
        let tag = TAGS.iter().position(|tag| *tag == scalar.tag);
        let style = STYLES.iter().position(|style| *style == scalar.style);
        let shape = tag.unwrap_or_default() * STYLES.len() + style.unwrap_or_default();
        self.shapes.push(SCALAR + shape as u8);
        push_number(&mut self.shapes, scalar.text.len() as u64);
        self.texts.push_str(&scalar.text);
    }

    fn position(&mut self, at: Position) {
        let step = i64::from(at.line) - i64::from(self.line);
        self.line = at.line;
        // The sign goes to the lowest bit, so that small steps back are small numbers too.
        push_number(
            &mut self.shapes,
            ((step << 1) ^ (step >> 63)).cast_unsigned(),
        );
        push_number(&mut self.shapes, u64::from(at.column));
    }
}

struct Unpacker<'a> {
    texts: Arc<str>,
    /// Where the next text begins.
    text: usize,
    shapes: &'a [u8],
    line: u32,
}

impl<'a> Unpacker<'a> {
    fn begin(mut bytes: &'a [u8]) -> Option<Self> {
        let length = usize::try_from(take_number(&mut bytes)?).ok()?;
        let (texts, shapes) = bytes.split_at_checked(length)?;
        Some(Self {
            texts: Arc::from(std::str::from_utf8(texts).ok()?),
            text: 0,
            shapes,
            line: 0,
        })
    }

    fn node(&mut self) -> Option<Node> {
        let shape = self.byte()?;
        if shape >= SCALAR {
            let value = Value::Scalar(self.scalar(shape)?);
            let at = self.position()?;
            return Some(Node { value, at });
        }
        let count = usize::try_from(take_number(&mut self.shapes)?).ok()?;
        let at = self.position()?;
        let value = if shape == LIST {
            let items: Option<Vec<Node>> = (0..count).map(|_| self.node()).collect();
            Value::List(List::read(items?.into_iter()))
        } else {
            let entries: Option<Vec<Entry>> = (0..count).map(|_| self.entry()).collect();
            Value::Map(Map::read(entries?.into_iter()))
        };
        Some(Node { value, at })
    }

    fn entry(&mut self) -> Option<Entry> {
        let shape = self.byte()?;
        let scalar = self.scalar(shape)?;
        let at = self.position()?;
        let key = Key { scalar, at };
        let value = self.node()?;
        Some(Entry { key, value })
    }

    fn scalar(&mut self, shape: u8) -> Option<Scalar> {
        if shape == WORD {
            let word = words::word(self.byte()?)?;
            return Some(Scalar::string(Text::from_static(word)));
        }
        let shape = usize::from(shape.checked_sub(SCALAR)?);
        let length = usize::try_from(take_number(&mut self.shapes)?).ok()?;
        let begin = self.text;
        self.text = begin.checked_add(length)?;
        Some(Scalar {
            text: Text::slice(&self.texts, begin, self.text)?,
            tag: *TAGS.get(shape / STYLES.len())?,
            style: *STYLES.get(shape % STYLES.len())?,
        })
    }

    fn position(&mut self) -> Option<Position> {
        let step = take_number(&mut self.shapes)?;
        let step = (step >> 1).cast_signed() ^ -(step & 1).cast_signed();
        self.line = u32::try_from(i64::from(self.line) + step).ok()?;
        let column = u32::try_from(take_number(&mut self.shapes)?).ok()?;
        Some(Position {
            line: self.line,
            column,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.shapes.split_first()?;
        self.shapes = rest;
        Some(*first)
    }
}

/// Writes a number, seven bits to a byte, the lowest first; the eighth says that more follow.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, parse, write_kustomize};

    const TEXT: &str = "\
# A comment is no part of the tree.
kind: Thing
list: [1, 2.5, true, null, ~, 2020-01-01, {a: 'b', c: \"d\\n\"}]
empty: {map: {}, list: [], text: ''}
literal: |
  two
  lines
folded: >
  one
  line
ünïcode: → ✓
? 12
: !!binary aGVsbG8=
base: &base {x: 1}
alias: *base
";

    fn unpacked(node: &Node) -> Node {
        let mut bytes = Vec::new();
        pack_tree(node, &mut bytes);
        unpack_tree(&bytes)
    }

    fn trees() -> Vec<Node> {
        parse(TEXT, Dialect::Kustomize).unwrap()
    }

    #[test]
    fn an_unpacked_tree_is_the_same_to_the_last_position() {
        for node in trees() {
            let unpacked = unpacked(&node);
            assert_eq!(format!("{unpacked:?}"), format!("{node:?}"));
            assert_eq!(
                write_kustomize(&unpacked).unwrap(),
                write_kustomize(&node).unwrap()
            );
        }
    }

    #[test]
    fn texts_that_many_objects_have_take_two_bytes() {
        let packed = |text: &str| {
            let node = parse(text, Dialect::Kustomize).unwrap().remove(0);
            let unpacked = unpacked(&node);
            assert_eq!(format!("{unpacked:?}"), format!("{node:?}"));
            let mut bytes = Vec::new();
            pack_tree(&node, &mut bytes);
            bytes.len()
        };
        let common = packed("{apiVersion: v1, kind: Secret, metadata: {name: 'name'}}");
        let own = packed("{apiVersioN: v_, kinD: SecreT, metadatA: {namE: 'name'}}");
        assert_eq!(own - common, "apiVersionv1kindSecretmetadataname".len());
    }

    #[test]
    fn positions_may_go_back_and_be_absent() {
        let mut node = trees().remove(0);
        let map = node.as_map_mut().unwrap();
        map.insert("made", Node::string("here"));
        let entries = map.entries_mut();
        entries.reverse();
        entries[0].key.at = Position {
            line: u32::MAX,
            column: u32::MAX,
        };
        let unpacked = unpacked(&node);
        assert_eq!(format!("{unpacked:?}"), format!("{node:?}"));
    }

    #[test]
    fn a_scalar_by_itself_and_an_empty_map_are_trees() {
        for node in [Node::string("x"), Node::null(), Node::map(), Node::list()] {
            assert_eq!(unpacked(&node), node);
        }
    }
}
