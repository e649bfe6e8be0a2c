//! Turns characters into tokens, with the algorithm of libyaml that Go's libraries use.
//!
//! ```text
//!   text ──► Cursor ──► Scanner ──► queue of Tokens ──► Parser
//!                         │ simple keys: what may turn out to be a key once a ':' follows
//!                         └ indents: the columns of the open block collections
//! ```
//!
//! A key is recognised only by the `:` after it, so tokens wait in the queue while the first of them may still become
//! a key. If it does, a KEY token, and the start of a map, is inserted before it.

mod block;
mod directive;
mod fold;
mod key;
mod plain;
mod quoted;
mod tag;

use std::collections::VecDeque;
use std::sync::Arc;

use self::key::SimpleKey;
use crate::Dialect;
use crate::error::{Error, Fallible};
use crate::limits::MAX_DEPTH;
use crate::read::cursor::{Cursor, PATH, WORD};
use crate::read::reader::Source;
use crate::read::token::{Content, Mark, Token, TokenKind};
use crate::value::node::{Position, Style};

/// Up to this length a key is surely not too long to be one.
pub(crate) const SHORT_KEY: usize = 256;

/// The scanner over one source.
pub(crate) struct Scanner<'s> {
    pub(crate) cursor: Cursor<'s>,
    text: &'s Arc<str>,
    bad: Option<&'s Error>,
    dialect: Dialect,
    queue: VecDeque<Token>,
    /// How many more tokens the queue's would be if none stood for three.
    merged: usize,
    /// How many tokens were taken out of the queue.
    parsed: usize,
    ready: bool,
    /// The column of the innermost block collection; -1 outside of all.
    pub(crate) indent: i32,
    indents: Vec<i32>,
    pub(crate) flow_level: usize,
    /// A key may begin here: since the last line break nothing stood that forbids it.
    pub(crate) key_allowed: bool,
    /// One for each flow level.
    keys: Vec<SimpleKey>,
    /// Token number and flow level of keys that are still open, by rising number.
    keys_by_token: VecDeque<(usize, usize)>,
}

/// Where the lines of an error come from: Go counts them differently for the two.
pub(crate) enum Blame {
    Scanner,
    Parser,
}

impl<'s> Scanner<'s> {
    /// Over a part of a source that begins at a line's start.
    pub(crate) fn new(
        source: &'s Source,
        start: usize,
        end: usize,
        line: u32,
        dialect: Dialect,
    ) -> Self {
        Self {
            cursor: Cursor::new(&source.text, start, end, line),
            text: &source.text,
            // A part that ends before the bad block is not hurt by it.
            bad: source.bad.as_ref().filter(|_| end == source.end),
            dialect,
            queue: VecDeque::new(),
            merged: 0,
            parsed: 0,
            ready: false,
            indent: -1,
            indents: Vec::new(),
            flow_level: 0,
            key_allowed: true,
            keys: vec![SimpleKey::default()],
            keys_by_token: VecDeque::new(),
        }
    }

    /// The source that slices refer to.
    pub(crate) fn source(&self) -> &'s Arc<str> {
        self.text
    }

    /// Where scanning stands, and the line there.
    pub(crate) fn offset(&self) -> (usize, u32) {
        (self.cursor.pos, self.cursor.line)
    }

    /// The next token, to look at.
    #[inline]
    pub(crate) fn peek(&mut self) -> Fallible<&Token> {
        if !self.ready {
            self.fetch_more()?;
            self.ready = true;
        }
        // `fetch_more` only returns once the queue holds a token.
        Ok(&self.queue[0])
    }

    /// Takes the token that `peek` showed.
    #[inline]
    pub(crate) fn take(&mut self) -> Fallible<Token> {
        self.peek()?;
        self.ready = false;
        self.parsed += 1;
        self.queue
            .pop_front()
            .ok_or_else(|| Box::new(Error::new(Position::default(), "unexpected end of stream")))
    }

    /// Drops the token that `peek` showed.
    #[inline]
    pub(crate) fn skip(&mut self) {
        self.ready = false;
        self.parsed += 1;
        if let Some(Token {
            kind: TokenKind::EntryKey(..),
            ..
        }) = self.queue.pop_front()
        {
            self.merged -= 2;
        }
    }

    /// An error with the two places Go derives its line from.
    pub(crate) fn error(
        &self,
        blame: &Blame,
        context: Option<Mark>,
        problem: Mark,
        message: &str,
    ) -> Error {
        let extra = u32::from(matches!(blame, Blame::Scanner));
        let context = context.map_or(0, |mark| mark.line);
        let go_line = match (self.dialect, context, problem.line) {
            (_, 0, 0) => 0,
            (Dialect::Helm, context, 0) => context,
            (Dialect::Helm, _, line) | (Dialect::Kustomize, 0, line) => line + extra,
            (Dialect::Kustomize, context, _) => context + extra,
        };
        Error::new(problem.position(), message).with_go_line(go_line)
    }

    fn fail<T>(&mut self, context: Mark, message: &str) -> Fallible<T> {
        let problem = self.cursor.mark();
        Err(Box::new(self.error(
            &Blame::Scanner,
            Some(context),
            problem,
            message,
        )))
    }

    fn fail_here<T>(&mut self, message: &str) -> Fallible<T> {
        let mark = self.cursor.mark();
        self.fail(mark, message)
    }

    /// Fetches until the first token of the queue is decided. v3 reads two tokens further, for its comments.
    fn fetch_more(&mut self) -> Fallible<()> {
        let lookahead = match self.dialect {
            Dialect::Helm => 0,
            Dialect::Kustomize => 2,
        };
        while self.queue.len() + self.merged <= lookahead || self.first_may_be_key()? {
            self.fetch_next()?;
        }
        Ok(())
    }

    fn first_may_be_key(&mut self) -> Fallible<bool> {
        while let Some(&(token, level)) = self.keys_by_token.front() {
            if token > self.parsed {
                return Ok(false);
            }
            if token == self.parsed {
                return self.key_is_valid(level);
            }
            self.keys_by_token.pop_front();
        }
        Ok(false)
    }

    fn fetch_next(&mut self) -> Fallible<()> {
        let before = match self.dialect {
            Dialect::Helm => None,
            Dialect::Kustomize => Some(self.cursor.mark()),
        };
        self.skip_to_token();
        let here = self.cursor.mark();
        let column = here.column;
        // v3 ends a collection where its text ends, v2 where the next text begins.
        self.unroll_indent(column as i32, before.unwrap_or(here));
        let (first, flow) = (self.cursor.byte(), self.flow_level > 0);
        if first.is_ascii_alphanumeric() && self.key_allowed && !flow {
            let key = self.cursor.count_while(WORD | PATH);
            if key < SHORT_KEY && self.cursor.peek(key) == b':' && self.cursor.is_blankz(key + 1) {
                return self.fetch_short_entry(here, key);
            }
        }
        match first {
            0 => return self.fetch_stream_end(),
            b'%' if column == 0 => return self.fetch_directive(),
            b'-' if self.cursor.at_document_indicator() => {
                return self.fetch_document_indicator(TokenKind::DocumentStart);
            }
            b'.' if self.cursor.at_document_indicator() => {
                return self.fetch_document_indicator(TokenKind::DocumentEnd);
            }
            b'[' => return self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => return self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => return self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => return self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => return self.fetch_flow_entry(),
            b'*' | b'&' => return self.fetch_anchor(),
            b'!' => return self.fetch_tag(),
            b'|' | b'>' if !flow => return self.fetch_block_scalar(first == b'|'),
            b'\'' | b'"' => return self.fetch_quoted(first),
            b'-' | b'?' | b':' => {}
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' => return self.no_token(),
            _ => return self.fetch_plain(),
        }
        let stands_alone = self.cursor.is_blankz(1);
        match first {
            b'-' if stands_alone => self.fetch_block_entry(),
            b'?' if flow || stands_alone => self.fetch_key(),
            b':' if flow || stands_alone => self.fetch_value(),
            _ => self.fetch_plain(),
        }
    }

    /// The lines manifests are made of, `name: value`: the tokens are clear at once.
    fn fetch_short_entry(&mut self, start: Mark, length: usize) -> Fallible<()> {
        self.remove_key()?;
        self.roll_indent(start.column, None, TokenKind::BlockMappingStart, start)?;
        self.key_allowed = false;
        let key = self.cursor.pos as u32;
        let key_end = key + length as u32;
        let after_key = self.cursor.clone();
        self.cursor.pos += length + 1;
        self.cursor.skip_blanks();
        let value_start = self.cursor.mark();
        if let Some((content, style)) = self.scan_short_value(value_start) {
            self.push(TokenKind::EntryKey(key, key_end), start, start);
            self.merged += 2;
            self.push_scalar(content, style, value_start);
            return Ok(());
        }
        // Another kind of value, or a wrong one: its turn comes after the tokens before it.
        self.cursor = after_key;
        self.push(TokenKind::Key, start, start);
        self.push_scalar(Content::Slice(key, key_end), Style::Plain, start);
        self.cursor.pos += length;
        self.push_indicator(TokenKind::Value, 1);
        Ok(())
    }

    /// A plain or quoted value; `None` when it is neither, or wrong.
    fn scan_short_value(&mut self, start: Mark) -> Option<(Content, Style)> {
        match self.cursor.byte() {
            first if first.is_ascii_alphanumeric() => self.scan_plain(start),
            quote @ (b'"' | b'\'') => self.scan_quoted(quote, start),
            _ => return None,
        }
        .ok()
    }

    fn no_token(&mut self) -> Fallible<()> {
        self.fail_here("found character that cannot start any token")
    }

    /// Passes over blanks, comments and line breaks.
    fn skip_to_token(&mut self) {
        loop {
            self.skip_second_byte_order_mark();
            let tabs = self.flow_level > 0 || !self.key_allowed;
            while self.cursor.byte() == b' ' || tabs && self.cursor.byte() == b'\t' {
                self.cursor.pos += 1;
            }
            if self.cursor.byte() == b'#' {
                self.cursor.skip_to_line_end();
            }
            if !self.cursor.is_break(0) {
                return;
            }
            self.cursor.skip_break();
            if self.flow_level == 0 {
                self.key_allowed = true;
            }
        }
    }

    /// A second byte order mark right after the first is passed over too.
    fn skip_second_byte_order_mark(&mut self) {
        let mark = "\u{feff}";
        if self.cursor.pos == mark.len() && self.text.starts_with("\u{feff}\u{feff}") {
            self.cursor.pos += mark.len();
        }
    }

    // Indents.

    /// Opens a block collection at a column, before the token with this number, or at the queue's end.
    fn roll_indent(
        &mut self,
        column: u32,
        token: Option<usize>,
        kind: TokenKind,
        mark: Mark,
    ) -> Fallible<()> {
        if self.flow_level > 0 || self.indent >= column as i32 {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column as i32;
        if self.indents.len() > MAX_DEPTH {
            return self.fail(mark, &format!("exceeded max depth of {MAX_DEPTH}"));
        }
        self.insert(token, kind, mark);
        Ok(())
    }

    /// Closes the block collections that are indented more than a column.
    fn unroll_indent(&mut self, column: i32, mark: Mark) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(TokenKind::BlockEnd, mark, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn push(&mut self, kind: TokenKind, start: Mark, end: Mark) {
        self.queue.push_back(Token { kind, start, end });
    }

    fn push_scalar(&mut self, content: Content, style: Style, start: Mark) {
        self.push(TokenKind::Scalar(content, style), start, start);
    }

    /// Puts a token before the one with a number. One that was taken already puts it at the end, as in Go.
    fn insert(&mut self, before: Option<usize>, kind: TokenKind, mark: Mark) {
        let token = Token {
            kind,
            start: mark,
            end: mark,
        };
        match before.and_then(|number| number.checked_sub(self.parsed)) {
            Some(index) if index <= self.queue.len() => self.queue.insert(index, token),
            _ => self.queue.push_back(token),
        }
    }

    /// Takes an indicator of some bytes as a token.
    fn push_indicator(&mut self, kind: TokenKind, length: usize) {
        let start = self.cursor.mark();
        self.cursor.pos += length;
        let end = Mark {
            column: start.column + length as u32,
            ..start
        };
        self.push(kind, start, end);
    }

    // Tokens that are one indicator.

    fn fetch_stream_end(&mut self) -> Fallible<()> {
        if let Some(bad) = self.bad {
            return Err(Box::new(bad.clone()));
        }
        self.cursor.end_line();
        let mark = self.cursor.mark();
        self.unroll_indent(-1, mark);
        self.remove_key()?;
        self.key_allowed = false;
        self.push(TokenKind::StreamEnd, mark, mark);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, kind: TokenKind) -> Fallible<()> {
        let mark = self.cursor.mark();
        self.unroll_indent(-1, mark);
        self.remove_key()?;
        self.key_allowed = false;
        self.push_indicator(kind, 3);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: TokenKind) -> Fallible<()> {
        self.save_key()?;
        let (token, mark) = (self.next_number(), self.cursor.mark());
        self.keys.push(SimpleKey {
            token,
            mark,
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        if self.flow_level > MAX_DEPTH {
            return self.fail(mark, &format!("exceeded max depth of {MAX_DEPTH}"));
        }
        self.key_allowed = true;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind) -> Fallible<()> {
        self.remove_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            // For an empty collection this forgets the collection's own key too: `[]: x` is refused, as in Go.
            if let Some(key) = self.keys.pop() {
                self.forget_key(key.token);
            }
        }
        self.key_allowed = false;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Fallible<()> {
        self.remove_key()?;
        self.key_allowed = true;
        self.push_indicator(TokenKind::FlowEntry, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Fallible<()> {
        if self.flow_level == 0 {
            if !self.key_allowed {
                return self.fail_here("block sequence entries are not allowed in this context");
            }
            let mark = self.cursor.mark();
            self.roll_indent(mark.column, None, TokenKind::BlockSequenceStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.push_indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Fallible<()> {
        if self.flow_level == 0 {
            if !self.key_allowed {
                return self.fail_here("mapping keys are not allowed in this context");
            }
            let mark = self.cursor.mark();
            self.roll_indent(mark.column, None, TokenKind::BlockMappingStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = self.flow_level == 0;
        self.push_indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Fallible<()> {
        let level = self.keys.len() - 1;
        if self.key_is_valid(level)? {
            let key = self.keys[level];
            self.insert(Some(key.token), TokenKind::Key, key.mark);
            let kind = TokenKind::BlockMappingStart;
            self.roll_indent(key.mark.column, Some(key.token), kind, key.mark)?;
            self.keys[level].possible = false;
            self.forget_key(key.token);
            self.key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.key_allowed {
                    return self.fail_here("mapping values are not allowed in this context");
                }
                let mark = self.cursor.mark();
                self.roll_indent(mark.column, None, TokenKind::BlockMappingStart, mark)?;
            }
            self.key_allowed = self.flow_level == 0;
        }
        self.push_indicator(TokenKind::Value, 1);
        Ok(())
    }

    // Tokens with content.

    fn fetch_directive(&mut self) -> Fallible<()> {
        let mark = self.cursor.mark();
        self.unroll_indent(-1, mark);
        self.remove_key()?;
        self.key_allowed = false;
        let token = self.scan_directive()?;
        self.queue.push_back(token);
        Ok(())
    }

    fn fetch_anchor(&mut self) -> Fallible<()> {
        self.save_key()?;
        self.key_allowed = false;
        let token = self.scan_anchor()?;
        self.queue.push_back(token);
        Ok(())
    }

    fn fetch_tag(&mut self) -> Fallible<()> {
        self.save_key()?;
        self.key_allowed = false;
        let token = self.scan_tag()?;
        self.queue.push_back(token);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, literal: bool) -> Fallible<()> {
        self.remove_key()?;
        self.key_allowed = true;
        let start = self.cursor.mark();
        let (content, style) = self.scan_block_scalar(literal, start)?;
        self.push_scalar(content, style, start);
        Ok(())
    }

    fn fetch_quoted(&mut self, quote: u8) -> Fallible<()> {
        let start = self.save_key()?;
        self.key_allowed = false;
        let (content, style) = self.scan_quoted(quote, start)?;
        self.push_scalar(content, style, start);
        Ok(())
    }

    fn fetch_plain(&mut self) -> Fallible<()> {
        let start = self.save_key()?;
        self.key_allowed = false;
        let (content, style) = self.scan_plain(start)?;
        self.push_scalar(content, style, start);
        Ok(())
    }
}
