//! Values as TOML: plain entries first, then tables, both in key order; fields of structs in the order of
//! declaration.

use std::fmt::Write;

use portolan_yaml::Text;

use super::{dotted, quoted_key};
use crate::fmt::{FloatFormat, format_float};
use crate::functions::json::text_of;
use crate::value::{MAX_DEPTH, UintKind, Value};
use portolan_go::time::Time;

/// Writes a value, and stops once there are more than `limit` bytes; the error is the library's.
pub(super) fn encode(value: &Value, limit: usize) -> (String, Result<(), String>) {
    let mut encoder = Encoder {
        out: String::new(),
        limit,
    };
    let written = encoder.entry(&mut Vec::new(), &plain(value));
    (encoder.out, written)
}

/// The plain data behind an object; times, versions and structs stay.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(object) if text_of(value).is_none() && !is_table(value) => {
            object.data().unwrap_or_default()
        }
        _ => value.clone(),
    }
}

fn is_table(value: &Value) -> bool {
    match value {
        Value::Map(_) => true,
        Value::Object(object) => object.fields().is_some(),
        _ => false,
    }
}

/// What a value is written as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Nothing,
    Element,
    Table,
    Tables,
}

fn shape(value: &Value) -> Result<Shape, String> {
    Ok(match value {
        Value::Nil => Shape::Nothing,
        Value::Map(map) if map.is_nil() => Shape::Nothing,
        value if is_table(value) => Shape::Table,
        Value::List(list) if !list.is_empty() => {
            let mut all_tables = true;
            for item in list.iter() {
                match plain(item) {
                    Value::Nil => {
                        return Err("toml: cannot encode array with nil element".to_owned());
                    }
                    item => all_tables &= is_table(&item),
                }
            }
            if all_tables {
                Shape::Tables
            } else {
                Shape::Element
            }
        }
        _ => Shape::Element,
    })
}

struct Encoder {
    out: String,
    limit: usize,
}

impl Encoder {
    /// An entry under its key; the key is empty at the top.
    fn entry(&mut self, key: &mut Vec<Text>, value: &Value) -> Result<(), String> {
        if key.len() > MAX_DEPTH {
            return Err(format!("toml: value nests more than {MAX_DEPTH} deep"));
        }
        if self.out.len() > self.limit {
            return Err("toml: the text is too large".to_owned());
        }
        match shape(value)? {
            Shape::Nothing => Ok(()),
            Shape::Table => self.table(key, value),
            Shape::Tables => self.tables(key, value),
            Shape::Element => {
                let Some(last) = key.last() else {
                    return self.element(value, 0);
                };
                let name = quoted_key(last);
                self.indent(key);
                let _ = write!(self.out, "{name} = ");
                self.element(value, 0)?;
                self.out.push('\n');
                Ok(())
            }
        }
    }

    fn indent(&mut self, key: &[Text]) {
        for _ in 1..key.len() {
            self.out.push_str("  ");
        }
    }

    /// A line end, but not at the very beginning.
    fn line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn table(&mut self, key: &mut Vec<Text>, value: &Value) -> Result<(), String> {
        if key.len() == 1 {
            self.line();
        }
        if !key.is_empty() {
            self.indent(key);
            let _ = writeln!(self.out, "[{}]", dotted(key));
        }
        self.entries(key, value)
    }

    fn tables(&mut self, key: &mut Vec<Text>, value: &Value) -> Result<(), String> {
        if key.is_empty() {
            return Err("toml: top-level values must be Go maps or structs".to_owned());
        }
        for table in value.as_list().into_iter().flat_map(|list| list.iter()) {
            if self.out.len() > self.limit {
                return Err("toml: the text is too large".to_owned());
            }
            self.line();
            self.indent(key);
            let _ = writeln!(self.out, "[[{}]]", dotted(key));
            self.entries(key, &plain(table))?;
        }
        Ok(())
    }

    fn entries(&mut self, key: &mut Vec<Text>, value: &Value) -> Result<(), String> {
        let (direct, tables) = partition(value)?;
        for (name, value) in direct.into_iter().chain(tables) {
            key.push(name);
            self.entry(key, &value)?;
            key.pop();
        }
        Ok(())
    }

    fn element(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("toml: value nests more than {MAX_DEPTH} deep"));
        }
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Str(text) => write!(self.out, "{}", quoted(text)),
            Value::RawStr(bytes) => write!(self.out, "{}", quoted(&String::from_utf8_lossy(bytes))),
            Value::Bool(value) => write!(self.out, "{value}"),
            Value::Int(_, value) => write!(self.out, "{value}"),
            Value::Uint(_, value) => write!(self.out, "{value}"),
            Value::Float(..) => write!(self.out, "{}", float(value)),
            Value::Bytes(bytes) => {
                let byte = |byte: &u8| Value::Uint(UintKind::Uint8, u64::from(*byte));
                let items: Vec<Value> = bytes.iter().map(byte).collect();
                return self.array(&items, depth);
            }
            Value::List(list) => return self.array(list, depth),
            Value::Map(_) => return self.inline_table(value, depth),
            Value::Object(_) if is_table(value) => return self.inline_table(value, depth),
            Value::Object(_) => match value.downcast::<Time>() {
                Some(time) => write!(
                    self.out,
                    "{}",
                    time.format("2006-01-02T15:04:05.999999999Z07:00")
                ),
                None => write!(self.out, "{}", quoted(&text_of(value).unwrap_or_default())),
            },
            Value::Nil | Value::Complex(..) => {
                return Err(format!("unexpected type: {}", value.type_name()));
            }
        };
        Ok(())
    }

    fn array(&mut self, items: &[Value], depth: usize) -> Result<(), String> {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.element(&plain(item), depth + 1)?;
        }
        self.out.push(']');
        Ok(())
    }

    /// A table inside an array. A nil entry at the end leaves the comma before it behind, as in the original.
    fn inline_table(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        let (direct, tables) = partition(value)?;
        let count = direct.len() + tables.len();
        self.out.push('{');
        for (index, (name, value)) in direct.into_iter().chain(tables).enumerate() {
            if value.is_nil() {
                continue;
            }
            let _ = write!(self.out, "{} = ", quoted_key(&name));
            self.element(&value, depth + 1)?;
            if index + 1 < count {
                self.out.push_str(", ");
            }
        }
        self.out.push('}');
        Ok(())
    }
}

type Entries = Vec<(Text, Value)>;

/// The plain entries and the tables of a map or struct; those of an embedded struct stand in its place.
fn partition(value: &Value) -> Result<(Entries, Entries), String> {
    let (mut direct, mut tables) = (Vec::new(), Vec::new());
    let embedded = match value {
        Value::Object(object) => object.embedded(),
        _ => None,
    };
    for (key, value) in entries(value) {
        if embedded.is_some_and(|name| key == name) {
            let (inner_direct, inner_tables) = partition(&value)?;
            direct.extend(inner_direct);
            tables.extend(inner_tables);
            continue;
        }
        let value = plain(&value);
        match shape(&value)? {
            Shape::Table | Shape::Tables => tables.push((key, value)),
            Shape::Element | Shape::Nothing => direct.push((key, value)),
        }
    }
    Ok((direct, tables))
}

fn entries(value: &Value) -> Entries {
    match value {
        Value::Map(map) => map.snapshot(),
        Value::Object(object) => {
            let fields = object.fields().unwrap_or_default().into_iter();
            fields.map(|(name, value)| (name.into(), value)).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..' ' | '\x7f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// A float, which always has a point.
fn float(value: &Value) -> String {
    let Value::Float(kind, value) = value else {
        return String::new();
    };
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if *value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let mut text = format_float(*value, FloatFormat::Fixed, None, *kind);
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}
