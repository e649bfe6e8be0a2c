//! YAML as Helm reads and writes it, through `portolan-yaml`.

mod memory;

use std::collections::BTreeMap;

use memchr::memmem;
use portolan_yaml::{Dialect, Emitter, order, parse_one, parse_one_bytes};

use crate::fmt::raw;
use crate::function::{Args, Ctx, FuncError};
use crate::functions::encoding::base64_encode;
use crate::functions::json::{self, Kind, error_map};
use crate::meter::NODE_BYTES;
use crate::object::Object;
use crate::value::{MAX_DEPTH, Value};
use portolan_go::time::Time;

type Answer = Result<Value, FuncError>;

/// YAML without its last line end; nothing of what cannot be written.
pub(super) fn to_yaml(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut out = String::new();
    let emitter = Emitter::v2(&mut out);
    Ok(
        finished(args.get(0), emitter, Style::ThroughJson)
            .map_or(Value::str(""), |()| trimmed(out)),
    )
}

/// YAML with indented lists and unfolded lines.
pub(super) fn to_yaml_pretty(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut out = String::new();
    let emitter = Emitter::v3_pretty(&mut out);
    Ok(finished(args.get(0), emitter, Style::Direct).map_or(Value::str(""), |()| trimmed(out)))
}

fn trimmed(mut text: String) -> Value {
    if text.ends_with('\n') {
        text.pop();
    }
    text.into()
}

/// Whether a value passes through JSON on its way, which turns bytes and times into text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    ThroughJson,
    Direct,
}

/// Writes a whole document; nothing when it cannot be written.
fn finished(value: &Value, mut emitter: Emitter<'_>, style: Style) -> Option<()> {
    emit(&mut emitter, value, style, 0)?;
    emitter.finish().ok()
}

fn emit(emitter: &mut Emitter<'_>, value: &Value, style: Style, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Nil => emitter.null(),
        Value::Bool(value) => emitter.bool(*value),
        Value::Int(_, value) => emitter.int(*value),
        Value::Uint(_, value) => emitter.uint(*value),
        Value::Float(_, value) => emitter.float(*value),
        Value::Complex(..) => return None,
        Value::Str(text) => emitter.string(text),
        Value::RawStr(bytes) if style == Style::Direct => emitter.binary(&base64_encode(bytes)),
        Value::RawStr(bytes) => emitter.string(&raw::lossy(raw::mark(bytes).into_owned())),
        Value::Bytes(bytes) if style == Style::ThroughJson => emitter.string(&base64_encode(bytes)),
        Value::Bytes(bytes) => {
            emitter.begin_list();
            for byte in bytes.iter() {
                emitter.uint(u64::from(*byte));
            }
            emitter.end();
        }
        Value::List(list) if list.is_nil() && style == Style::ThroughJson => emitter.null(),
        Value::List(list) => {
            emitter.begin_list();
            for item in list.iter() {
                emit(emitter, item, style, depth + 1)?;
            }
            emitter.end();
        }
        Value::Map(map) if map.is_nil() && style == Style::ThroughJson => emitter.null(),
        Value::Map(map) => {
            let entries = map.borrow();
            let mut entries: Vec<_> = entries.iter().collect();
            match style {
                Style::ThroughJson => order::sort_keys(&mut entries, |(key, _)| key),
                Style::Direct => order::sort_keys_v3(&mut entries, |(key, _)| key),
            }
            emitter.begin_map();
            for (key, value) in entries {
                emitter.key(key);
                emit(emitter, value, style, depth + 1)?;
            }
            emitter.end();
        }
        Value::Object(object) if style == Style::Direct => {
            emit_object(emitter, value, object.as_ref(), depth)?;
        }
        Value::Object(object) => match json::text_of(value) {
            Some(text) => emitter.string(&text),
            None => emit(
                emitter,
                &object.data().unwrap_or_default(),
                style,
                depth + 1,
            )?,
        },
    }
    Some(())
}

/// An object by yaml.v3's own rules: it knows times and durations, and all fields of a struct by their names in small
/// letters.
fn emit_object(
    emitter: &mut Emitter<'_>,
    value: &Value,
    object: &dyn Object,
    depth: usize,
) -> Option<()> {
    if value.downcast::<Time>().is_some() {
        emitter.timestamp(&json::text_of(value)?);
    } else if let Some(text) = json::text_of(value) {
        emitter.string(&text);
    } else if object.type_name() == "time.Duration" {
        emitter.string(&crate::fmt::display(value));
    } else if let Some(fields) = object.fields() {
        emitter.begin_map();
        for (name, field) in &fields {
            emitter.key(&name.to_lowercase());
            emit(emitter, field, Style::Direct, depth + 1)?;
        }
        emitter.end();
    } else {
        let data = object.data().unwrap_or_default();
        emit(emitter, &data, Style::Direct, depth + 1)?;
    }
    Some(())
}

/// A map from YAML; an error stands in it under `Error`.
pub(super) fn from_yaml(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(match read(ctx, args)? {
        Ok(value @ Value::Map(_)) => value,
        Ok(Value::Nil) => Value::map(BTreeMap::new()),
        Ok(other) => error_map(&mismatch(&other, "map[string]interface {}")),
        Err(error) => error_map(&error),
    })
}

/// A list from YAML; an error is its only item.
pub(super) fn from_yaml_array(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(match read(ctx, args)? {
        Ok(value @ Value::List(_)) => value,
        Ok(Value::Nil) => Value::list(Vec::new()),
        Ok(other) => Value::list(vec![mismatch(&other, "[]interface {}").into()]),
        Err(error) => Value::list(vec![error.into()]),
    })
}

fn mismatch(value: &Value, wanted: &str) -> String {
    let problem = Kind::of(value).mismatch(wanted);
    format!("error unmarshaling JSON: while decoding JSON: {problem}")
}

/// The first document of a text. Charts read the same texts again and again, what another template printed.
fn read(ctx: &Ctx<'_>, args: Args<'_>) -> Result<Result<Value, String>, FuncError> {
    let Value::Str(text) = args.get(0) else {
        check_reading(ctx, args)?;
        return Ok(read_anew(args));
    };
    if let Some(known) = memory::recall(text) {
        return Ok(Ok(known));
    }
    check_reading(ctx, args)?;
    Ok(read_anew(args).map(|value| memory::keep(text, value)))
}

/// Charges the reading of a text: nodes with their places first, which are soon gone, then values.
fn check_reading(ctx: &Ctx<'_>, args: Args<'_>) -> Result<(), FuncError> {
    const NODES_PER_BYTE: usize = 64;
    let nodes = args.bytes(0).len().saturating_mul(NODES_PER_BYTE);
    ctx.allocate(nodes)?;
    ctx.meter.release(nodes);
    // A map begins as an item, below a key, or, which JSON has too, with a brace.
    let items = memmem::find_iter(args.bytes(0), b"- ").count();
    let below = memmem::find_iter(args.bytes(0), b":\n").count();
    ctx.allocate((items + below).saturating_mul(NODE_BYTES))?;
    json::check_reading(ctx, args.bytes(0))
}

/// The first document of a text, in which every number is a float.
fn read_anew(args: Args<'_>) -> Result<Value, String> {
    let fail = |message: String| format!("error converting YAML to JSON: {message}");
    let node = match args.get(0) {
        Value::Str(text) => parse_one(text.clone(), Dialect::Helm),
        _ => parse_one_bytes(args.bytes(0), Dialect::Helm),
    };
    let node = node.map_err(|errors| fail(errors.first().go_message()))?;
    Value::from_node(&node).map_err(|error| fail(error.to_string()))
}
