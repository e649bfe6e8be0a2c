//! Go's strings inside Rust's: bytes that are not UTF-8 are represented by marks.
//!
//! Go cuts and prints strings by bytes. While such a string is built here, each byte that is not part of a character
//! is represented by one of the last 128 characters of Unicode, which are private and unused. When the text is
//! finished, they become bytes again.

use std::borrow::Cow;

/// The character that stands for byte 0 would be this one.
const BASE: u32 = 0x0010_ff00;

/// The first byte of every mark, which is in hardly any other text.
const FIRST_BYTE: u8 = 0xf4;

/// A string of any bytes with marks in place of those that are not UTF-8.
pub fn mark(bytes: &[u8]) -> Cow<'_, str> {
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
pub fn is_marked(text: &str) -> bool {
    text.as_bytes().contains(&FIRST_BYTE) && first_mark(text).is_some()
}

/// Where the first mark of a text is.
pub fn first_mark(text: &str) -> Option<usize> {
    text.find(|character| byte(character).is_some())
}

/// The byte that a mark stands for; none for every other character.
pub fn byte(mark: char) -> Option<u8> {
    let byte = u32::from(mark).checked_sub(BASE)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

/// The bytes that a text with marks stands for.
pub fn bytes(text: &str) -> Cow<'_, [u8]> {
    if !is_marked(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// A text with U+FFFD in place of its marks, for where only UTF-8 will do.
pub fn lossy(text: String) -> String {
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
        for expected in [&b"a\xff\xe6\x97b"[..], b"\x80", "é".as_bytes()] {
            assert_eq!(bytes(&mark(expected)).as_ref(), expected);
        }
        assert_eq!(lossy(mark(b"a\xffb").into_owned()), "a\u{fffd}b");
    }
}
