//! Plain scalars: text without quotes, over one or several lines.

use super::Scanner;
use super::fold::Fold;
use crate::error::Fallible;
use crate::read::cursor::{BLANK, BREAKISH, COLON, FLOW};
use crate::read::token::{Content, Mark};
use crate::value::node::Style;

/// A scalar's text as it grows: a slice of the source until a line is folded.
struct Growing {
    start: usize,
    end: usize,
    folded: Option<String>,
}

impl Scanner<'_> {
    pub(crate) fn scan_plain(&mut self, start: Mark) -> Fallible<(Content, Style)> {
        let indent = (self.indent + 1) as u32;
        let from = self.cursor.pos;
        let mut text = Growing {
            start: from,
            end: from,
            folded: None,
        };
        // The line breaks since the last piece of text, which count only if more text follows.
        let mut fold: Option<Fold> = None;
        loop {
            if self.cursor.at_document_indicator() || self.cursor.byte() == b'#' {
                break;
            }
            let piece = self.cursor.pos;
            self.skip_plain_word();
            if self.cursor.pos > piece {
                text.append(fold.take().as_ref(), piece, self.cursor.pos, self.text);
            }
            if !self.skip_plain_gap(&mut fold, indent, start)? {
                break;
            }
            if fold.is_some() && self.flow_level == 0 && self.cursor.column() < indent {
                break;
            }
        }
        if fold.is_some() {
            self.key_allowed = true;
        }
        Ok((text.into_content(), Style::Plain))
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

    /// Passes over blanks and line breaks; false when there are none.
    fn skip_plain_gap(
        &mut self,
        fold: &mut Option<Fold>,
        indent: u32,
        start: Mark,
    ) -> Fallible<bool> {
        let from = self.cursor.pos;
        loop {
            match self.cursor.byte() {
                b' ' => self.cursor.pos += 1,
                b'\t' => {
                    if fold.is_some() && self.cursor.column() < indent {
                        let message = "found a tab character that violates indentation";
                        return self.fail(start, message);
                    }
                    self.cursor.pos += 1;
                }
                _ => match (self.cursor.read_break(), &mut *fold) {
                    (None, _) => return Ok(self.cursor.pos > from),
                    (Some(first), None) => *fold = Some(Fold::new(first)),
                    (Some(next), Some(fold)) => fold.more.push(next),
                },
            }
        }
    }
}

impl Growing {
    fn append(&mut self, fold: Option<&Fold>, from: usize, to: usize, source: &str) {
        if fold.is_none() && self.folded.is_none() {
            self.end = to;
            return;
        }
        let folded = self
            .folded
            .get_or_insert_with(|| source[self.start..self.end].to_owned());
        match fold {
            Some(fold) => {
                fold.write(folded);
                folded.push_str(&source[from..to]);
            }
            // The blanks since the last piece belong to the text.
            None => folded.push_str(&source[self.end..to]),
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
