//! Parses JSON to a tree with places; the last of equal keys wins, as in Go.

use std::sync::Arc;

use crate::error::Error;
use crate::limits::{MAX_DEPTH, MAX_INPUT_BYTES};
use crate::read::map_builder::MapBuilder;
use crate::value::node::{Key, List, Map, Node, Position, Scalar, Style, Tag, Value};
use crate::value::text::Text;

/// Reads one JSON value. Numbers keep their spelling.
pub fn from_json(text: &str) -> Result<Node, Error> {
    if text.len() > MAX_INPUT_BYTES {
        return Err(Error::new(
            Position::default(),
            "input is larger than 256 MiB",
        ));
    }
    let source: Arc<str> = text.into();
    let mut reader = Reader {
        source: &source,
        pos: 0,
        line: 1,
        line_start: 0,
    };
    let node = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => reader.fail("invalid character after top-level value"),
    }
}

struct Reader<'s> {
    source: &'s Arc<str>,
    pos: usize,
    line: u32,
    line_start: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.pos).copied()
    }

    fn at(&self) -> Position {
        let before = self
            .source
            .get(self.line_start..self.pos)
            .unwrap_or_default();
        Position {
            line: self.line,
            column: before.chars().count() as u32 + 1,
        }
    }

    fn fail<T>(&self, message: &str) -> Result<T, Error> {
        Err(Error::new(self.at(), message))
    }

    fn skip_space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.pos += 1;
            if byte == b'\n' {
                self.line += 1;
                self.line_start = self.pos;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Error> {
        if depth > MAX_DEPTH {
            return self.fail(&format!("exceeded max depth of {MAX_DEPTH}"));
        }
        self.skip_space();
        let at = self.at();
        let value = match self.peek() {
            Some(b'{') => Value::Map(self.map(depth)?),
            Some(b'[') => Value::List(self.list(depth)?),
            Some(b'"') => Value::Scalar(Scalar {
                text: self.string()?,
                tag: Tag::Str,
                style: Style::Double,
            }),
            Some(b'-' | b'0'..=b'9') => Value::Scalar(self.number()?),
            Some(_) => Value::Scalar(self.word()?),
            None => return self.fail("unexpected end of JSON input"),
        };
        Ok(Node { value, at })
    }

    /// Passes over a separator; true when the collection goes on.
    fn goes_on(&mut self, close: u8) -> Result<bool, Error> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.pos += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.pos += 1;
                Ok(false)
            }
            Some(_) => {
                self.fail("invalid character, expected a comma or the end of the collection")
            }
            None => self.fail("unexpected end of JSON input"),
        }
    }

    /// Passes over the opening character; true when the collection is empty, which is passed over too.
    fn is_empty(&mut self, close: u8) -> bool {
        self.pos += 1;
        self.skip_space();
        let empty = self.peek() == Some(close);
        self.pos += usize::from(empty);
        empty
    }

    fn list(&mut self, depth: usize) -> Result<List, Error> {
        let mut items = Vec::new();
        if self.is_empty(b']') {
            return Ok(List::new());
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.goes_on(b']')? {
                return Ok(List::from_items(items));
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Map, Error> {
        let mut stack = Vec::new();
        let mut builder = MapBuilder::new(crate::Dialect::Helm, false);
        if self.is_empty(b'}') {
            return Ok(Map::new());
        }
        loop {
            self.skip_space();
            let at = self.at();
            if self.peek() != Some(b'"') {
                return self.fail("invalid character, expected a string as key");
            }
            let scalar = Scalar::string(self.string()?);
            self.skip_space();
            if self.peek() != Some(b':') {
                return self.fail("invalid character after object key, expected a colon");
            }
            self.pos += 1;
            let value = self.value(depth + 1)?;
            builder.set(&mut stack, Key { scalar, at }, value)?;
            if !self.goes_on(b'}')? {
                return builder.finish(&mut stack);
            }
        }
    }

    fn number(&mut self) -> Result<Scalar, Error> {
        let from = self.pos;
        self.pos += usize::from(self.peek() == Some(b'-'));
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        let mut tag = Tag::Int;
        let mut valid = whole > 0 && !(leading_zero && whole > 1);
        if self.peek() == Some(b'.') {
            self.pos += 1;
            tag = Tag::Float;
            valid &= self.digits() > 0;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.pos += 1;
            tag = Tag::Float;
            self.pos += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            valid &= self.digits() > 0;
        }
        let text = Text::slice(self.source, from, self.pos).unwrap_or_default();
        if !valid {
            return self.fail("invalid number");
        }
        // Beyond 64 bits a whole number is read as a float.
        match crate::value::number::parse(&text) {
            Some(crate::value::number::Number::Float(_)) => tag = Tag::Float,
            Some(_) => {}
            None => return self.fail("number is out of range"),
        }
        Ok(Scalar {
            text,
            tag,
            style: Style::Plain,
        })
    }

    fn digits(&mut self) -> usize {
        let from = self.pos;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.pos += 1;
        }
        self.pos - from
    }

    fn word(&mut self) -> Result<Scalar, Error> {
        let rest = &self.source[self.pos..];
        let words = [
            ("null", Tag::Null),
            ("true", Tag::Bool),
            ("false", Tag::Bool),
        ];
        let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
        let Some((word, tag)) = found else {
            return self.fail("invalid character, expected a value");
        };
        self.pos += word.len();
        Ok(Scalar {
            text: Text::from_static(word),
            tag,
            style: Style::Plain,
        })
    }

    fn string(&mut self) -> Result<Text, Error> {
        self.pos += 1;
        let from = self.pos;
        let mut owned: Option<String> = None;
        let mut piece = from;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.source[piece..self.pos]);
                    let escaped = self.escape()?;
                    owned.get_or_insert_default().push(escaped);
                    piece = self.pos;
                }
                Some(0..0x20) => return self.fail("invalid character in string literal"),
                Some(_) => self.pos += 1,
                None => return self.fail("unexpected end of JSON input"),
            }
        }
        let end = self.pos;
        self.pos += 1;
        Ok(match owned {
            None => Text::slice(self.source, from, end).unwrap_or_default(),
            Some(mut text) => {
                text.push_str(&self.source[piece..end]);
                text.into()
            }
        })
    }

    fn escape(&mut self) -> Result<char, Error> {
        self.pos += 1;
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.fail("invalid character in string escape code"),
        };
        self.pos += 1;
        Ok(character)
    }

    /// `\uXXXX`, in pairs beyond U+FFFF; half a pair becomes U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let first = self.unicode_unit()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.pos;
        if self.source[self.pos..].starts_with("\\u") {
            self.pos += 1;
            let second = self.unicode_unit()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        self.pos = before;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// The four digits after the `u` that is next.
    fn unicode_unit(&mut self) -> Result<u32, Error> {
        let digits = self
            .source
            .get(self.pos + 1..self.pos + 5)
            .unwrap_or_default();
        let hexadecimal = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u32::from_str_radix(digits, 16) {
            Ok(unit) if hexadecimal => {
                self.pos += 5;
                Ok(unit)
            }
            _ => self.fail("invalid character in \\u hexadecimal character escape"),
        }
    }
}
