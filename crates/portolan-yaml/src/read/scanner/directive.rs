//! Directives: `%YAML 1.1` and `%TAG`.

use super::Scanner;
use crate::error::Fallible;
use crate::read::cursor::{WORD, class};
use crate::read::token::{Mark, TagParts, Token, TokenKind};

impl Scanner<'_> {
    pub(super) fn scan_directive(&mut self) -> Fallible<Token> {
        let start = self.cursor.mark();
        self.cursor.pos += 1;
        let name = self.scan_word();
        if name.is_empty() {
            return self.fail(start, "could not find expected directive name");
        }
        if !self.cursor.is_blankz(0) {
            return self.fail(start, "found unexpected non-alphabetical character");
        }
        let kind = match name.as_str() {
            "YAML" => self.scan_version(start)?,
            "TAG" => self.scan_tag_directive(start)?,
            _ => return self.fail(start, "found unknown directive name"),
        };
        let end = self.cursor.mark();
        self.cursor.skip_blanks();
        if self.cursor.byte() == b'#' {
            self.cursor.skip_to_line_end();
        }
        if !self.cursor.is_breakz(0) {
            return self.fail(start, "did not find expected comment or line break");
        }
        self.cursor.skip_break();
        Ok(Token { kind, start, end })
    }

    /// Letters, digits, `_` and `-`.
    pub(super) fn scan_word(&mut self) -> String {
        let from = self.cursor.pos;
        while class(self.cursor.byte()) & WORD != 0 {
            self.cursor.pos += 1;
        }
        self.text[from..self.cursor.pos].to_owned()
    }

    fn scan_version(&mut self, start: Mark) -> Fallible<TokenKind> {
        self.cursor.skip_blanks();
        let major = self.scan_version_number(start)?;
        if self.cursor.byte() != b'.' {
            return self.fail(start, "did not find expected digit or '.' character");
        }
        self.cursor.pos += 1;
        let minor = self.scan_version_number(start)?;
        Ok(TokenKind::VersionDirective { major, minor })
    }

    fn scan_version_number(&mut self, start: Mark) -> Fallible<u8> {
        let (mut value, mut length) = (0, 0);
        while self.cursor.byte().is_ascii_digit() {
            length += 1;
            if length > 2 {
                return self.fail(start, "found extremely long version number");
            }
            value = value * 10 + (self.cursor.byte() - b'0');
            self.cursor.pos += 1;
        }
        match length {
            0 => self.fail(start, "did not find expected version number"),
            _ => Ok(value),
        }
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Fallible<TokenKind> {
        self.cursor.skip_blanks();
        let handle = self.scan_tag_handle(true, start)?;
        if !self.cursor.is_blank(0) {
            return self.fail(start, "did not find expected whitespace");
        }
        self.cursor.skip_blanks();
        let rest = self.scan_tag_uri("", start)?;
        if !self.cursor.is_blankz(0) {
            return self.fail(start, "did not find expected whitespace or line break");
        }
        Ok(TokenKind::TagDirective(Box::new(TagParts { handle, rest })))
    }
}
