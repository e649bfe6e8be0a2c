//! Printing of templates' values: what [`portolan_go::fmt`] has to know of each of them.

pub(crate) mod raw;

use std::borrow::Cow;

use portolan_go::fmt::{self, Operand, OperandValue, Verb};

use crate::object::Object;
use crate::value::{List, Map, Value};

pub use portolan_go::strconv::{FloatFormat, format_float, is_print, quote, quote_rune};

/// What `fmt.Sprint` gives for one value: its default format.
pub fn display(value: &Value) -> String {
    if let Value::Str(text) = value {
        return text.as_str().to_owned();
    }
    let mut out = String::new();
    write_value(&mut out, value);
    raw::lossy(out)
}

/// What `fmt.Sprint` gives: a space between operands when neither is a string.
pub fn sprint(values: &[Value]) -> Value {
    raw::value(fmt::sprint(values))
}

/// What `fmt.Sprintln` gives: a space between all operands and a line end.
pub fn sprintln(values: &[Value]) -> Value {
    raw::value(fmt::sprintln(values))
}

/// What `fmt.Sprintf` gives; mistakes in the format show in the text, as in Go.
///
/// `None` when the text grows beyond `limit` bytes: a short format can ask for any number of blanks.
pub fn sprintf(format: &str, args: &[Value], limit: usize) -> Option<Value> {
    fmt::sprintf(format, args, limit).map(raw::value)
}

/// Appends a value in its default format, `%v`; bytes that are not UTF-8 as [`raw`] has it.
pub fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Str(text) => out.push_str(text),
        _ => fmt::write_value(out, value),
    }
}

/// Appends a struct by its fields, as `%v` prints it.
pub(crate) fn write_struct(out: &mut String, type_name: &str, fields: &[(&str, Value)]) {
    Verb::DEFAULT.write_struct(out, type_name, each(fields), 0);
}

fn each<'a>(fields: &'a [(&str, Value)]) -> impl Iterator<Item = (&'a str, &'a Value)> {
    fields.iter().map(|(name, value)| (*name, value))
}

impl Operand for Value {
    fn scalar(&self) -> OperandValue<'_> {
        match self {
            Self::Nil => OperandValue::Nil,
            Self::Bool(flag) => OperandValue::Bool(*flag),
            Self::Int(_, number) => OperandValue::Int(*number),
            Self::Uint(_, number) => OperandValue::Uint(*number),
            Self::Float(kind, number) => OperandValue::Float(*kind, *number),
            Self::Complex(re, im) => OperandValue::Complex(*re, *im),
            Self::Str(text) => OperandValue::Str(text.as_bytes()),
            Self::RawStr(bytes) => OperandValue::Str(bytes),
            Self::Bytes(bytes) => OperandValue::Bytes(bytes),
            Self::List(_) | Self::Map(_) | Self::Object(_) => OperandValue::Composite,
        }
    }

    fn type_name(&self) -> Cow<'_, str> {
        self.type_name()
    }

    // Each kind has a function of its own: the calls nest as deep as the value, and each takes little of the stack.
    fn write_parts(&self, out: &mut String, verb: Verb, depth: usize) {
        match self {
            Self::List(list) => write_list(list, out, verb, depth),
            Self::Map(map) => write_map(map, out, verb, depth),
            Self::Object(object) => write_object(self, object.as_ref(), out, verb, depth),
            // What is no composite is written by the verb itself.
            _ => {}
        }
    }
}

fn write_list(list: &List, out: &mut String, verb: Verb, depth: usize) {
    let items = (!list.is_nil()).then(|| list.iter());
    verb.write_list(out, list.element().list_name(), items, depth);
}

fn write_map(map: &Map, out: &mut String, verb: Verb, depth: usize) {
    let entries = map.borrow();
    let entries = entries.iter().map(|(key, item)| (key.as_bytes(), item));
    let entries = (!map.is_nil()).then_some(entries);
    verb.write_map(out, map.map_type().name(), entries, depth);
}

fn write_object(value: &Value, object: &dyn Object, out: &mut String, verb: Verb, depth: usize) {
    if object.is_collection() {
        let data = object.data().unwrap_or_default();
        return verb.write(out, &data, depth + 1);
    }
    match object.fields() {
        Some(fields) => verb.write_struct(out, &object.type_name(), each(&fields), depth),
        None => {
            let mut text = String::new();
            object.print(&mut text);
            verb.write_text(out, text.as_bytes(), value);
        }
    }
}
