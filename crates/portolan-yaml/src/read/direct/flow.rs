//! Lists and maps in brackets and braces, as far as the direct reader handles them.

use super::{Direct, MAX_DIRECT_DEPTH};
use crate::Dialect;
use crate::read::token::Content;
use crate::value::node::{Entry, Key, Node, Position, Style, Tag, Value};

impl Direct<'_> {
    /// The collection whose opening bracket is next.
    pub(super) fn flow(&mut self) -> Option<Node> {
        let at = self.scanner.cursor.mark().position();
        let is_list = self.scanner.cursor.byte() == b'[';
        self.scanner.cursor.pos += 1;
        self.scanner.flow_level += 1;
        self.depth += 1;
        if self.depth > MAX_DIRECT_DEPTH {
            return None;
        }
        let node = if is_list {
            self.flow_list(at)?
        } else {
            self.flow_map(at)?
        };
        self.depth -= 1;
        self.scanner.flow_level -= 1;
        self.scanner.key_allowed = false;
        Some(node)
    }

    fn flow_list(&mut self, at: Position) -> Option<Node> {
        let first = self.items.len();
        self.flow_gap();
        while !self.at_flow_end(b']') {
            let item = self.flow_node()?;
            self.items.push(item);
            self.flow_comma(b']')?;
        }
        Some(self.finish_list(first, at))
    }

    fn flow_map(&mut self, at: Position) -> Option<Node> {
        let first = self.entries.len();
        self.flow_gap();
        while !self.at_flow_end(b'}') {
            let key = self.flow_key()?;
            self.flow_gap();
            let value = self.flow_node()?;
            self.entries.push(Entry { key, value });
            self.flow_comma(b'}')?;
        }
        self.finish_map(first, at)
    }

    /// Takes the closing bracket, if it is next.
    fn at_flow_end(&mut self, close: u8) -> bool {
        let ends = self.scanner.cursor.byte() == close;
        self.scanner.cursor.pos += usize::from(ends);
        ends
    }

    /// Takes a comma, unless the collection ends.
    fn flow_comma(&mut self, close: u8) -> Option<()> {
        self.flow_gap();
        match self.scanner.cursor.byte() {
            b',' => {
                self.scanner.cursor.pos += 1;
                self.flow_gap();
                Some(())
            }
            byte => (byte == close).then_some(()),
        }
    }

    /// Passes over spaces and line breaks.
    fn flow_gap(&mut self) {
        loop {
            self.scanner.cursor.skip_spaces();
            if self.scanner.cursor.byte() != b'\n' {
                return;
            }
            self.scanner.cursor.skip_break();
        }
    }

    fn flow_node(&mut self) -> Option<Node> {
        if let b'[' | b'{' = self.scanner.cursor.byte() {
            return self.flow();
        }
        if self.scanner.cursor.at_document_indicator() {
            return None;
        }
        let start = self.scanner.cursor.mark();
        let node = self.quoted_or_plain(start)?;
        // kustomize puts quotes around some times here, and reads them again.
        let is_time = matches!(&node.value, Value::Scalar(scalar) if scalar.tag == Tag::Timestamp);
        (self.dialect == Dialect::Helm || !is_time).then_some(node)
    }

    /// A key on one line and the `:` after it.
    fn flow_key(&mut self) -> Option<Key> {
        if self.scanner.cursor.at_document_indicator() {
            return None;
        }
        let at = self.scanner.cursor.mark();
        let (content, style) = match self.scanner.cursor.byte() {
            quote @ (b'"' | b'\'') => self.scanner.scan_quoted(quote, at).ok()?,
            _ if self.at_plain() => self.scanner.scan_plain(at).ok()?,
            _ => return None,
        };
        let Content::Slice(start, end) = content else {
            return None;
        };
        if style != Style::Plain {
            self.scanner.cursor.skip_spaces();
        }
        let is_key = self.scanner.cursor.byte() == b':' && self.scanner.cursor.line == at.line;
        self.scanner.cursor.pos += 1;
        is_key
            .then(|| self.text_key(start, end, style, at))
            .flatten()
    }
}
