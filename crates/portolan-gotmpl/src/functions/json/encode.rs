//! Values as JSON: keys in byte order, numbers in Go's form, `<`, `>` and `&` escaped.

use std::fmt::Write;

use crate::fmt::{FloatFormat, format_float};
use crate::functions::encoding::base64_encode;
use crate::functions::semver::SemverObject;
use crate::functions::time::Time;
use crate::value::{FloatKind, MAX_DEPTH, Value};
use portolan_yaml::Text;

/// How JSON is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// On one line.
    Compact,
    /// On one line, without escapes for HTML.
    Raw,
    /// One entry per line, indented by two spaces.
    Pretty,
}

/// Writes a value; the error is Go's.
pub(super) fn encode(value: &Value, layout: Layout) -> Result<String, String> {
    let mut encoder = Encoder {
        out: String::new(),
        layout,
        depth: 0,
    };
    encoder.value(value)?;
    Ok(encoder.out)
}

struct Encoder {
    out: String,
    layout: Layout,
    depth: usize,
}

impl Encoder {
    fn value(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(_, value) => self.display(value),
            Value::Uint(_, value) => self.display(value),
            Value::Float(kind, value) => self.out.push_str(&number(*value, *kind)?),
            Value::Complex(..) => return Err("json: unsupported type: complex128".to_owned()),
            Value::Str(text) => self.string(text),
            Value::RawStr(bytes) => self.raw_string(bytes),
            Value::List(list) if list.is_nil() => self.out.push_str("null"),
            Value::Bytes(bytes) => self.string(&base64_encode(bytes)),
            Value::List(list) => self.nested(value, '[', ']', list.iter(), |encoder, item| {
                encoder.value(item)
            })?,
            Value::Map(map) if map.is_nil() => self.out.push_str("null"),
            Value::Map(map) => self.entries(value, &map.snapshot())?,
            Value::Object(object) => {
                if let Some(text) = text_of(value) {
                    self.string(&text);
                } else if let Some(fields) = object.json_fields() {
                    self.entries(value, &fields)?;
                } else {
                    match object.data() {
                        Some(data) => self.value(&data)?,
                        None => self.out.push_str("{}"),
                    }
                }
            }
        }
        Ok(())
    }

    fn entries(&mut self, value: &Value, entries: &[(Text, Value)]) -> Result<(), String> {
        self.nested(value, '{', '}', entries.iter(), |encoder, (key, value)| {
            encoder.string(key);
            encoder.out.push_str(if encoder.layout == Layout::Pretty {
                ": "
            } else {
                ":"
            });
            encoder.value(value)
        })
    }

    fn display(&mut self, number: &dyn std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{number}");
    }

    fn nested<T>(
        &mut self,
        value: &Value,
        open: char,
        close: char,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), String>,
    ) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            let name = value.type_name();
            return Err(format!(
                "json: unsupported value: encountered a cycle via {name}"
            ));
        }
        self.out.push(open);
        self.depth += 1;
        let empty = items.len() == 0;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.line();
            write(self, item)?;
        }
        self.depth -= 1;
        if !empty {
            self.line();
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self) {
        if self.layout == Layout::Pretty {
            self.out.push('\n');
            for _ in 0..self.depth {
                self.out.push_str("  ");
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        self.characters(text);
        self.out.push('"');
    }

    /// A string in which every byte that is not UTF-8 becomes an escape.
    fn raw_string(&mut self, bytes: &[u8]) {
        self.out.push('"');
        for chunk in bytes.utf8_chunks() {
            self.characters(chunk.valid());
            for _ in chunk.invalid() {
                self.code(char::REPLACEMENT_CHARACTER);
            }
        }
        self.out.push('"');
    }

    fn characters(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\x08' => self.out.push_str("\\b"),
                '\x0c' => self.out.push_str("\\f"),
                '<' | '>' | '&' if self.layout != Layout::Raw => self.code(character),
                '\0'..' ' | '\u{2028}' | '\u{2029}' => self.code(character),
                _ => self.out.push(character),
            }
        }
    }

    fn code(&mut self, character: char) {
        let _ = write!(self.out, "\\u{:04x}", u32::from(character));
    }
}

/// Objects that are written as text.
pub(in crate::functions) fn text_of(value: &Value) -> Option<String> {
    if let Some(time) = value.downcast::<Time>() {
        return Some(time.format("2006-01-02T15:04:05.999999999Z07:00"));
    }
    let version = value.downcast::<SemverObject>()?;
    Some(version.0.to_string())
}

/// A float: plain unless it is very large or very small, and then with the shortest exponent.
fn number(value: f64, kind: FloatKind) -> Result<String, String> {
    if !value.is_finite() {
        let shown = format_float(value, FloatFormat::General, None, kind);
        return Err(format!("json: unsupported value: {shown}"));
    }
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Ok(format_float(value, FloatFormat::Fixed, None, kind));
    }
    let text = format_float(value, FloatFormat::Exponent, None, kind);
    // Go writes `e-09` as `e-9`.
    Ok(match text.split_once("e-0") {
        Some((mantissa, digit)) => format!("{mantissa}e-{digit}"),
        None => text,
    })
}
