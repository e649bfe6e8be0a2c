//! JSON as Go's `encoding/json` writes and reads it.

mod decode;
mod encode;

use crate::function::{Args, Ctx, FuncError};
use crate::meter::NODE_BYTES;
use crate::value::{ElementType, MapType, Value};

pub(super) use decode::Kind;
use decode::decode;
pub(super) use encode::text_of;
use encode::{Layout, encode};

type Answer = Result<Value, FuncError>;

/// Charges the reading of a text and what is in it: the shortest items, such as `1,`, take the most memory.
pub(super) fn check_reading(ctx: &Ctx<'_>, text: &[u8]) -> Result<(), FuncError> {
    const MEMORY_PER_BYTE: usize = 16;
    let maps = memchr::memchr_iter(b'{', text).count();
    let maps = maps.saturating_mul(NODE_BYTES);
    ctx.step(text.len() as u64)?;
    ctx.allocate(
        text.len()
            .saturating_mul(MEMORY_PER_BYTE)
            .saturating_add(maps),
    )
}

/// JSON on one line; none of what cannot be written, such as NaN.
pub(super) fn to_json(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(encode(args.get(0), Layout::Compact)
        .unwrap_or_default()
        .into())
}

pub(super) fn must_to_json(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(encode(args.get(0), Layout::Compact)
        .map_err(FuncError::new)?
        .into())
}

pub(super) fn to_pretty_json(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(encode(args.get(0), Layout::Pretty)
        .unwrap_or_default()
        .into())
}

pub(super) fn must_to_pretty_json(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(encode(args.get(0), Layout::Pretty)
        .map_err(FuncError::new)?
        .into())
}

/// JSON without escapes for HTML.
pub(super) fn to_raw_json(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(encode(args.get(0), Layout::Raw)
        .map_err(FuncError::new)?
        .into())
}

pub(super) fn must_from_json(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_reading(ctx, args.bytes(0))?;
    let decoded = decode(args.bytes(0)).map_err(FuncError::new)?;
    match decoded.problem {
        Some(problem) => Err(FuncError::new(problem)),
        None => Ok(decoded.value),
    }
}

/// A map from JSON; an error stands in it under `Error`.
pub(super) fn from_json(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_reading(ctx, args.bytes(0))?;
    let decoded = match decode(args.bytes(0)) {
        Ok(decoded) => decoded,
        Err(error) => return Ok(error_map(&error)),
    };
    let problem = match decoded.value {
        Value::Map(_) | Value::Nil => decoded.problem,
        _ => Some(Kind::of(&decoded.value).mismatch("map[string]interface {}")),
    };
    match (decoded.value, problem) {
        (Value::Map(map), Some(problem)) => {
            map.insert("Error", problem.into());
            Ok(Value::Map(map))
        }
        (_, Some(problem)) => Ok(error_map(&problem)),
        (Value::Nil, None) => Ok(Value::nil_map(MapType::Any)),
        (value, None) => Ok(value),
    }
}

/// A list from JSON; an error is its only item.
pub(super) fn from_json_array(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_reading(ctx, args.bytes(0))?;
    let list = |item: String| Ok(Value::list(vec![item.into()]));
    let decoded = match decode(args.bytes(0)) {
        Ok(decoded) => decoded,
        Err(error) => return list(error),
    };
    match (decoded.value, decoded.problem) {
        (Value::List(_) | Value::Nil, Some(problem)) => list(problem),
        (value @ Value::List(_), None) => Ok(value),
        (Value::Nil, None) => Ok(Value::nil_list(ElementType::Any)),
        (value, _) => list(Kind::of(&value).mismatch("[]interface {}")),
    }
}

/// A map with nothing but an error.
pub(super) fn error_map(error: &str) -> Value {
    Value::map([("Error".into(), error.into())].into_iter().collect())
}
