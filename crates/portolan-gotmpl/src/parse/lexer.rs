//! Tokens of a template text, cut on demand.
//!
//! The lexer knows two modes: text up to the next opening delimiter, and the inside of an action. Trim markers and
//! comments disappear here. A mistake is a token too ([`TokenKind::Error`]), so that the parser can word it with
//! what it was doing.

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
    /// Byte offset in the text.
    pub(crate) start: usize,
    /// Line of the start, from 1.
    pub(crate) line: usize,
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
    line: usize,
    start_line: usize,
    paren_depth: usize,
    inside_action: bool,
    /// The words of the last error token.
    pub(crate) message: String,
}

const LEFT_COMMENT: &str = "/*";
const RIGHT_COMMENT: &str = "*/";
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

impl Default for Delimiters {
    fn default() -> Self {
        Self {
            left: "{{".to_owned(),
            right: "}}".to_owned(),
        }
    }
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(input: &'s str, delims: &'s Delimiters) -> Self {
        Self {
            input,
            delims,
            position: 0,
            start: 0,
            line: 1,
            start_line: 1,
            paren_depth: 0,
            inside_action: false,
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

    /// A part of the text.
    pub(crate) fn text(&self, start: usize, end: usize) -> &'s str {
        self.input.get(start..end).unwrap_or_default()
    }

    /// Text, a left delimiter, or the end; comments are skipped.
    fn text_token(&mut self) -> Token<'s> {
        loop {
            let rest = &self.input[self.position..];
            let Some(offset) = rest.find(&self.delims.left) else {
                self.move_to(self.input.len());
                return if self.position > self.start {
                    self.emit(TokenKind::Text)
                } else {
                    self.emit(TokenKind::End)
                };
            };
            let delim = self.position + offset;
            if offset > 0 {
                let after = &self.input[delim + self.delims.left.len()..];
                let text = &rest[..offset];
                let kept = if has_left_trim(after) {
                    text.trim_end_matches(SPACES).len()
                } else {
                    text.len()
                };
                self.move_to(self.position + kept);
                let token = self.emit(TokenKind::Text);
                self.move_to(delim);
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
            self.position + usize::from(has_left_trim(&self.input[self.position..])) * 2;
        if self.input[after_marker..].starts_with(LEFT_COMMENT) {
            self.move_to(after_marker);
            self.ignore();
            return self.comment();
        }
        let token = self.emit(TokenKind::LeftDelim);
        self.inside_action = true;
        self.move_to(after_marker);
        self.ignore();
        self.paren_depth = 0;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token<'s>> {
        let body = self.position + LEFT_COMMENT.len();
        let Some(length) = self.input[body..].find(RIGHT_COMMENT) else {
            return Some(self.error("unclosed comment"));
        };
        // The line of an error here is that of the comment's start, as nothing was emitted since.
        let end = body + length + RIGHT_COMMENT.len();
        let Some(trim) = self.right_delim_at(end) else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.move_to(end);
        self.skip_right_delim(trim);
        self.ignore();
        None
    }

    /// Whether a right delimiter stands at an offset, and if so whether it trims.
    fn right_delim_at(&self, offset: usize) -> Option<bool> {
        let rest = &self.input[offset..];
        if has_right_trim(rest) && rest[2..].starts_with(&self.delims.right) {
            return Some(true);
        }
        rest.starts_with(&self.delims.right).then_some(false)
    }

    fn skip_right_delim(&mut self, trim: bool) {
        let mut end = self.position + self.delims.right.len();
        if trim {
            end += 2;
            let rest = &self.input[end..];
            end += rest.len() - rest.trim_start_matches(SPACES).len();
        }
        self.move_to(end);
    }

    fn right_delim(&mut self, trim: bool) -> Token<'s> {
        if trim {
            self.move_to(self.position + 2);
            self.ignore();
        }
        self.move_to(self.position + self.delims.right.len());
        let token = self.emit(TokenKind::RightDelim);
        if trim {
            let rest = &self.input[self.position..];
            let spaces = rest.len() - rest.trim_start_matches(SPACES).len();
            self.move_to(self.position + spaces);
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn action_token(&mut self) -> Token<'s> {
        if let Some(trim) = self.right_delim_at(self.position) {
            if self.paren_depth > 0 {
                return self.error("unclosed left paren");
            }
            return self.right_delim(trim);
        }
        let Some(character) = self.advance() else {
            return self.error("unclosed action");
        };
        match character {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => self.emit(TokenKind::Assign),
            ':' if self.eat('=') => self.emit(TokenKind::Declare),
            ':' => self.error("expected :="),
            '|' => self.emit(TokenKind::Pipe),
            '"' => self.quoted('"', TokenKind::String, "unterminated quoted string"),
            '\'' => self.quoted(
                '\'',
                TokenKind::CharConstant,
                "unterminated character constant",
            ),
            '`' => self.raw_quoted(),
            '$' => self.field_or_variable(TokenKind::Variable),
            // A point that ends the text is read as a number, and is a bad one.
            '.' if self.peek().is_some_and(|c| !c.is_ascii_digit()) => {
                self.field_or_variable(TokenKind::Field)
            }
            '.' | '+' | '-' | '0'..='9' => self.number(character),
            '(' => {
                self.paren_depth += 1;
                self.emit(TokenKind::LeftParen)
            }
            ')' if self.paren_depth == 0 => self.error("unexpected right paren"),
            ')' => {
                self.paren_depth -= 1;
                self.emit(TokenKind::RightParen)
            }
            _ if is_alphanumeric(character) => self.word(),
            ',' => self.emit(TokenKind::Comma),
            ' '..='~' => self.emit(TokenKind::Char),
            _ => {
                let message = format!("unrecognized character in action: {}", unicode(character));
                self.error(&message)
            }
        }
    }

    /// A run of spaces; the last of them may belong to a trimming right delimiter.
    fn space(&mut self) -> Token<'s> {
        let mut count = 1;
        while self.peek().is_some_and(|c| SPACES.contains(&c)) {
            self.advance();
            count += 1;
        }
        if self.right_delim_at(self.position - 1) == Some(true) {
            self.retreat();
            if count == 1 {
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
        let kind = match &self.input[self.start..self.position] {
            "true" | "false" => TokenKind::Bool,
            "nil" => TokenKind::Nil,
            word => keyword(word).map_or(TokenKind::Identifier, TokenKind::Keyword),
        };
        self.emit(kind)
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
        while self.peek().is_some_and(is_alphanumeric) {
            self.advance();
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
        matches!(
            self.peek(),
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(')
        ) || self.input[self.position..].starts_with(&self.delims.right)
    }

    fn quoted(&mut self, quote: char, kind: TokenKind, unterminated: &str) -> Token<'s> {
        loop {
            match self.advance() {
                Some('\\') if !matches!(self.peek(), None | Some('\n')) => {
                    self.advance();
                }
                None | Some('\n' | '\\') => return self.error(unterminated),
                Some(character) if character == quote => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_quoted(&mut self) -> Token<'s> {
        loop {
            match self.advance() {
                None => return self.error("unterminated raw quoted string"),
                Some('`') => return self.emit(TokenKind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self, first: char) -> Token<'s> {
        self.position -= first.len_utf8();
        if !self.scan_number() {
            return self.bad_number();
        }
        if !matches!(self.peek(), Some('+' | '-')) {
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
        self.eat_any("+-");
        let mut digits = "0123456789_";
        if self.eat('0') {
            if self.eat_any("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.eat_any("oO") {
                digits = "01234567_";
            } else if self.eat_any("bB") {
                digits = "01_";
            }
        }
        self.eat_run(digits);
        if self.eat('.') {
            self.eat_run(digits);
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.eat_any(exponent) {
            self.eat_any("+-");
            self.eat_run("0123456789_");
        }
        self.eat('i');
        let ends = !self.peek().is_some_and(is_alphanumeric);
        if !ends {
            self.advance();
        }
        ends
    }

    fn peek(&self) -> Option<char> {
        self.input[self.position..].chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += character.len_utf8();
        self.line += usize::from(character == '\n');
        Some(character)
    }

    /// Steps back over the space before a trim marker.
    fn retreat(&mut self) {
        self.position -= 1;
        self.line -= usize::from(self.input.as_bytes()[self.position] == b'\n');
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.advance();
        }
        found
    }

    fn eat_any(&mut self, set: &str) -> bool {
        let found = self.peek().is_some_and(|character| set.contains(character));
        if found {
            self.advance();
        }
        found
    }

    fn eat_run(&mut self, set: &str) {
        while self.eat_any(set) {}
    }

    /// Moves forward to an offset, counting lines.
    fn move_to(&mut self, offset: usize) {
        self.line += self.input[self.position..offset].matches('\n').count();
        self.position = offset;
    }

    fn ignore(&mut self) {
        self.start = self.position;
        self.start_line = self.line;
    }

    fn emit(&mut self, kind: TokenKind) -> Token<'s> {
        let token = Token {
            kind,
            text: &self.input[self.start..self.position],
            start: self.start,
            line: self.start_line,
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
            line: self.start_line,
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

fn has_left_trim(text: &str) -> bool {
    matches!(text.as_bytes(), [b'-', b' ' | b'\t' | b'\r' | b'\n', ..])
}

fn has_right_trim(text: &str) -> bool {
    matches!(text.as_bytes(), [b' ' | b'\t' | b'\r' | b'\n', b'-', ..])
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
