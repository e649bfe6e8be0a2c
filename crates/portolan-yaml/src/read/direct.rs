//! Reads a text directly to its tree, for the syntax that manifests usually have.
//!
//! ```text
//!   text ──► Direct ────────────────────────────► Node    block and flow collections, scalars, comments
//!              └ gives up ► Scanner ► Parser ► Composer    everything else, and every mistake
//! ```
//!
//! Most documents need neither tokens nor events: a key is recognised by the `:` after its word, and nesting by
//! columns. This reader handles only that, with the scanner's own code for scalars, at less than half the cost. At
//! anything else (anchors, tags, merged or repeated keys, tabs before text, an error) it gives up, and the scanner,
//! parser and composer read the document from its start. So it reports no errors. What it accepts must give the same
//! result as they do, places included; a property test checks this.

mod flow;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::Dialect;
use crate::read::cursor::{BLANK, BREAKISH, COLON, PATH, WORD, class};
use crate::read::reader::Source;
use crate::read::scanner::{SHORT_KEY, Scanner};
use crate::read::token::{Content, Mark};
use crate::value::node::{Entry, Key, List, Map, Node, Position, Scalar, Style, Tag, Value};
use crate::value::resolve;
use crate::value::text::Text;

/// Deeper nesting is read the long way, which uses no stack of the program.
const MAX_DIRECT_DEPTH: usize = 64;

/// Up to this many keys, each is compared with all before it.
const FEW_KEYS: usize = 16;

/// The column that stands for the end of the document.
const END: i32 = -1;

/// The reader over a part of a source; every `None` of its functions means that it gives up.
pub(crate) struct Direct<'s> {
    scanner: Scanner<'s>,
    dialect: Dialect,
    /// The column of the text at which the cursor stands, the first of its line; [`END`] after the last.
    column: i32,
    depth: usize,
    /// The items of all open lists and the entries of all open maps.
    items: Vec<Node>,
    entries: Vec<Entry>,
}

/// What a value stands in.
#[derive(Clone, Copy, PartialEq)]
enum Holder {
    Map,
    List,
}

impl<'s> Direct<'s> {
    /// Over a part of a source that begins at a line's start; `None` when there is a bad character in the source.
    pub(crate) fn new(
        source: &'s Source,
        start: usize,
        end: usize,
        line: u32,
        dialect: Dialect,
    ) -> Option<Self> {
        source.bad.is_none().then(|| Self {
            scanner: Scanner::new(source, start, end, line, dialect),
            dialect,
            column: END,
            depth: 0,
            // Enough for most documents, of which there are many small ones.
            items: Vec::with_capacity(16),
            entries: Vec::with_capacity(32),
        })
    }

    /// Where the next document begins and the line there; `None` at the end.
    pub(crate) fn rest(&self) -> Option<(usize, u32)> {
        (self.scanner.cursor.byte() != 0).then(|| self.scanner.offset())
    }

    /// The next document.
    pub(crate) fn document(&mut self) -> Option<Node> {
        self.scanner.key_allowed = true;
        self.next_text()?;
        if self.column == END && self.scanner.cursor.byte() == b'-' {
            self.scanner.cursor.pos += 3;
            self.scanner.key_allowed = false;
            self.next_text()?;
        }
        if self.column == END {
            return None;
        }
        let root = self.block(self.column, END)?;
        match self.scanner.cursor.byte() {
            0 => Some(root),
            // kyaml has split the file already, and looks further ahead.
            b'-' if self.dialect == Dialect::Helm => Some(root),
            _ => None,
        }
    }

    /// Goes on to the next line with text, over the rest of this one, which may hold a comment only.
    fn next_text(&mut self) -> Option<()> {
        loop {
            self.scanner.cursor.skip_spaces();
            match self.scanner.cursor.byte() {
                b'\n' | b'\r' => {
                    self.scanner.cursor.skip_break();
                    self.scanner.key_allowed = true;
                }
                b'#' => self.scanner.cursor.skip_to_line_end(),
                0 => {
                    self.column = END;
                    return Some(());
                }
                _ => break,
            }
        }
        self.column = if self.scanner.cursor.at_document_indicator() {
            END
        } else {
            self.scanner.cursor.column() as i32
        };
        self.scanner.key_allowed.then_some(())
    }

    /// The node that begins a line, at a column, inside the collection at the column `parent`.
    fn block(&mut self, column: i32, parent: i32) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DIRECT_DEPTH {
            return None;
        }
        let node = if self.at_dash() {
            self.list(column)?
        } else if self.at_key() {
            self.map(column)?
        } else {
            self.inline(parent)?
        };
        self.depth -= 1;
        (self.column <= parent).then_some(node)
    }

    fn map(&mut self, column: i32) -> Option<Node> {
        let at = self.scanner.cursor.mark().position();
        let first = self.entries.len();
        loop {
            let key = self.key()?;
            let value = self.value(column, Holder::Map)?;
            self.entries.push(Entry { key, value });
            if self.column != column {
                return self.finish_map(first, at);
            }
        }
    }

    fn finish_map(&mut self, first: usize, at: Position) -> Option<Node> {
        if repeats_a_key(&self.entries[first..]) {
            return None;
        }
        let map = Map::read(self.entries.drain(first..));
        Some(Node {
            value: Value::Map(map),
            at,
        })
    }

    fn list(&mut self, column: i32) -> Option<Node> {
        let at = self.scanner.cursor.mark().position();
        let first = self.items.len();
        while self.column == column && self.at_dash() {
            self.scanner.cursor.pos += 1;
            let item = self.value(column, Holder::List)?;
            self.items.push(item);
        }
        Some(self.finish_list(first, at))
    }

    fn finish_list(&mut self, first: usize, at: Position) -> Node {
        let list = List::read(self.items.drain(first..));
        Node {
            value: Value::List(list),
            at,
        }
    }

    /// What stands after the `:` of a key or the `-` of an item; the collection is at the column `parent`.
    #[inline]
    fn value(&mut self, parent: i32, holder: Holder) -> Option<Node> {
        let indicator_end = self.scanner.cursor.mark();
        self.scanner.key_allowed = false;
        self.scanner.cursor.skip_spaces();
        if let b'\n' | b'\r' | b'#' | 0 = self.scanner.cursor.byte() {
            return self.value_below(parent, holder, indicator_end);
        }
        if holder == Holder::List && (self.at_dash() || self.at_key()) {
            self.column = self.scanner.cursor.column() as i32;
            return self.block(self.column, parent);
        }
        self.inline(parent)
    }

    /// A value on the lines below its key or dash, or none.
    fn value_below(&mut self, parent: i32, holder: Holder, at: Mark) -> Option<Node> {
        self.next_text()?;
        if self.column > parent {
            self.block(self.column, parent)
        } else if self.column == parent && holder == Holder::Map && self.at_dash() {
            self.list(parent)
        } else {
            self.scalar(Content::Slice(0, 0), Style::Plain, at)
        }
    }

    /// A scalar or flow collection and the rest of its last line.
    fn inline(&mut self, parent: i32) -> Option<Node> {
        let start = self.scanner.cursor.mark();
        self.scanner.key_allowed = false;
        self.scanner.indent = parent;
        let node = match self.scanner.cursor.byte() {
            b'[' | b'{' => self.flow()?,
            first @ (b'|' | b'>') => {
                self.scanner.key_allowed = true;
                let literal = first == b'|';
                let (content, style) = self.scanner.scan_block_scalar(literal, start).ok()?;
                self.scalar(content, style, start)?
            }
            _ => match self.plain_line(parent) {
                Some(content) => self.scalar(content, Style::Plain, start)?,
                None => self.quoted_or_plain(start)?,
            },
        };
        self.next_text()?;
        Some(node)
    }

    /// A plain scalar that surely ends with its line, which is nearly every one; then the cursor is at the next line's
    /// text. Otherwise it stays where it is.
    #[inline]
    fn plain_line(&mut self, parent: i32) -> Option<Content> {
        if parent == END || !self.at_plain() {
            return None;
        }
        let cursor = &mut self.scanner.cursor;
        let start = cursor.pos;
        let end = loop {
            cursor.skip_until(BLANK | BREAKISH | COLON);
            match (cursor.byte(), cursor.peek(1)) {
                (b'\n', _) => break cursor.pos,
                (b':', next) if class(next) & (BLANK | BREAKISH) == 0 => cursor.pos += 1,
                (b' ', next) if class(next) & (BLANK | BREAKISH) == 0 && next != b'#' => {
                    cursor.pos += 1;
                }
                _ => {
                    cursor.pos = start;
                    return None;
                }
            }
        };
        let indentation = cursor.count_spaces(1);
        let next = cursor.peek(1 + indentation);
        if indentation as i32 > parent && next != b'#' || class(next) & (BLANK | BREAKISH) != 0 {
            // The text may go on there.
            cursor.pos = start;
            return None;
        }
        cursor.skip_line_feed(indentation);
        self.scanner.key_allowed = true;
        Some(Content::Slice(start as u32, end as u32))
    }

    fn quoted_or_plain(&mut self, start: Mark) -> Option<Node> {
        let (content, style) = match self.scanner.cursor.byte() {
            quote @ (b'"' | b'\'') => self.scanner.scan_quoted(quote, start).ok()?,
            _ if self.at_plain() => self.scanner.scan_plain(start).ok()?,
            _ => return None,
        };
        self.scalar(content, style, start)
    }

    #[inline]
    fn scalar(&self, content: Content, style: Style, at: Mark) -> Option<Node> {
        let text = content.into_text(self.scanner.source());
        let tag = resolve::untagged(self.dialect, &text, style);
        (tag != Tag::Merge).then(|| Node {
            value: Value::Scalar(Scalar { text, tag, style }),
            at: at.position(),
        })
    }

    // Keys.

    /// A key that is a text in both dialects, and the `:` after it.
    #[inline]
    fn key(&mut self) -> Option<Key> {
        let at = self.scanner.cursor.mark();
        let (start, end, style) = match self.scanner.cursor.byte() {
            quote @ (b'"' | b'\'') => match self.scanner.scan_quoted(quote, at).ok()? {
                (Content::Slice(start, end), style) => (start, end, style),
                (Content::Owned(_), _) => return None,
            },
            _ => {
                let start = self.scanner.cursor.pos;
                self.scanner.cursor.pos += self.scanner.cursor.count_while(WORD | PATH);
                (start as u32, self.scanner.cursor.pos as u32, Style::Plain)
            }
        };
        let ends = self.scanner.cursor.byte() == b':' && self.scanner.cursor.is_blankz(1);
        self.scanner.cursor.pos += 1;
        ends.then(|| self.text_key(start, end, style, at)).flatten()
    }

    #[inline]
    fn text_key(&self, start: u32, end: u32, style: Style, at: Mark) -> Option<Key> {
        let text = Text::scanned(self.scanner.source(), start, end);
        let tag = resolve::untagged(self.dialect, &text, style);
        (tag == Tag::Str && text.len() < SHORT_KEY && text != "<<").then(|| Key {
            scalar: Scalar { text, tag, style },
            at: at.position(),
        })
    }

    // What the next text is.

    #[inline]
    fn at_dash(&self) -> bool {
        self.scanner.cursor.byte() == b'-' && self.scanner.cursor.is_blankz(1)
    }

    /// A word with a `:` after it, or a quote where a line begins.
    fn at_key(&self) -> bool {
        let cursor = &self.scanner.cursor;
        match cursor.byte() {
            b'-' => false,
            b'"' | b'\'' => self.scanner.key_allowed,
            _ => {
                let length = cursor.count_while(WORD | PATH);
                length > 0 && cursor.peek(length) == b':' && cursor.is_blankz(length + 1)
            }
        }
    }

    /// A character that can only be the first of a plain scalar.
    #[inline]
    fn at_plain(&self) -> bool {
        let first = self.scanner.cursor.byte();
        match first {
            b'-' => !self.scanner.cursor.is_blankz(1),
            // Line breaks and byte order marks begin so.
            0..=b' ' | 0xc2 | 0xe2 | 0xef => false,
            _ => !b"!\"#%&'*,:>?@[]`{|}".contains(&first),
        }
    }
}

fn repeats_a_key(entries: &[Entry]) -> bool {
    if entries.len() > FEW_KEYS {
        let mut seen = HashSet::with_capacity(entries.len());
        return !entries.iter().all(|entry| seen.insert(entry.key.as_str()));
    }
    entries.iter().enumerate().any(|(index, entry)| {
        let mut before = entries[..index].iter();
        before.any(|other| other.key.scalar.text == entry.key.scalar.text)
    })
}
