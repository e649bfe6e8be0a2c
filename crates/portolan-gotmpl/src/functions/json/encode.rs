//! Values as JSON: keys in byte order, numbers in Go's form, `<`, `>` and `&` escaped.

use std::fmt::Write;

use portolan_go::json::{self, EscapeHtml};
use portolan_go::time::Time;

use crate::fmt::{FloatFormat, format_float};
use crate::functions::encoding::base64_encode;
use crate::functions::semver::SemverObject;
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
            Value::RawStr(bytes) => {
                json::write_bytes(&mut self.out, bytes, self.layout.escape_html());
            }
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
        json::write_string(&mut self.out, text, self.layout.escape_html());
    }
}

impl Layout {
    fn escape_html(self) -> EscapeHtml {
        match self {
            Self::Raw => EscapeHtml::No,
            Self::Compact | Self::Pretty => EscapeHtml::Yes,
        }
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

fn number(value: f64, kind: FloatKind) -> Result<String, String> {
    json::float(value, kind).ok_or_else(|| {
        let shown = format_float(value, FloatFormat::General, None, kind);
        format!("json: unsupported value: {shown}")
    })
}
