//! JSON as values, with Go's errors.

use std::collections::BTreeMap;

use portolan_yaml::Text;

use crate::fmt::quote;
use crate::value::{MAX_DEPTH, Value};
use portolan_go::strconv::parse_float;

/// What a text holds, and what in it did not fit a Go value: such a part is nil, and the rest is still read.
pub(super) struct Decoded {
    pub(super) value: Value,
    pub(super) problem: Option<String>,
}

/// What JSON calls a kind of value.
pub(in crate::functions) struct Kind(&'static str);

impl Kind {
    /// The kind of a decoded value.
    pub(in crate::functions) fn of(value: &Value) -> Self {
        Self(match value {
            Value::Map(_) => "object",
            Value::List(_) => "array",
            Value::Bool(_) => "bool",
            Value::Float(..) => "number",
            _ => "string",
        })
    }

    /// Go's words for a value that does not fit a type.
    pub(in crate::functions) fn mismatch(&self, wanted: &str) -> String {
        format!(
            "json: cannot unmarshal {} into Go value of type {wanted}",
            self.0
        )
    }
}

/// Reads a text; the error is that of Go's scanner.
pub(super) fn decode(text: &[u8]) -> Result<Decoded, String> {
    let mut decoder = Decoder {
        text,
        at: 0,
        depth: 0,
        problem: None,
    };
    let value = decoder.value()?;
    if let Some(byte) = decoder.next_token()
        && decoder.at < text.len()
    {
        return Err(invalid(byte, "after top-level value"));
    }
    Ok(Decoded {
        value,
        problem: decoder.problem,
    })
}

struct Decoder<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    problem: Option<String>,
}

type Step<T = Value> = Result<T, String>;

fn invalid(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quote(char::from(byte).to_string().as_bytes(), false);
            format!("'{}'", quoted.trim_matches('"'))
        }
    };
    format!("invalid character {shown} {context}")
}

fn unexpected_end<T>() -> Step<T> {
    Err("unexpected end of JSON input".to_owned())
}

impl Decoder<'_> {
    /// The byte here. Go's scanner reads a space behind the last one, which unfinished literals complain about.
    fn byte(&self) -> Option<u8> {
        match self.text.get(self.at) {
            Some(byte) => Some(*byte),
            None if self.at == self.text.len() => Some(b' '),
            None => None,
        }
    }

    /// The next byte that is no white space, without taking it.
    fn next_token(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.byte()
    }

    fn value(&mut self) -> Step {
        match self.next_token() {
            None => unexpected_end(),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::from),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(byte) => Err(invalid(byte, "looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Step) -> Step {
        if self.depth >= MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Step {
        let mut entries: BTreeMap<Text, Value> = BTreeMap::new();
        if self.next_token() == Some(b'}') {
            self.at += 1;
            return Ok(Value::map(entries));
        }
        loop {
            match self.next_token() {
                None => return unexpected_end(),
                Some(b'"') => {}
                Some(byte) => {
                    return Err(invalid(byte, "looking for beginning of object key string"));
                }
            }
            let key = self.string()?;
            match self.next_token() {
                None => return unexpected_end(),
                Some(b':') => self.at += 1,
                Some(byte) => return Err(invalid(byte, "after object key")),
            }
            let value = self.value()?;
            entries.insert(key.into(), value);
            match self.next_token() {
                None => return unexpected_end(),
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::map(entries));
                }
                Some(byte) => return Err(invalid(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Step {
        let mut items = Vec::new();
        if self.next_token() == Some(b']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value()?);
            match self.next_token() {
                None => return unexpected_end(),
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::list(items));
                }
                Some(byte) => return Err(invalid(byte, "after array element")),
            }
        }
    }

    fn literal(&mut self, word: &'static str, value: Value) -> Step {
        for expected in word.bytes() {
            match self.byte() {
                Some(byte) if byte == expected => self.at += 1,
                Some(byte) => {
                    let expecting = char::from(expected);
                    let context = format!("in literal {word} (expecting '{expecting}')");
                    return Err(invalid(byte, &context));
                }
                None => return unexpected_end(),
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Step {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            byte => return Err(invalid(byte.unwrap_or(b' '), "in numeric literal")),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if let Some(value) = parse_float(text) {
            return Ok(Value::float(value));
        }
        let problem = format!("json: cannot unmarshal number {text} into Go value of type float64");
        self.problem.get_or_insert(problem);
        Ok(Value::Nil)
    }

    fn digits(&mut self) {
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Step<()> {
        let start = self.at;
        self.digits();
        if self.at > start {
            return Ok(());
        }
        Err(invalid(self.byte().unwrap_or(b' '), context))
    }

    /// A string; what is not UTF-8 becomes U+FFFD.
    fn string(&mut self) -> Step<String> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let Some(byte) = self.byte() else {
                return unexpected_end();
            };
            self.at += 1;
            match byte {
                b'"' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                b'\\' => {
                    let character = self.escape()?;
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0..b' ' => return Err(invalid(byte, "in string literal")),
                _ => bytes.push(byte),
            }
        }
    }

    fn escape(&mut self) -> Step<char> {
        let Some(byte) = self.byte() else {
            return unexpected_end();
        };
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let code = self.hexadecimal()?;
                self.character(code)
            }
            _ => return Err(invalid(byte, "in string escape code")),
        })
    }

    fn hexadecimal(&mut self) -> Step<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.byte().ok_or("unexpected end of JSON input")?;
            let digit = char::from(byte).to_digit(16);
            let context = "in \\u hexadecimal character escape";
            code = code * 16 + digit.ok_or_else(|| invalid(byte, context))?;
            self.at += 1;
        }
        Ok(code)
    }

    /// A character, of two escapes where the first is half of a pair.
    fn character(&mut self, code: u32) -> char {
        let start = self.at;
        if (0xd800..0xdc00).contains(&code)
            && self.text[start.min(self.text.len())..].starts_with(b"\\u")
        {
            self.at += 2;
            if let Ok(low @ 0xdc00..0xe000) = self.hexadecimal() {
                let joined = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                return char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            // What follows is no second half, and is read on its own.
            self.at = start;
        }
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_go() {
        let cases = [
            ("", "unexpected end of JSON input"),
            (
                "tru",
                "invalid character ' ' in literal true (expecting 'e')",
            ),
            (
                "{a}",
                "invalid character 'a' looking for beginning of object key string",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            ("1 x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            (
                "1.",
                "invalid character ' ' after decimal point in numeric literal",
            ),
            ("\"a", "unexpected end of JSON input"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("é", "invalid character 'Ã' looking for beginning of value"),
        ];
        for (text, error) in cases {
            assert_eq!(
                decode(text.as_bytes()).err().as_deref(),
                Some(error),
                "{text}"
            );
        }
    }

    #[test]
    fn surrogate_pairs_are_joined_and_lone_ones_replaced() {
        let text = br#""\ud83d\ude00 \ud83d\u0041""#;
        let decoded = decode(text)
            .ok()
            .and_then(|decoded| decoded.value.as_str().map(str::to_owned));
        assert_eq!(decoded.as_deref(), Some("😀 \u{fffd}A"));
    }
}
