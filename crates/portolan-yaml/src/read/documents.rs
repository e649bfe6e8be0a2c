//! The documents of a file: how the two programs split it and what they leave out.
//!
//! ```text
//!   bytes ──► Source ──► Direct ──────────────────────────► Node, one for each document
//!                          └─► Scanner ► Parser ► Composer ──┘
//! ```

use crate::error::{Error, Errors};
use crate::read::compose::Composer;
use crate::read::cursor::Cursor;
use crate::read::direct::Direct;
use crate::read::parser::Parser;
use crate::read::reader::Source;
use crate::read::scanner::Scanner;
use crate::value::node::{Node, Position, Value};
use crate::value::text::Text;

/// Whose reading is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// sigs.k8s.io/yaml over go-yaml v2: `yes` is a boolean, keys become texts, the last of equal keys wins.
    Helm,
    /// kyaml over go-yaml v3: only `true` and `false` are booleans, equal keys are an error, dates are times.
    Kustomize,
}

/// Reads all documents of a text; finds the errors of all of them.
///
/// In the Helm dialect every document counts, empty ones as null. In the kustomize dialect a file is split at lines
/// `---`, empty documents are dropped, and a file that is one `List` gives its items.
pub fn parse(text: impl Into<Text>, dialect: Dialect) -> Result<Vec<Node>, Errors> {
    read_all(&Source::of(text.into())?, dialect)
}

/// Reads all documents of bytes in UTF-8, or in UTF-16 with a byte order mark.
pub fn parse_bytes(bytes: &[u8], dialect: Dialect) -> Result<Vec<Node>, Errors> {
    read_all(&Source::from_bytes(bytes)?, dialect)
}

/// Reads the first document only, as Go's `Unmarshal` does: errors after it are not seen. Nothing is null.
pub fn parse_one(text: impl Into<Text>, dialect: Dialect) -> Result<Node, Errors> {
    Ok(read_first(&Source::of(text.into())?, dialect, false)?)
}

/// Reads the first document of bytes.
pub fn parse_one_bytes(bytes: &[u8], dialect: Dialect) -> Result<Node, Errors> {
    Ok(read_first(&Source::from_bytes(bytes)?, dialect, false)?)
}

/// Reads the first document and refuses repeated keys, as Go's `UnmarshalStrict` does.
pub fn parse_one_strict(text: impl Into<Text>, dialect: Dialect) -> Result<Node, Errors> {
    Ok(read_first(&Source::of(text.into())?, dialect, true)?)
}

/// Reads the first document, but keeps only so many levels of collections; deeper ones are checked and left empty.
///
/// None where there is a mistake, or where what is left out might matter to the rest (anchors, tags, odd keys): then
/// [`parse_one`] says more. It is made for looking at the head of a large document in the Helm dialect.
pub fn parse_head(text: &Text, depth: usize) -> Option<Node> {
    let source = Source::from_part(text)?;
    let mut composer = composer(&source, whole(&source), Dialect::Helm, false).keep(depth);
    let first = composer.next_document().ok()?;
    Some(first.unwrap_or_else(Node::null))
}

fn composer(source: &Source, part: Part, dialect: Dialect, strict: bool) -> Composer<'_> {
    let scanner = Scanner::new(source, part.start, part.end, part.line, dialect);
    Composer::new(Parser::new(scanner), dialect, strict)
}

/// A part of a source and the line it begins on, from 0.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    line: u32,
}

fn whole(source: &Source) -> Part {
    Part {
        start: source.start,
        end: source.end,
        line: 0,
    }
}

fn direct(source: &Source, part: Part, dialect: Dialect) -> Option<Direct<'_>> {
    Direct::new(source, part.start, part.end, part.line, dialect)
}

fn read_first(source: &Source, dialect: Dialect, strict: bool) -> Result<Node, Error> {
    let part = whole(source);
    if let Some(node) = direct(source, part, dialect).and_then(|mut direct| direct.document()) {
        return Ok(node);
    }
    let first = composer(source, part, dialect, strict).next_document()?;
    Ok(first.unwrap_or_else(Node::null))
}

fn read_all(source: &Source, dialect: Dialect) -> Result<Vec<Node>, Errors> {
    let (mut nodes, mut errors) = (Vec::new(), Vec::new());
    match dialect {
        Dialect::Helm => read_stream(source, &mut nodes, &mut errors),
        Dialect::Kustomize => match without_carriage_returns(source) {
            Some(source) => read_parts(&source, &mut nodes, &mut errors),
            None => read_parts(source, &mut nodes, &mut errors),
        },
    }
    match Errors::from_list(errors) {
        Some(errors) => Err(errors),
        None => Ok(nodes),
    }
}

/// kyaml puts LF in place of CRLF before it reads, which only shows where another CR stands before that.
fn without_carriage_returns(source: &Source) -> Option<Source> {
    let text = &source.text[source.start..source.end];
    let changed = text.contains("\r\r\n") && source.bad.is_none();
    let text = changed.then(|| text.replace("\r\n", "\n"))?;
    Source::from_text(text.into()).ok()
}

/// Reads document after document; after an error goes on at the next line that starts one.
fn read_stream(source: &Source, nodes: &mut Vec<Node>, errors: &mut Vec<Error>) {
    let Some(mut part) = read_directly(source, nodes) else {
        return;
    };
    loop {
        let mut composer = composer(source, part, Dialect::Helm, false);
        let error = loop {
            match composer.next_document() {
                Ok(Some(node)) => nodes.push(node),
                Ok(None) => return,
                Err(error) => break *error,
            }
        };
        errors.push(error);
        let (offset, line) = composer.offset();
        match next_document_line(&source.text[..source.end], offset, line) {
            Some((start, line)) if start > part.start => {
                part = Part {
                    start,
                    line,
                    ..part
                }
            }
            _ => return,
        }
    }
}

/// Reads documents the direct way while that goes; gives the rest, if there is one.
fn read_directly(source: &Source, nodes: &mut Vec<Node>) -> Option<Part> {
    let mut part = whole(source);
    let Some(mut direct) = direct(source, part, Dialect::Helm) else {
        return Some(part);
    };
    while let Some(node) = direct.document() {
        nodes.push(node);
        (part.start, part.line) = direct.rest()?;
    }
    Some(part)
}

/// The first `---` that begins a line at or after an offset.
fn next_document_line(text: &str, offset: usize, line: u32) -> Option<(usize, u32)> {
    let rest = text.get(offset..)?;
    let mut passed = 0;
    for (index, piece) in rest.split_inclusive('\n').enumerate() {
        let starts_line = index > 0 || offset == 0 || text[..offset].ends_with('\n');
        if starts_line && piece.starts_with("---") {
            let start = offset + passed;
            return Some((start, Cursor::new(text, offset, start, line).end().line));
        }
        passed += piece.len();
    }
    None
}

/// Reads a file as kyaml's reader does: each part between `---` lines on its own, its first document only.
fn read_parts(source: &Source, nodes: &mut Vec<Node>, errors: &mut Vec<Error>) {
    let parts = match split(source) {
        Ok(parts) => parts,
        Err(error) => return errors.push(error),
    };
    let single = parts.len() == 1;
    for part in parts {
        let directly = direct(source, part, Dialect::Kustomize).and_then(|mut way| way.document());
        let document = match directly {
            Some(node) => Ok(Some(node)),
            None => composer(source, part, Dialect::Kustomize, false).next_document(),
        };
        match document {
            Ok(Some(node)) if node.is_null() => {}
            Ok(Some(node)) if single && is_list(&node) => nodes.extend(list_items(&node)),
            Ok(Some(node)) => nodes.push(node),
            Ok(None) => {}
            Err(error) => errors.push(*error),
        }
    }
}

/// Splits at lines that begin with `---`; such a line may hold a comment, but nothing else.
fn split(source: &Source) -> Result<Vec<Part>, Error> {
    let text = &source.text[..source.end];
    let mut parts = Vec::new();
    let (mut start, mut line) = (source.start, 0);
    let mut search = start;
    while let Some(found) = text[search..].find("\n---") {
        let break_at = search + found;
        let after = break_at + 4;
        let Some(length) = text[after..].find('\n') else {
            break;
        };
        let lines = Cursor::new(text, start, break_at + 1, 0).end().line;
        let rest = text[after..after + length].trim();
        if !rest.is_empty() && !rest.starts_with('#') {
            let at = Position {
                line: line + lines + 1,
                column: 1,
            };
            let message = format!("invalid document separator: ---{rest}");
            return Err(Error::new(at, message));
        }
        parts.push(Part {
            start,
            end: break_at + 1,
            line,
        });
        start = after + length + 1;
        line += lines + 1;
        search = start;
    }
    parts.push(Part {
        start,
        end: source.end,
        line,
    });
    Ok(parts)
}

/// `kind: List` or `kind: ResourceList` with items.
fn is_list(node: &Node) -> bool {
    let kind = node.get("kind").and_then(Node::as_scalar);
    kind.is_some_and(|kind| kind.text == "List" || kind.text == "ResourceList")
        && (node.get("items").is_some() || node.get("functionConfig").is_some())
}

/// The items of a list; of a map kyaml takes the keys and the values, which it then cannot print.
fn list_items(node: &Node) -> Vec<Node> {
    match node.get("items").map(|items| &items.value) {
        Some(Value::List(items)) => items.iter().cloned().collect(),
        Some(Value::Map(entries)) => entries
            .iter()
            .map(|entry| Node {
                value: Value::Scalar(entry.key.scalar.clone()),
                at: entry.key.at,
            })
            .collect(),
        _ => Vec::new(),
    }
}
