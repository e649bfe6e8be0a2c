//! Bytes that are not UTF-8, represented inside Rust's strings.
//!
//! Go cuts and prints strings by bytes. While such a string is built here, each byte that is not part of a character
//! is represented by one of the last 128 characters of Unicode, which are private and unused. When the text becomes a
//! value, they become bytes again.

use std::borrow::Cow;

use crate::value::Value;

/// The character that stands for byte 0 would be this one.
const BASE: u32 = 0x0010_ff00;

/// The first byte of every mark, which is in hardly any other text.
const FIRST_BYTE: u8 = 0xf4;

/// A string of any bytes with marks in place of those that are not UTF-8.
pub(crate) fn mark(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut marked = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        marked.push_str(chunk.valid());
        let marks = chunk.invalid().iter();
        marked.extend(marks.filter_map(|byte| char::from_u32(BASE + u32::from(*byte))));
    }
    Cow::Owned(marked)
}

/// Whether there are marks in a text.
pub(crate) fn is_marked(text: &str) -> bool {
    text.as_bytes().contains(&FIRST_BYTE) && first_mark(text).is_some()
}

/// Where the first mark of a text is.
pub(crate) fn first_mark(text: &str) -> Option<usize> {
    text.find(|character| byte(character).is_some())
}

/// The byte that a mark stands for; none for every other character.
pub(super) fn byte(mark: char) -> Option<u8> {
    let byte = u32::from(mark).checked_sub(BASE)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

/// The string that a text with marks stands for.
pub(crate) fn value(text: String) -> Value {
    if !is_marked(&text) {
        return Value::str(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Value::str_from_bytes(&bytes)
}

/// What a function made of strings with marks: a text, or a list or map of texts, with the bytes back in place.
pub(crate) fn restore(made: Value) -> Value {
    match made {
        Value::Str(text) => value(text.as_str().to_owned()),
        Value::List(list) if list.iter().any(is_marked_text) => {
            let items = list.iter().cloned().map(restore).collect();
            Value::typed_list(list.element(), items)
        }
        Value::Map(map) => {
            for (key, item) in map.snapshot() {
                if is_marked_text(&item) {
                    map.insert(key, restore(item));
                }
            }
            Value::Map(map)
        }
        other => other,
    }
}

fn is_marked_text(value: &Value) -> bool {
    value.as_str().is_some_and(is_marked)
}

/// A text with U+FFFD in place of its marks, for where only UTF-8 will do.
pub(crate) fn lossy(text: String) -> String {
    if !is_marked(&text) {
        return text;
    }
    let replaced = |character| byte(character).map_or(character, |_| char::REPLACEMENT_CHARACTER);
    text.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [&b"a\xff\xe6\x97b"[..], b"\x80", "é".as_bytes()] {
            let marked = mark(bytes).into_owned();
            assert_eq!(value(marked).as_bytes(), Some(bytes));
        }
        assert_eq!(lossy(mark(b"a\xffb").into_owned()), "a\u{fffd}b");
    }
}
