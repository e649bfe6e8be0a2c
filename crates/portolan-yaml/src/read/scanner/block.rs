//! Block scalars: `|` keeps line breaks, `>` folds them.

use super::Scanner;
use crate::error::Fallible;
use crate::read::token::{Content, Mark};
use crate::value::node::Style;

/// What becomes of the line breaks at the end.
#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    pub(crate) fn scan_block_scalar(
        &mut self,
        literal: bool,
        start: Mark,
    ) -> Fallible<(Content, Style)> {
        self.cursor.pos += 1;
        let (chomping, increment) = self.scan_block_header(start)?;
        let mut indent = match increment {
            0 => 0,
            more => self.indent.max(0) as u32 + more,
        };
        let text = self.scan_block_text(literal, chomping, &mut indent, start)?;
        let style = if literal {
            Style::Literal
        } else {
            Style::Folded
        };
        Ok((Content::Owned(Box::new(text)), style))
    }

    fn scan_block_text(
        &mut self,
        literal: bool,
        chomping: Chomping,
        indent: &mut u32,
        start: Mark,
    ) -> Fallible<String> {
        let (mut text, mut first_break, mut more_breaks) = (String::new(), None, String::new());
        self.scan_block_breaks(indent, &mut more_breaks, start)?;
        let mut after_blank = false;
        while self.cursor.byte() != 0 && self.cursor.column() == *indent {
            let blank = self.cursor.is_blank(0);
            let folds = !literal && !after_blank && !blank && first_break == Some('\n');
            if !folds {
                text.extend(first_break);
            } else if more_breaks.is_empty() {
                text.push(' ');
            }
            text.push_str(&more_breaks);
            more_breaks.clear();
            after_blank = blank;
            let from = self.cursor.pos;
            self.cursor.skip_to_line_end();
            text.push_str(&self.text[from..self.cursor.pos]);
            first_break = self.cursor.read_break();
            self.scan_block_breaks(indent, &mut more_breaks, start)?;
        }
        if chomping != Chomping::Strip {
            text.extend(first_break);
        }
        if chomping == Chomping::Keep {
            text.push_str(&more_breaks);
        }
        Ok(text)
    }

    /// `|2-`: chomping and indentation, in either order, then nothing but a comment.
    fn scan_block_header(&mut self, start: Mark) -> Fallible<(Chomping, u32)> {
        let mut chomping = self.scan_chomping();
        let mut increment = 0;
        if self.cursor.byte().is_ascii_digit() {
            increment = u32::from(self.cursor.byte() - b'0');
            if increment == 0 {
                return self.fail(start, "found an indentation indicator equal to 0");
            }
            self.cursor.pos += 1;
            chomping = chomping.or_else(|| self.scan_chomping());
        }
        self.cursor.skip_blanks();
        if self.cursor.byte() == b'#' {
            self.cursor.skip_to_line_end();
        }
        if !self.cursor.is_breakz(0) {
            return self.fail(start, "did not find expected comment or line break");
        }
        self.cursor.skip_break();
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn scan_chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.cursor.byte() {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.cursor.pos += 1;
        Some(chomping)
    }

    /// Reads empty lines and the indentation of the next one; settles the indentation when it is not known yet.
    fn scan_block_breaks(
        &mut self,
        indent: &mut u32,
        breaks: &mut String,
        start: Mark,
    ) -> Fallible<()> {
        let mut deepest = 0;
        loop {
            let mut column = self.cursor.column();
            while (*indent == 0 || column < *indent) && self.cursor.byte() == b' ' {
                self.cursor.pos += 1;
                column += 1;
            }
            deepest = deepest.max(column);
            if (*indent == 0 || column < *indent) && self.cursor.byte() == b'\t' {
                return self.fail(
                    start,
                    "found a tab character where an indentation space is expected",
                );
            }
            match self.cursor.read_break() {
                Some(line_break) => breaks.push(line_break),
                None => break,
            }
        }
        if *indent == 0 {
            *indent = deepest.max((self.indent + 1) as u32).max(1);
        }
        Ok(())
    }
}
