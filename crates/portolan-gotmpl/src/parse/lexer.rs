//! Splits a template text into tokens, on demand.
//!
//! The lexer has two modes: text up to the next opening delimiter, and the inside of an action. Trim markers and
//! comments disappear here. An error is a token too ([`TokenKind::Error`]), so the parser can add its context to the
//! message.

/// What a token is; the order of the groups decides how errors name a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Error,
    End,
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Assign,
    Declare,
    Pipe,
    Comma,
    Char,
    LeftParen,
    RightParen,
    Bool,
    CharConstant,
    Complex,
    Number,
    String,
    RawString,
    Field,
    Variable,
    Identifier,
    Dot,
    Nil,
    Keyword(Keyword),
}

/// The words that control flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'s> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'s str,
    /// Byte offset in the text; its line is counted only for errors.
    pub(crate) start: usize,
}

/// What encloses actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delimiters {
    /// Opens an action.
    pub(crate) left: String,
    /// Closes an action.
    pub(crate) right: String,
}

pub(crate) struct Lexer<'s> {
    input: &'s str,
    delims: &'s Delimiters,
    position: usize,
    start: usize,
    paren_depth: usize,
    inside_action: bool,
    /// Line ends inside the comments skipped so far.
    comment_lines: usize,
    /// The words of the last error token.
    pub(crate) message: String,
}

const LEFT_COMMENT: &str = "/*";
const RIGHT_COMMENT: &str = "*/";

/// The bytes that a word of ASCII is made of.
const IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

impl Default for Delimiters {
    fn default() -> Self {
        Self {
            left: "{{".to_owned(),
            right: "}}".to_owned(),
        }
    }
}

impl Delimiters {
    /// Whether the closing delimiter begins with that byte; asked for every token.
    #[inline]
    fn may_close(&self, byte: u8) -> bool {
        self.right.as_bytes().first() == Some(&byte)
    }

    /// Whether the closing delimiter stands at the beginning.
    fn closes(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(self.right.as_bytes())
    }

    /// Where the next opening delimiter stands. Its first byte is rare in text, so looking for that is quickest.
    pub(crate) fn find_left(&self, text: &str) -> Option<usize> {
        let left = self.left.as_bytes();
        let bytes = text.as_bytes();
        memchr::memchr_iter(*left.first()?, bytes).find(|at| bytes[*at..].starts_with(left))
    }
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(input: &'s str, delims: &'s Delimiters) -> Self {
        Self {
            input,
            delims,
            position: 0,
            start: 0,
            paren_depth: 0,
            inside_action: false,
            comment_lines: 0,
            message: String::new(),
        }
    }

    /// A lexer over the inside of an action, to print a part of it again.
    pub(crate) fn inside_action(input: &'s str, delims: &'s Delimiters) -> Self {
        Self {
            inside_action: true,
            ..Self::new(input, delims)
        }
    }

    pub(crate) fn next(&mut self) -> Token<'s> {
        if self.inside_action {
            self.action_token()
        } else {
            self.text_token()
        }
    }

    /// How far tokens have been cut: the end of the newest one.
    pub(crate) fn consumed(&self) -> usize {
        self.start
    }

    /// Whether the next byte is a point, as that of a field.
    pub(crate) fn is_at_point(&self) -> bool {
        self.peek_byte() == Some(b'.')
    }

    /// A part of the text.
    pub(crate) fn text(&self, start: usize, end: usize) -> &'s str {
        self.input.get(start..end).unwrap_or_default()
    }

    /// The line of an offset, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        let before = self.input.as_bytes().get(..offset);
        1 + line_ends(before.unwrap_or_default())
    }

    /// The line of an offset as Go before 1.24 counts it: without the lines of comments.
    pub(crate) fn line_without_comments(&self, offset: usize) -> usize {
        let mut again = Self::new(self.input, self.delims);
        loop {
            let token = again.next();
            if token.start >= offset || matches!(token.kind, TokenKind::End | TokenKind::Error) {
                return self.line(offset) - again.comment_lines;
            }
        }
    }

    /// Text, a left delimiter, or the end; comments are skipped.
    fn text_token(&mut self) -> Token<'s> {
        loop {
            let rest = &self.input[self.position..];
            let Some(offset) = self.delims.find_left(rest) else {
                self.position = self.input.len();
                return if self.position > self.start {
                    self.emit(TokenKind::Text)
                } else {
                    self.emit(TokenKind::End)
                };
            };
            let delim = self.position + offset;
            if offset > 0 {
                let kept = if has_left_trim(&self.bytes()[delim + self.delims.left.len()..]) {
                    offset - trailing_spaces(&rest.as_bytes()[..offset])
                } else {
                    offset
                };
                self.position += kept;
                let token = self.emit(TokenKind::Text);
                self.position = delim;
                self.ignore();
                if !token.text.is_empty() {
                    return token;
                }
            }
            if let Some(token) = self.left_delim() {
                return token;
            }
        }
    }

    /// The left delimiter at the current place; none when it opened a comment that was skipped.
    fn left_delim(&mut self) -> Option<Token<'s>> {
        self.position += self.delims.left.len();
        let after_marker =
            self.position + usize::from(has_left_trim(&self.bytes()[self.position..])) * 2;
        if self.bytes()[after_marker..].starts_with(LEFT_COMMENT.as_bytes()) {
            self.position = after_marker;
            self.ignore();
            return self.comment();
        }
        let token = self.emit(TokenKind::LeftDelim);
        self.inside_action = true;
        self.position = after_marker;
        self.ignore();
        self.paren_depth = 0;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token<'s>> {
        let body = self.position + LEFT_COMMENT.len();
        let Some(length) = self.input[body..].find(RIGHT_COMMENT) else {
            return Some(self.error("unclosed comment"));
        };
        // An error here is told at the comment's start, as nothing was emitted since.
        let end = body + length + RIGHT_COMMENT.len();
        let Some(trim) = self.right_delim_at(end) else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.comment_lines += line_ends(&self.bytes()[self.position..end]);
        self.position = end;
        self.skip_right_delim(trim);
        self.ignore();
        None
    }

    /// Whether a right delimiter stands at an offset, and if so whether it trims.
    fn right_delim_at(&self, offset: usize) -> Option<bool> {
        let rest = &self.bytes()[offset..];
        if has_right_trim(rest) && self.delims.closes(&rest[2..]) {
            return Some(true);
        }
        self.delims.closes(rest).then_some(false)
    }

    fn skip_right_delim(&mut self, trim: bool) {
        self.position += self.delims.right.len();
        if trim {
            self.position += 2;
            self.position += leading_spaces(&self.bytes()[self.position..]);
        }
    }

    fn right_delim(&mut self, trim: bool) -> Token<'s> {
        if trim {
            self.position += 2;
            self.ignore();
        }
        self.position += self.delims.right.len();
        let token = self.emit(TokenKind::RightDelim);
        if trim {
            self.position += leading_spaces(&self.bytes()[self.position..]);
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn action_token(&mut self) -> Token<'s> {
        let Some(byte) = self.peek_byte() else {
            return self.error("unclosed action");
        };
        if (is_space(byte) || self.delims.may_close(byte))
            && let Some(trim) = self.right_delim_at(self.position)
        {
            if self.paren_depth > 0 {
                return self.error("unclosed left paren");
            }
            return self.right_delim(trim);
        }
        if !byte.is_ascii() {
            return self.wide_token();
        }
        self.position += 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => self.space(),
            b'=' => self.emit(TokenKind::Assign),
            b':' if self.eat(b'=') => self.emit(TokenKind::Declare),
            b':' => self.error("expected :="),
            b'|' => self.emit(TokenKind::Pipe),
            b'"' => self.quoted(b'"', TokenKind::String, "unterminated quoted string"),
            b'\'' => self.quoted(
                b'\'',
                TokenKind::CharConstant,
                "unterminated character constant",
            ),
            b'`' => self.raw_quoted(),
            b'$' => self.field_or_variable(TokenKind::Variable),
            // A point that ends the text is read as a number, and is a bad one.
            b'.' if self.peek_byte().is_some_and(|b| !b.is_ascii_digit()) => {
                self.field_or_variable(TokenKind::Field)
            }
            b'.' | b'+' | b'-' | b'0'..=b'9' => self.number(),
            b'(' => {
                self.paren_depth += 1;
                self.emit(TokenKind::LeftParen)
            }
            b')' if self.paren_depth == 0 => self.error("unexpected right paren"),
            b')' => {
                self.paren_depth -= 1;
                self.emit(TokenKind::RightParen)
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.word(),
            b',' => self.emit(TokenKind::Comma),
            b' '..=b'~' => self.emit(TokenKind::Char),
            _ => self.unrecognized(char::from(byte)),
        }
    }

    /// A token that begins beyond ASCII: a word, or a mistake.
    fn wide_token(&mut self) -> Token<'s> {
        match self.peek() {
            Some(character) if is_alphanumeric(character) => {
                self.position += character.len_utf8();
                self.word()
            }
            Some(character) => {
                self.position += character.len_utf8();
                self.unrecognized(character)
            }
            None => self.error("unclosed action"),
        }
    }

    fn unrecognized(&mut self, character: char) -> Token<'s> {
        let message = format!("unrecognized character in action: {}", unicode(character));
        self.error(&message)
    }

    /// A run of spaces; the last of them may belong to a trimming right delimiter.
    fn space(&mut self) -> Token<'s> {
        let more = leading_spaces(&self.bytes()[self.position..]);
        self.position += more;
        if self.right_delim_at(self.position - 1) == Some(true) {
            self.position -= 1;
            if more == 0 {
                return self.right_delim(true);
            }
        }
        self.emit(TokenKind::Space)
    }

    fn word(&mut self) -> Token<'s> {
        self.alphanumerics();
        if let Some(error) = self.check_terminator() {
            return error;
        }
        let mut token = self.emit(TokenKind::Identifier);
        token.kind = match token.text {
            "true" | "false" => TokenKind::Bool,
            "nil" => TokenKind::Nil,
            word => keyword(word).map_or(TokenKind::Identifier, TokenKind::Keyword),
        };
        token
    }

    fn field_or_variable(&mut self, kind: TokenKind) -> Token<'s> {
        if self.at_terminator() {
            return self.emit(if kind == TokenKind::Field {
                TokenKind::Dot
            } else {
                kind
            });
        }
        self.alphanumerics();
        match self.check_terminator() {
            Some(error) => error,
            None => self.emit(kind),
        }
    }

    fn alphanumerics(&mut self) {
        loop {
            let rest = self.bytes().get(self.position..).unwrap_or_default();
            let word = rest.iter().take_while(|byte| IN_WORD[usize::from(**byte)]);
            let length = word.count();
            self.position += length;
            match rest.get(length) {
                Some(byte) if !byte.is_ascii() => {}
                _ => return,
            }
            match self.peek() {
                Some(character) if is_alphanumeric(character) => {
                    self.position += character.len_utf8();
                }
                _ => return,
            }
        }
    }

    fn check_terminator(&mut self) -> Option<Token<'s>> {
        if self.at_terminator() {
            return None;
        }
        let character = self.peek()?;
        let message = format!("bad character {}", unicode(character));
        Some(self.error(&message))
    }

    fn at_terminator(&self) -> bool {
        match self.peek_byte() {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(') => {
                true
            }
            Some(byte) => {
                self.delims.may_close(byte) && self.delims.closes(&self.bytes()[self.position..])
            }
        }
    }

    fn quoted(&mut self, quote: u8, kind: TokenKind, unterminated: &str) -> Token<'s> {
        while let Some(byte) = self.peek_byte() {
            self.position += 1;
            match byte {
                b'\\' if !matches!(self.peek_byte(), None | Some(b'\n')) => {
                    self.position += self.peek().map_or(0, char::len_utf8);
                }
                b'\n' | b'\\' => break,
                _ if byte == quote => return self.emit(kind),
                _ => {}
            }
        }
        self.error(unterminated)
    }

    fn raw_quoted(&mut self) -> Token<'s> {
        match memchr::memchr(b'`', &self.bytes()[self.position..]) {
            Some(length) => {
                self.position += length + 1;
                self.emit(TokenKind::RawString)
            }
            None => self.error("unterminated raw quoted string"),
        }
    }

    fn number(&mut self) -> Token<'s> {
        self.position = self.start;
        if !self.scan_number() {
            return self.bad_number();
        }
        if !matches!(self.peek_byte(), Some(b'+' | b'-')) {
            return self.emit(TokenKind::Number);
        }
        if !self.scan_number() || !self.input[..self.position].ends_with('i') {
            return self.bad_number();
        }
        self.emit(TokenKind::Complex)
    }

    fn bad_number(&mut self) -> Token<'s> {
        let number = &self.input[self.start..self.position];
        let message = format!(
            "bad number syntax: {}",
            crate::fmt::quote(number.as_bytes(), false)
        );
        self.error(&message)
    }

    fn scan_number(&mut self) -> bool {
        self.eat_any(b"+-");
        let mut digits: &[u8] = b"0123456789_";
        if self.eat(b'0') {
            if self.eat_any(b"xX") {
                digits = b"0123456789abcdefABCDEF_";
            } else if self.eat_any(b"oO") {
                digits = b"01234567_";
            } else if self.eat_any(b"bB") {
                digits = b"01_";
            }
        }
        self.eat_run(digits);
        if self.eat(b'.') {
            self.eat_run(digits);
        }
        let exponent: &[u8] = match digits.len() {
            11 => b"eE",
            23 => b"pP",
            _ => b"",
        };
        if self.eat_any(exponent) {
            self.eat_any(b"+-");
            self.eat_run(b"0123456789_");
        }
        self.eat(b'i');
        match self.peek() {
            Some(character) if is_alphanumeric(character) => {
                self.position += character.len_utf8();
                false
            }
            _ => true,
        }
    }

    #[inline]
    fn bytes(&self) -> &'s [u8] {
        self.input.as_bytes()
    }

    #[inline]
    fn peek_byte(&self) -> Option<u8> {
        self.bytes().get(self.position).copied()
    }

    fn peek(&self) -> Option<char> {
        self.input[self.position..].chars().next()
    }

    fn eat(&mut self, expected: u8) -> bool {
        let found = self.peek_byte() == Some(expected);
        self.position += usize::from(found);
        found
    }

    fn eat_any(&mut self, set: &[u8]) -> bool {
        let found = self.peek_byte().is_some_and(|byte| set.contains(&byte));
        self.position += usize::from(found);
        found
    }

    fn eat_run(&mut self, set: &[u8]) {
        while self.eat_any(set) {}
    }

    fn ignore(&mut self) {
        self.start = self.position;
    }

    fn emit(&mut self, kind: TokenKind) -> Token<'s> {
        let token = Token {
            kind,
            text: &self.input[self.start..self.position],
            start: self.start,
        };
        self.ignore();
        token
    }

    fn error(&mut self, message: &str) -> Token<'s> {
        message.clone_into(&mut self.message);
        let token = Token {
            kind: TokenKind::Error,
            text: "",
            start: self.start,
        };
        self.position = self.input.len();
        self.start = self.position;
        self.inside_action = false;
        token
    }
}

fn keyword(word: &str) -> Option<Keyword> {
    Some(match word {
        "block" => Keyword::Block,
        "break" => Keyword::Break,
        "continue" => Keyword::Continue,
        "define" => Keyword::Define,
        "else" => Keyword::Else,
        "end" => Keyword::End,
        "if" => Keyword::If,
        "range" => Keyword::Range,
        "template" => Keyword::Template,
        "with" => Keyword::With,
        _ => return None,
    })
}

fn line_ends(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn leading_spaces(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_space(**byte)).count()
}

fn trailing_spaces(bytes: &[u8]) -> usize {
    let spaces = bytes.iter().rev().take_while(|byte| is_space(**byte));
    spaces.count()
}

fn has_left_trim(bytes: &[u8]) -> bool {
    matches!(bytes, [b'-', space, ..] if is_space(*space))
}

fn has_right_trim(bytes: &[u8]) -> bool {
    matches!(bytes, [space, b'-', ..] if is_space(*space))
}

/// Letters, decimal digits and the underscore, of any script.
fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphabetic() || character.is_numeric()
}

/// A character as `%#U` prints it.
fn unicode(character: char) -> String {
    let code = u32::from(character);
    if crate::fmt::is_print(character) {
        format!("U+{code:04X} '{character}'")
    } else {
        format!("U+{code:04X}")
    }
}
