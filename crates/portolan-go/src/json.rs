//! Texts and numbers as the encoder of `encoding/json` writes them.

use std::fmt::Write;

use crate::strconv::{FloatFormat, FloatKind, format_float};

/// Whether `<`, `>` and `&` are escaped, as Go does unless it is told not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeHtml {
    /// They are escaped.
    Yes,
    /// They stand as they are.
    No,
}

/// Writes a text in quotes.
pub fn write_string(out: &mut String, text: &str, html: EscapeHtml) {
    out.push('"');
    write_characters(out, text, html);
    out.push('"');
}

/// Writes any bytes in quotes; each byte that is not UTF-8 becomes the escape of U+FFFD.
pub fn write_bytes(out: &mut String, bytes: &[u8], html: EscapeHtml) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        write_characters(out, chunk.valid(), html);
        for _ in chunk.invalid() {
            write_code(out, char::REPLACEMENT_CHARACTER);
        }
    }
    out.push('"');
}

fn write_characters(out: &mut String, text: &str, html: EscapeHtml) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '<' | '>' | '&' if html == EscapeHtml::Yes => write_code(out, character),
            '\0'..' ' | '\u{2028}' | '\u{2029}' => write_code(out, character),
            _ => out.push(character),
        }
    }
}

fn write_code(out: &mut String, character: char) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\u{:04x}", u32::from(character));
}

/// A finite float: plain unless it is very large or very small, and then with the shortest exponent. `None` for what
/// JSON cannot hold.
pub fn float(value: f64, kind: FloatKind) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Some(format_float(value, FloatFormat::Fixed, None, kind));
    }
    let text = format_float(value, FloatFormat::Exponent, None, kind);
    // Go writes `e-09` as `e-9`.
    Some(match text.split_once("e-0") {
        Some((mantissa, digit)) => format!("{mantissa}e-{digit}"),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_exponents_only_when_very_large_or_small() {
        let cases = [
            (0.0, "0"),
            (-1.5, "-1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1e-7, "1e-7"),
            (1.5e-10, "1.5e-10"),
        ];
        for (value, expected) in cases {
            assert_eq!(float(value, FloatKind::Float64).as_deref(), Some(expected));
        }
        assert_eq!(float(f64::NAN, FloatKind::Float64), None);
    }

    #[test]
    fn texts_are_escaped_as_go_does() {
        let written = |text, html| {
            let mut out = String::new();
            write_string(&mut out, text, html);
            out
        };
        assert_eq!(
            written("a<\n\u{1}", EscapeHtml::Yes),
            r#""a\u003c\n\u0001""#
        );
        assert_eq!(written("a<\u{2028}", EscapeHtml::No), r#""a<\u2028""#);
        let mut out = String::new();
        write_bytes(&mut out, b"a\xff", EscapeHtml::Yes);
        assert_eq!(out, r#""a\ufffd""#);
    }
}
