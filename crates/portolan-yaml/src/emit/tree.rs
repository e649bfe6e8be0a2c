//! Prints trees, with the changes that each program makes while printing.

use super::{Emitter, scalar};
use crate::error::WriteError;
use crate::limits::MAX_DEPTH;
use crate::value::binary;
use crate::value::node::{Entry, Map, Node, Scalar, Style, Tag, Value};
use crate::value::number::{self, Number};
use crate::value::resolve;
use crate::value::timestamp;
use crate::{Dialect, json, order};

/// Prints a tree as Helm's `toYaml` does, with the line break at the end that `toYaml` cuts off.
///
/// Every number is a 64-bit float, as Helm holds it.
pub fn write_v2(node: &Node) -> Result<String, WriteError> {
    let mut out = String::new();
    let mut printer = Printer {
        emitter: Emitter::v2(&mut out),
        sort: |entries| order::sort_keys(entries, |entry| entry.key.as_str()),
        scalar: helm_scalar,
        strict_keys: false,
    };
    printer.node(node, 0)?;
    printer.emitter.finish()?;
    Ok(out)
}

/// Prints a tree as Helm's `toYamlPretty` does.
pub fn write_v3_pretty(node: &Node) -> Result<String, WriteError> {
    let mut out = String::new();
    let mut printer = Printer {
        emitter: Emitter::v3_pretty(&mut out),
        sort: |entries| order::sort_keys_v3(entries, |entry| entry.key.as_str()),
        scalar: helm_scalar,
        strict_keys: false,
    };
    printer.node(node, 0)?;
    printer.emitter.finish()?;
    Ok(out)
}

/// Prints a tree as kustomize does: through JSON, whole numbers exact, times in full.
pub fn write_kustomize(node: &Node) -> Result<String, WriteError> {
    match &node.value {
        // An item of a `List` that is absent.
        Value::Scalar(scalar) if scalar.tag == Tag::Null => return Ok("{}\n".to_owned()),
        Value::Scalar(scalar) => return Err(WriteError::NotAnObject(scalar.text.to_string())),
        Value::List(_) | Value::Map(_) => {}
    }
    let mut out = String::new();
    let mut printer = Printer {
        emitter: Emitter::v2(&mut out),
        sort: |entries| order::sort_keys(entries, |entry| entry.key.as_str()),
        scalar: kustomize_scalar,
        strict_keys: true,
    };
    printer.node(node, 0)?;
    printer.emitter.finish()?;
    Ok(out)
}

/// Walks a tree; the functions hold what differs between the programs.
struct Printer<'o> {
    emitter: Emitter<'o>,
    sort: fn(&mut [&Entry]),
    scalar: fn(&mut Emitter<'_>, &Scalar) -> Result<(), WriteError>,
    /// Keys must fit their tags, and below the top be texts, as in kustomize.
    strict_keys: bool,
}

impl Printer<'_> {
    fn node(&mut self, node: &Node, depth: usize) -> Result<(), WriteError> {
        if depth > MAX_DEPTH {
            return Err(WriteError::TooDeep);
        }
        match &node.value {
            Value::Scalar(scalar) => (self.scalar)(&mut self.emitter, scalar),
            Value::List(list) => {
                self.emitter.begin_list();
                for item in list {
                    self.node(item, depth + 1)?;
                }
                self.emitter.end();
                Ok(())
            }
            Value::Map(map) => self.map(map, depth),
        }
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<(), WriteError> {
        let top = if self.strict_keys && depth == 0 {
            with_text_keys(map)?
        } else {
            None
        };
        let mut entries: Vec<&Entry> = top.as_ref().unwrap_or(map).iter().collect();
        (self.sort)(&mut entries);
        self.emitter.begin_map();
        for entry in entries {
            if self.strict_keys {
                check_key(&entry.key.scalar, depth)?;
            }
            self.emitter.key(entry.key.as_str());
            self.node(&entry.value, depth + 1)?;
        }
        self.emitter.end();
        Ok(())
    }
}

fn helm_scalar(emitter: &mut Emitter<'_>, scalar: &Scalar) -> Result<(), WriteError> {
    match scalar.tag {
        Tag::Null => emitter.null(),
        Tag::Bool => emitter.bool(scalar.as_bool() == Some(true)),
        Tag::Int | Tag::Float => {
            let number = number::of(scalar).ok_or_else(|| json::wrong_tag(scalar))?;
            // Helm reads values through JSON, which has no infinities.
            let value = number.as_f64();
            if !value.is_finite() {
                return Err(WriteError::NotANumber(json::not_finite(value)));
            }
            emitter.float(value);
        }
        Tag::Binary => {
            let bytes = binary::decode(&scalar.text).ok_or_else(|| json::wrong_tag(scalar))?;
            emitter.string(&binary::replace_invalid(&bytes));
        }
        _ => emitter.string(&scalar.text),
    }
    Ok(())
}

/// The top of an object with its keys as Go decodes them into texts: base64 is decoded and null is left out. `None` if
/// that changes nothing.
fn with_text_keys(map: &Map) -> Result<Option<Map>, WriteError> {
    let is_decoded = |entry: &Entry| matches!(entry.key.scalar.tag, Tag::Binary | Tag::Null);
    if !map.iter().any(is_decoded) {
        return Ok(None);
    }
    let mut decoded = Map::new();
    for Entry { key, value } in map {
        check_key(&key.scalar, 0)?;
        match key.scalar.tag {
            Tag::Null => {}
            Tag::Binary => {
                let bytes = binary::decode(&key.scalar.text);
                let bytes = bytes.ok_or_else(|| json::wrong_tag(&key.scalar))?;
                decoded.insert(binary::replace_invalid(&bytes), value.clone());
            }
            _ => decoded.insert(key.clone(), value.clone()),
        }
    }
    Ok(Some(decoded))
}

fn check_key(key: &Scalar, depth: usize) -> Result<(), WriteError> {
    let fits = match key.tag {
        Tag::Str | Tag::Merge => return Ok(()),
        // It has quotes by then.
        Tag::Timestamp if key.style == Style::Flow => return Ok(()),
        _ if depth > 0 => return Err(WriteError::KeyNotString(key.text.to_string())),
        Tag::Int | Tag::Float => number::of(key).is_some(),
        Tag::Binary => binary::decode(&key.text).is_some(),
        Tag::Null | Tag::Bool | Tag::Timestamp => {
            resolve::plain(Dialect::Kustomize, &key.text) == key.tag
        }
        Tag::Other => true,
    };
    if fits {
        Ok(())
    } else {
        Err(json::wrong_tag(key))
    }
}

fn kustomize_scalar(emitter: &mut Emitter<'_>, scalar: &Scalar) -> Result<(), WriteError> {
    let wrong = || json::wrong_tag(scalar);
    let fits = || resolve::plain(Dialect::Kustomize, &scalar.text) == scalar.tag;
    match scalar.tag {
        Tag::Null | Tag::Timestamp if scalar.style == Style::Flow => emitter.string(&scalar.text),
        Tag::Null if fits() => emitter.null(),
        Tag::Bool if fits() => emitter.bool(scalar.as_bool() == Some(true)),
        Tag::Null | Tag::Bool => return Err(wrong()),
        Tag::Int | Tag::Float => match number::of(scalar).ok_or_else(wrong)? {
            Number::Int(value) => emitter.int(value),
            Number::Uint(value) => emitter.uint(value),
            Number::Float(value) => emitter.float(value),
        },
        Tag::Timestamp => {
            let time = timestamp::parse(&scalar.text).and_then(|time| time.rfc3339());
            emitter.string(&time.ok_or_else(wrong)?);
        }
        Tag::Binary => {
            let bytes = binary::decode(&scalar.text).ok_or_else(wrong)?;
            emitter.string(&binary::replace_invalid(&bytes));
        }
        Tag::Str | Tag::Merge | Tag::Other => {
            if is_changed_by_printing(scalar) {
                emitter.string(&scalar::read_back_block(&scalar.text, scalar.style)?);
            } else {
                emitter.string(&scalar.text);
            }
        }
    }
    Ok(())
}

/// Whether kustomize's first printing may not read back as it was: folded text, and blocks that begin with a blank.
fn is_changed_by_printing(scalar: &Scalar) -> bool {
    match scalar.style {
        Style::Folded => true,
        Style::Literal => scalar.text.starts_with([' ', '\t', '\n']),
        _ => false,
    }
}
