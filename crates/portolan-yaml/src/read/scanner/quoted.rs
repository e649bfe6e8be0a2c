//! Quoted scalars: `'…'`, where only the quote itself is doubled, and `"…"` with escapes; both fold line breaks.

use super::Scanner;
use super::fold::Fold;
use crate::error::Fallible;
use crate::read::cursor::{BLANK, BREAKISH, DOUBLE, SINGLE};
use crate::read::token::{Content, Mark};
use crate::value::node::Style;

impl Scanner<'_> {
    pub(crate) fn scan_quoted(&mut self, quote: u8, start: Mark) -> Fallible<(Content, Style)> {
        self.cursor.pos += 1;
        let content = match self.scan_simple_quoted(quote) {
            Some(content) => content,
            None => Content::Owned(Box::new(self.scan_folded_quoted(quote, start)?)),
        };
        let style = if quote == b'"' {
            Style::Double
        } else {
            Style::Single
        };
        self.cursor.pos += 1;
        Ok((content, style))
    }

    /// The nearly always case: one line, nothing to resolve. Leaves the cursor where it was otherwise.
    fn scan_simple_quoted(&mut self, quote: u8) -> Option<Content> {
        let from = self.cursor.pos;
        let stop = if quote == b'"' { DOUBLE } else { SINGLE };
        loop {
            self.cursor.skip_until(stop | BREAKISH);
            let byte = self.cursor.byte();
            if matches!(byte, 0xc2 | 0xe2) && !self.cursor.is_break(0) {
                self.cursor.pos += 1;
            } else if byte == quote && (quote == b'"' || self.cursor.peek(1) != b'\'') {
                return Some(Content::Slice(from as u32, self.cursor.pos as u32));
            } else {
                self.cursor.pos = from;
                return None;
            }
        }
    }

    fn scan_folded_quoted(&mut self, quote: u8, start: Mark) -> Fallible<String> {
        let mut text = String::new();
        loop {
            if self.cursor.at_document_indicator() {
                return self.fail(start, "found unexpected document indicator");
            }
            if self.cursor.byte() == 0 {
                return self.unexpected_end(start);
            }
            let joined = self.read_quoted_word(quote, start, &mut text)?;
            if self.cursor.byte() == quote {
                return Ok(text);
            }
            self.fold_quoted_gap(joined, &mut text);
        }
    }

    fn unexpected_end<T>(&mut self, start: Mark) -> Fallible<T> {
        match self.bad {
            Some(bad) => Err(Box::new(bad.clone())),
            None => self.fail(start, "found unexpected end of stream"),
        }
    }

    /// Reads up to a blank, a line break or the closing quote; true after an escaped line break.
    fn read_quoted_word(&mut self, quote: u8, start: Mark, text: &mut String) -> Fallible<bool> {
        let stop = BLANK | BREAKISH | if quote == b'"' { DOUBLE } else { SINGLE };
        loop {
            let from = self.cursor.pos;
            self.cursor.skip_until(stop);
            while matches!(self.cursor.byte(), 0xc2 | 0xe2) && !self.cursor.is_break(0) {
                self.cursor.pos += 1;
                self.cursor.skip_until(stop);
            }
            text.push_str(&self.text[from..self.cursor.pos]);
            match self.cursor.byte() {
                b'\'' if quote == b'\'' && self.cursor.peek(1) == b'\'' => {
                    text.push('\'');
                    self.cursor.pos += 2;
                }
                b'\\' if self.cursor.is_break(1) => {
                    self.cursor.pos += 1;
                    self.cursor.skip_break();
                    return Ok(true);
                }
                b'\\' => self.read_escape(start, text)?,
                _ => return Ok(false),
            }
        }
    }

    fn read_escape(&mut self, start: Mark, text: &mut String) -> Fallible<()> {
        let digits = match self.cursor.peek(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            other => {
                let Some(character) = escaped(other) else {
                    return self.fail(start, "found unknown escape character");
                };
                text.push(character);
                self.cursor.pos += 2;
                return Ok(());
            }
        };
        self.cursor.pos += 2;
        let mut value = 0u32;
        for ahead in 0..digits {
            let Some(digit) = char::from(self.cursor.peek(ahead)).to_digit(16) else {
                return self.fail(start, "did not find expected hexdecimal number");
            };
            value = value << 4 | digit;
        }
        let Some(character) = char::from_u32(value) else {
            return self.fail(start, "found invalid Unicode character escape code");
        };
        text.push(character);
        self.cursor.pos += digits;
        Ok(())
    }

    /// Blanks between words stay; around line breaks they vanish and the breaks fold.
    fn fold_quoted_gap(&mut self, joined: bool, text: &mut String) {
        let from = self.cursor.pos;
        self.cursor.skip_blanks();
        if !joined && !self.cursor.is_break(0) {
            text.push_str(&self.text[from..self.cursor.pos]);
            return;
        }
        // After an escaped line break nothing folds to a space.
        let mut fold = None;
        let mut more = String::new();
        if !joined {
            fold = self.cursor.read_break().map(Fold::new);
        }
        loop {
            self.cursor.skip_blanks();
            match self.cursor.read_break() {
                Some(next) => more.push(next),
                None => break,
            }
        }
        match fold {
            Some(mut fold) => {
                fold.more = more;
                fold.write(text);
            }
            None => text.push_str(&more),
        }
    }
}

/// The character of an escape with one letter.
fn escaped(letter: u8) -> Option<char> {
    Some(match letter {
        b'0' => '\0',
        b'a' => '\x07',
        b'b' => '\x08',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\x0b',
        b'f' => '\x0c',
        b'r' => '\r',
        b'e' => '\x1b',
        b' ' => ' ',
        b'"' => '"',
        b'\'' => '\'',
        b'\\' => '\\',
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
