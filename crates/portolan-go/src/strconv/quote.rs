//! Strings and characters in Go syntax, as `strconv.Quote` writes them.

use std::fmt::Write;

/// Whether Go's `unicode.IsPrint` holds: letters, marks, numbers, punctuation, symbols and the space.
pub fn is_print(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    // Rust's debug form escapes the same characters, and a combining mark only where nothing stands before it.
    let mut text = [0; 5];
    text[0] = b'a';
    let length = 1 + character.encode_utf8(&mut text[1..]).len();
    let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(character)
}

/// A string in double quotes; bytes that are not UTF-8 become `\x` escapes.
pub fn quote(bytes: &[u8], ascii_only: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            escape(&mut out, character, '"', ascii_only);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// A character in single quotes.
pub fn quote_rune(character: char, ascii_only: bool) -> String {
    let mut out = String::from("'");
    escape(&mut out, character, '\'', ascii_only);
    out.push('\'');
    out
}

fn escape(out: &mut String, character: char, quote: char, ascii_only: bool) {
    if let Some(byte) = crate::marked::byte(character) {
        let _ = write!(out, "\\x{byte:02x}");
        return;
    }
    match character {
        '\\' => out.push_str("\\\\"),
        _ if character == quote => {
            out.push('\\');
            out.push(character);
        }
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        _ if is_print(character) && (character.is_ascii() || !ascii_only) => out.push(character),
        _ => escape_number(out, character),
    }
}

fn escape_number(out: &mut String, character: char) {
    let code = u32::from(character);
    let _ = match code {
        0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}
