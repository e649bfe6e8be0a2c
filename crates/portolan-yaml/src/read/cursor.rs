//! A position in the source that moves forward and counts lines and columns.
//!
//! Columns count characters. They are counted only when asked for; for an ASCII source this is one subtraction.

use crate::read::token::Mark;

/// Space or tab.
pub(crate) const BLANK: u8 = 1;
/// CR, LF, the end, or the first byte of a character that may be a line break (U+0085, U+2028, U+2029).
pub(crate) const BREAKISH: u8 = 2;
/// What ends a plain scalar inside `[…]` or `{…}`.
pub(crate) const FLOW: u8 = 4;
/// Letters, digits, `_` and `-`: what names are made of.
pub(crate) const WORD: u8 = 8;
/// `:`
pub(crate) const COLON: u8 = 16;
/// What needs care in a double-quoted scalar.
pub(crate) const DOUBLE: u8 = 32;
/// `'`
pub(crate) const SINGLE: u8 = 64;
/// `.` and `/`, which with [`WORD`] make up nearly all keys.
pub(crate) const PATH: u8 = 128;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' => BLANK,
            0 | b'\r' | b'\n' | 0xc2 | 0xe2 => BREAKISH,
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => FLOW,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => WORD,
            b':' => COLON,
            b'"' | b'\\' => DOUBLE,
            b'\'' => SINGLE,
            b'.' | b'/' => PATH,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// A moving place in the source.
#[derive(Clone)]
pub(crate) struct Cursor<'s> {
    bytes: &'s [u8],
    ascii: bool,
    /// The offset of the next byte.
    pub pos: usize,
    /// The line, from 0.
    pub line: u32,
    line_start: usize,
    /// The column at `counted_pos`, where counting stopped last.
    counted: u32,
    counted_pos: usize,
}

/// The class bits of a byte.
pub(crate) fn class(byte: u8) -> u8 {
    CLASS[byte as usize]
}

impl<'s> Cursor<'s> {
    /// At an offset of a text that is scanned up to `end`.
    pub(crate) fn new(text: &'s str, start: usize, end: usize, line: u32) -> Self {
        let bytes = &text.as_bytes()[..end];
        Self {
            bytes,
            ascii: bytes[start.min(end)..].is_ascii(),
            pos: start,
            line,
            line_start: start,
            counted: 0,
            counted_pos: start,
        }
    }

    /// The byte `ahead` of here; 0 at the end, since no text holds a 0.
    #[inline]
    pub(crate) fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn byte(&self) -> u8 {
        self.peek(0)
    }

    /// The column in characters.
    #[inline]
    pub(crate) fn column(&mut self) -> u32 {
        if self.ascii {
            return (self.pos - self.line_start) as u32;
        }
        let passed = &self.bytes[self.counted_pos..self.pos];
        self.counted += passed.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32;
        self.counted_pos = self.pos;
        self.counted
    }

    #[inline]
    pub(crate) fn mark(&mut self) -> Mark {
        Mark {
            line: self.line,
            column: self.column(),
        }
    }

    /// Whether the line began here.
    pub(crate) fn at_line_start(&self) -> bool {
        self.pos == self.line_start
    }

    pub(crate) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), b' ' | b'\t')
    }

    /// The length in bytes of the line break `ahead` of here, CRLF being one; 0 when there is none.
    #[inline]
    pub(crate) fn break_len(&self, ahead: usize) -> usize {
        match self.peek(ahead) {
            b'\r' if self.peek(ahead + 1) == b'\n' => 2,
            b'\n' | b'\r' => 1,
            0xc2 if self.peek(ahead + 1) == 0x85 => 2,
            0xe2 if self.peek(ahead + 1) == 0x80 && matches!(self.peek(ahead + 2), 0xa8 | 0xa9) => {
                3
            }
            _ => 0,
        }
    }

    #[inline]
    pub(crate) fn is_break(&self, ahead: usize) -> bool {
        self.break_len(ahead) > 0
    }

    /// A line break or the end.
    #[inline]
    pub(crate) fn is_breakz(&self, ahead: usize) -> bool {
        self.peek(ahead) == 0 || self.is_break(ahead)
    }

    /// A blank, a line break or the end.
    #[inline]
    pub(crate) fn is_blankz(&self, ahead: usize) -> bool {
        let class = class(self.peek(ahead));
        class & BLANK != 0 || class & BREAKISH != 0 && self.is_breakz(ahead)
    }

    /// `---` or `...` at the start of a line, followed by nothing or a blank.
    pub(crate) fn at_document_indicator(&self) -> bool {
        self.at_line_start()
            && matches!(
                (self.peek(0), self.peek(1), self.peek(2)),
                (b'-', b'-', b'-') | (b'.', b'.', b'.')
            )
            && self.is_blankz(3)
    }

    /// Passes over spaces.
    #[inline]
    pub(crate) fn skip_spaces(&mut self) {
        self.pos += self.count_spaces(0);
    }

    /// How many spaces stand `ahead` of here; eight are compared at once, since indentation is long.
    #[inline]
    pub(crate) fn count_spaces(&self, ahead: usize) -> usize {
        let mut rest = self.bytes.get(self.pos + ahead..).unwrap_or_default();
        let all = rest.len();
        while let Some((b"        ", more)) = rest.split_first_chunk() {
            rest = more;
        }
        while let [b' ', more @ ..] = rest {
            rest = more;
        }
        all - rest.len()
    }

    /// Passes over blanks.
    pub(crate) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.pos += 1;
        }
    }

    /// Passes over bytes whose class has none of the bits, which never stops inside a character.
    #[inline]
    pub(crate) fn skip_until(&mut self, stop: u8) {
        let rest = &self.bytes[self.pos..];
        self.pos += rest
            .iter()
            .position(|byte| class(*byte) & stop != 0)
            .unwrap_or(rest.len());
    }

    /// How many bytes from here on have one of the bits.
    #[inline]
    pub(crate) fn count_while(&self, bits: u8) -> usize {
        let rest = &self.bytes[self.pos..];
        rest.iter()
            .position(|byte| class(*byte) & bits == 0)
            .unwrap_or(rest.len())
    }

    /// Passes over everything up to the line's end.
    pub(crate) fn skip_to_line_end(&mut self) {
        loop {
            self.skip_until(BREAKISH);
            if self.is_breakz(0) {
                return;
            }
            self.pos += 1;
        }
    }

    /// Passes over a line break, if there is one.
    pub(crate) fn skip_break(&mut self) {
        let length = self.break_len(0);
        if length > 0 {
            self.pos += length;
            self.line += 1;
            self.start_line();
        }
    }

    /// Passes over an LF and the indentation after it.
    #[inline]
    pub(crate) fn skip_line_feed(&mut self, indentation: usize) {
        self.pos += 1;
        self.line += 1;
        self.start_line();
        self.pos += indentation;
    }

    /// Passes over a line break and gives what it means: LF, or itself for U+2028 and U+2029.
    pub(crate) fn read_break(&mut self) -> Option<char> {
        let character = match (self.break_len(0), self.peek(2)) {
            (0, _) => return None,
            (3, 0xa8) => '\u{2028}',
            (3, _) => '\u{2029}',
            _ => '\n',
        };
        self.skip_break();
        Some(character)
    }

    /// The place of the end.
    pub(crate) fn end(mut self) -> Mark {
        loop {
            self.skip_to_line_end();
            if !self.is_break(0) {
                return self.mark();
            }
            self.skip_break();
        }
    }

    /// The end of the stream counts as the start of a line.
    pub(crate) fn end_line(&mut self) {
        if self.column() != 0 {
            self.line += 1;
            self.start_line();
        }
    }

    fn start_line(&mut self) {
        self.line_start = self.pos;
        self.counted = 0;
        self.counted_pos = self.pos;
    }
}
