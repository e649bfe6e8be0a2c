//! Go's quoted strings and character constants, read as `strconv.Unquote` reads them.

use std::borrow::Cow;

/// The bytes of a quoted or raw string, quotes included in the text; none when it is malformed.
pub fn unquote(text: &str) -> Option<Cow<'_, [u8]>> {
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    if text.starts_with('`') {
        let plain = memchr::memchr(b'\r', inner.as_bytes()).is_none();
        let kept = inner.bytes().filter(|&byte| byte != b'\r');
        return Some(if plain {
            inner.as_bytes().into()
        } else {
            kept.collect()
        });
    }
    if memchr::memchr2(b'\\', b'"', inner.as_bytes()).is_none() {
        return Some(inner.as_bytes().into());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, tail) = unit(rest, '"')?;
        match unit {
            Unit::Char(character) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Unit::Byte(byte) => out.push(byte),
        }
        rest = tail;
    }
    Some(out.into())
}

/// The character of a constant such as `'a'`; the error is the part of the wording that Go varies.
pub fn unquote_char(text: &str) -> Result<u32, CharError> {
    let inner = text.get(1..).ok_or(CharError::Syntax)?;
    let (unit, tail) = unit(inner, '\'').ok_or(CharError::Syntax)?;
    if tail != "'" {
        return Err(CharError::Malformed);
    }
    Ok(match unit {
        Unit::Char(character) => u32::from(character),
        Unit::Byte(byte) => u32::from(byte),
    })
}

/// What is wrong with a character constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharError {
    /// Something in it is not Go syntax.
    Syntax,
    /// It has more than one character, or no end.
    Malformed,
}

enum Unit {
    Char(char),
    Byte(u8),
}

/// The first character or escape of a text, and what follows it.
fn unit(text: &str, quote: char) -> Option<(Unit, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == quote {
        return None;
    }
    if first != '\\' {
        return Some((Unit::Char(first), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let simple = |character| Some((Unit::Char(character), rest));
    match escape {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' => simple('\\'),
        '\'' | '"' if escape == quote => simple(escape),
        'x' => number(rest, 2, 16).map(|(code, rest)| (Unit::Byte(code as u8), rest)),
        'u' => number(rest, 4, 16)
            .and_then(|(code, rest)| Some((Unit::Char(char::from_u32(code)?), rest))),
        'U' => number(rest, 8, 16)
            .and_then(|(code, rest)| Some((Unit::Char(char::from_u32(code)?), rest))),
        '0'..='7' => {
            let (code, rest) = number(&text[1..], 3, 8)?;
            Some((Unit::Byte(u8::try_from(code).ok()?), rest))
        }
        _ => None,
    }
}

fn number(text: &str, digits: usize, radix: u32) -> Option<(u32, &str)> {
    let number = text.get(..digits)?;
    if !number.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some((u32::from_str_radix(number, radix).ok()?, &text[digits..]))
}
