//! JSON as Go's `encoding/json` prints it, and JSON read into a tree.

mod read;

use std::fmt::Write;

use crate::error::WriteError;
use crate::limits::MAX_DEPTH;
use crate::value::binary;
use crate::value::node::{Entry, Node, Scalar, Tag, Value};
use crate::value::number::{self, Number};
use crate::value::resolve;
use crate::value::timestamp;

pub use read::from_json;

/// How numbers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Whole numbers exactly: `YAMLToJSON`.
    Exact,
    /// All numbers as 64-bit floats: Helm's `toJson` of a value that was read.
    Float64,
}

/// Room for most manifests, so that their text is not moved while it grows.
const FIRST_CAPACITY: usize = 1_024;

/// Prints a tree as Go's `YAMLToJSON` does: keys in byte order, `<`, `>` and `&` escaped, whole numbers exact.
pub fn to_json(node: &Node) -> Result<String, WriteError> {
    to_json_with(node, Numbers::Exact)
}

/// Prints a tree as JSON with a choice for numbers.
pub fn to_json_with(node: &Node, numbers: Numbers) -> Result<String, WriteError> {
    let mut out = String::with_capacity(FIRST_CAPACITY);
    write_node(&mut out, node, numbers, 0)?;
    Ok(out)
}

fn write_node(
    out: &mut String,
    node: &Node,
    numbers: Numbers,
    depth: usize,
) -> Result<(), WriteError> {
    if depth > MAX_DEPTH {
        return Err(WriteError::TooDeep);
    }
    match &node.value {
        Value::Scalar(scalar) => write_scalar(out, scalar, numbers),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                separate(out, index);
                write_node(out, item, numbers, depth + 1)?;
            }
            out.push(']');
            Ok(())
        }
        Value::Map(map) => {
            if map
                .iter()
                .is_sorted_by(|a, b| a.key.scalar.text <= b.key.scalar.text)
            {
                return write_entries(out, map.iter(), numbers, depth);
            }
            let mut entries: Vec<&Entry> = map.iter().collect();
            entries.sort_by(|a, b| a.key.scalar.text.cmp(&b.key.scalar.text));
            write_entries(out, entries.into_iter(), numbers, depth)
        }
    }
}

fn write_entries<'n>(
    out: &mut String,
    entries: impl Iterator<Item = &'n Entry>,
    numbers: Numbers,
    depth: usize,
) -> Result<(), WriteError> {
    out.push('{');
    for (index, entry) in entries.enumerate() {
        separate(out, index);
        write_string(out, entry.key.as_str());
        out.push(':');
        write_node(out, &entry.value, numbers, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}

fn write_scalar(out: &mut String, scalar: &Scalar, numbers: Numbers) -> Result<(), WriteError> {
    match scalar.tag {
        Tag::Null => out.push_str("null"),
        Tag::Bool => out.push_str(if scalar.as_bool() == Some(true) {
            "true"
        } else {
            "false"
        }),
        Tag::Int if number::is_short_decimal(scalar.text.as_bytes()) => out.push_str(&scalar.text),
        Tag::Int | Tag::Float => {
            let number = number::of(scalar).ok_or_else(|| wrong_tag(scalar))?;
            write_number(out, number, numbers)?;
        }
        Tag::Timestamp => {
            let time = timestamp::parse(&scalar.text).and_then(|time| time.rfc3339());
            write_string(out, &time.ok_or_else(|| wrong_tag(scalar))?);
        }
        Tag::Binary => {
            let bytes = binary::decode(&scalar.text).ok_or_else(|| wrong_tag(scalar))?;
            match numbers {
                Numbers::Exact => write_bytes(out, &bytes),
                // Read once more, the escape is the character itself.
                Numbers::Float64 => write_string(out, &binary::replace_invalid(&bytes)),
            }
        }
        Tag::Str | Tag::Merge | Tag::Other => write_string(out, &scalar.text),
    }
    Ok(())
}

pub(crate) fn wrong_tag(scalar: &Scalar) -> WriteError {
    WriteError::WrongTag {
        text: scalar.text.to_string(),
        tag: resolve::short_name(scalar.tag).to_owned(),
    }
}

fn write_number(out: &mut String, number: Number, numbers: Numbers) -> Result<(), WriteError> {
    match (number, numbers) {
        (Number::Int(value), Numbers::Exact) => {
            let _ = write!(out, "{value}");
        }
        (Number::Uint(value), Numbers::Exact) => {
            let _ = write!(out, "{value}");
        }
        (number, _) => {
            let value = number.as_f64();
            if !value.is_finite() {
                return Err(WriteError::NotANumber(not_finite(value)));
            }
            number::write_json(out, value);
        }
    }
    Ok(())
}

/// Go's words for a float that JSON cannot hold.
pub(crate) fn not_finite(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "+Inf",
        f64::NEG_INFINITY => "-Inf",
        _ => "NaN",
    }
}

/// Prints a string with Go's escapes.
pub(crate) fn write_string(out: &mut String, text: &str) {
    write_quoted(out, text, true);
}

/// Prints a string with Go's escapes, `<`, `>` and `&` as they are.
pub(crate) fn write_plain_string(out: &mut String, text: &str) {
    write_quoted(out, text, false);
}

fn write_quoted(out: &mut String, text: &str, escape_html: bool) {
    out.reserve(text.len() + 2);
    out.push('"');
    match next_suspect(text.as_bytes()) {
        None => out.push_str(text),
        Some(first) => write_escaping(out, text, first, escape_html),
    }
    out.push('"');
}

#[inline]
fn next_suspect(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| SUSPECT[usize::from(*byte)])
}

/// Prints a text whose first suspect byte is at an offset.
fn write_escaping(out: &mut String, text: &str, first: usize, escape_html: bool) {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (0, first);
    loop {
        let escape = match bytes[at] {
            b'<' | b'>' | b'&' if !escape_html => 0,
            0xe2 => match bytes.get(at + 1..at + 3) {
                Some([0x80, 0xa8 | 0xa9]) => 3,
                _ => 0,
            },
            _ => 1,
        };
        if escape > 0 {
            out.push_str(&text[plain..at]);
            write_escape(out, &text[at..at + escape]);
            plain = at + escape;
        }
        at += escape.max(1);
        match next_suspect(&bytes[at..]) {
            Some(clean) => at += clean,
            None => break,
        }
    }
    out.push_str(&text[plain..]);
}

/// The bytes that may have to be escaped; all others are copied in runs.
const SUSPECT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(
            byte as u8,
            0..0x20 | b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2
        );
        byte += 1;
    }
    table
};

fn write_escape(out: &mut String, character: &str) {
    match character {
        "\"" => out.push_str("\\\""),
        "\\" => out.push_str("\\\\"),
        "\n" => out.push_str("\\n"),
        "\r" => out.push_str("\\r"),
        "\t" => out.push_str("\\t"),
        "\x08" => out.push_str("\\b"),
        "\x0c" => out.push_str("\\f"),
        _ => {
            let code = character.chars().next().map_or(0, u32::from);
            let _ = write!(out, "\\u{code:04x}");
        }
    }
}

/// Prints bytes as a string; each byte that is not UTF-8 becomes `\ufffd`.
fn write_bytes(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        let mut quoted = String::new();
        write_string(&mut quoted, chunk.valid());
        out.push_str(&quoted[1..quoted.len() - 1]);
        for _ in chunk.invalid() {
            out.push_str("\\ufffd");
        }
    }
    out.push('"');
}
