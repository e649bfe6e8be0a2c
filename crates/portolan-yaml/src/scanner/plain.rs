//! Plain scalars: text without quotes, over one or several lines.

use super::Scanner;
use crate::cursor::{BLANK, BREAKISH, COLON, FLOW};
use crate::error::Error;
use crate::node::Style;
use crate::token::{Content, Mark, Token, TokenKind};

/// A scalar's text as it grows: a slice of the source until a line is folded.
struct Growing {
    start: usize,
    end: usize,
    folded: Option<String>,
}

/// The blanks and line breaks after a piece of text, which count only if more text follows.
#[derive(Default)]
struct Gap {
    lines: bool,
    first_break: String,
    more_breaks: String,
}

impl Scanner<'_> {
    pub(super) fn scan_plain(&mut self) -> Result<Token, Error> {
        let start = self.cursor.mark();
        let mut end = start;
        let indent = (self.indent + 1) as u32;
        let from = self.cursor.pos;
        let mut text = Growing {
            start: from,
            end: from,
            folded: None,
        };
        let mut gap = Gap::default();
        loop {
            if self.cursor.at_document_indicator() || self.cursor.byte() == b'#' {
                break;
            }
            let piece = self.cursor.pos;
            self.skip_plain_word();
            if self.cursor.pos > piece {
                text.append(&gap, piece, self.cursor.pos, self.text);
                gap = Gap::default();
                end = self.cursor.mark();
            }
            if !(self.cursor.is_blank(0) || self.cursor.is_break(0)) {
                break;
            }
            self.read_gap(&mut gap, indent, start)?;
            if self.flow_level == 0 && gap.lines && self.cursor.column() < indent {
                break;
            }
        }
        if gap.lines {
            self.key_allowed = true;
        }
        Ok(Token {
            kind: TokenKind::Scalar(text.into_content(), Style::Plain),
            start,
            end,
        })
    }

    /// Passes over text up to a blank, a line break, or what ends a plain scalar.
    fn skip_plain_word(&mut self) {
        let stop = match self.flow_level {
            0 => BLANK | BREAKISH | COLON,
            _ => BLANK | BREAKISH | COLON | FLOW,
        };
        loop {
            self.cursor.skip_until(stop);
            match self.cursor.byte() {
                b':' if !self.cursor.is_blankz(1) => self.cursor.pos += 1,
                0xc2 | 0xe2 if !self.cursor.is_break(0) => self.cursor.pos += 1,
                _ => return,
            }
        }
    }

    fn read_gap(&mut self, gap: &mut Gap, indent: u32, start: Mark) -> Result<(), Error> {
        loop {
            match self.cursor.byte() {
                b' ' => self.cursor.pos += 1,
                b'\t' => {
                    if gap.lines && self.cursor.column() < indent {
                        let message = "found a tab character that violates indentation";
                        return self.fail(start, message);
                    }
                    self.cursor.pos += 1;
                }
                _ if !self.cursor.is_break(0) => return Ok(()),
                _ if gap.lines => self.cursor.read_break(&mut gap.more_breaks),
                _ => {
                    gap.lines = true;
                    self.cursor.read_break(&mut gap.first_break);
                }
            }
        }
    }
}

impl Gap {
    /// One line break folds to a space, more keep all but the first.
    fn fold_into(&self, text: &mut String) {
        if !self.first_break.starts_with('\n') {
            text.push_str(&self.first_break);
            text.push_str(&self.more_breaks);
        } else if self.more_breaks.is_empty() {
            text.push(' ');
        } else {
            text.push_str(&self.more_breaks);
        }
    }
}

impl Growing {
    fn append(&mut self, gap: &Gap, from: usize, to: usize, source: &str) {
        if !gap.lines && self.folded.is_none() {
            self.end = to;
            return;
        }
        let folded = self
            .folded
            .get_or_insert_with(|| source[self.start..self.end].to_owned());
        if gap.lines {
            gap.fold_into(folded);
            folded.push_str(&source[from..to]);
        } else {
            // The blanks since the last piece belong to the text.
            folded.push_str(&source[self.end..to]);
        }
        self.end = to;
    }

    fn into_content(self) -> Content {
        match self.folded {
            Some(text) => Content::Owned(Box::new(text)),
            None => Content::Slice(self.start as u32, self.end as u32),
        }
    }
}
