//! Elements, parts and lengths of lists, maps and strings.

use std::borrow::Cow;

use super::Answer;
use crate::function::{Args, Ctx, FuncError};
use crate::object::Kind;
use crate::value::{UintKind, Value};

/// The plain data behind a named list or map.
fn data(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Object(object) if matches!(object.kind(), Kind::Slice | Kind::Map) => {
            object.data().map_or(Cow::Borrowed(value), Cow::Owned)
        }
        _ => Cow::Borrowed(value),
    }
}

/// `x[1][2]…`
pub(super) fn index(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    if args.get(0).is_nil() {
        return Err(FuncError::new("index of untyped nil"));
    }
    let mut item = args.get(0).clone();
    for key in args.rest(1) {
        if item.is_nil() {
            return Err(FuncError::new("index of nil pointer"));
        }
        item = element(&item, key)?;
    }
    Ok(item)
}

fn element(item: &Value, key: &Value) -> Answer {
    let byte = |bytes: &[u8]| {
        let at = offset(key, bytes.len())?;
        let byte = bytes
            .get(at)
            .copied()
            .ok_or_else(|| out_of_range("reflect: slice index out of range"))?;
        Ok(Value::Uint(UintKind::Uint8, u64::from(byte)))
    };
    match &*data(item) {
        Value::List(list) => {
            let at = offset(key, list.len())?;
            list.get(at)
                .cloned()
                .ok_or_else(|| out_of_range("reflect: slice index out of range"))
        }
        Value::Str(text) => byte(text.as_bytes()).map_err(of_string),
        Value::RawStr(bytes) | Value::Bytes(bytes) => byte(bytes),
        Value::Map(map) => match key {
            Value::Str(key) => Ok(map.get(key).unwrap_or_else(|| map.map_type().zero())),
            // No key of a map here can be anything but text.
            Value::RawStr(_) => Ok(map.map_type().zero()),
            Value::Nil => Err(FuncError::new("value is nil; should be of type string")),
            _ => Err(FuncError::new(format!(
                "value has type {}; should be string",
                key.type_name()
            ))),
        },
        // Go looks behind pointers first.
        _ => Err(FuncError::new(format!(
            "can't index item of type {}",
            item.type_name().trim_start_matches('*')
        ))),
    }
}

/// Go checks an index only up to the length itself; what `reflect` says of the length is an error of its own.
fn out_of_range(message: &'static str) -> FuncError {
    FuncError::new(message)
}

fn of_string(error: FuncError) -> FuncError {
    if error.message.starts_with("reflect: slice") {
        FuncError::new("reflect: string index out of range")
    } else {
        error
    }
}

/// An index as a number, at most `limit`.
fn offset(key: &Value, limit: usize) -> Result<usize, FuncError> {
    let number = match key {
        Value::Int(_, number) => *number,
        Value::Uint(_, number) => *number as i64,
        Value::Nil => return Err(FuncError::new("cannot index slice/array with nil")),
        _ => {
            let message = format!("cannot index slice/array with type {}", key.type_name());
            return Err(FuncError::new(message));
        }
    };
    usize::try_from(number)
        .ok()
        .filter(|&number| number <= limit)
        .ok_or_else(|| FuncError::new(format!("index out of range: {number}")))
}

/// `x[1:2]`
pub(super) fn slice(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let item = data(args.get(0));
    let indexes = args.rest(1);
    let length = match &*item {
        Value::Nil => return Err(FuncError::new("slice of untyped nil")),
        _ if indexes.len() > 3 => {
            return Err(FuncError::new(format!(
                "too many slice indexes: {}",
                indexes.len()
            )));
        }
        Value::Str(_) | Value::RawStr(_) if indexes.len() == 3 => {
            return Err(FuncError::new("cannot 3-index slice a string"));
        }
        Value::List(list) => list.len(),
        Value::Str(text) => text.len(),
        Value::RawStr(bytes) | Value::Bytes(bytes) => bytes.len(),
        _ => {
            return Err(FuncError::new(format!(
                "can't slice item of type {}",
                item.type_name()
            )));
        }
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = offset(index, length)?;
    }
    let [from, to, end] = bounds;
    for (low, high) in [(from, to), (to, end)] {
        if low > high {
            return Err(FuncError::new(format!(
                "invalid slice index: {low} > {high}"
            )));
        }
    }
    if matches!(&*item, Value::List(_)) {
        ctx.check_items(to - from)?;
    } else {
        ctx.check_text(to - from)?;
        ctx.allocate(to - from)?;
    }
    Ok(part(&item, from, to))
}

fn part(item: &Value, from: usize, to: usize) -> Value {
    match item {
        Value::List(list) => Value::typed_list(
            list.element(),
            list.get(from..to).unwrap_or_default().to_vec(),
        ),
        Value::Bytes(bytes) => Value::bytes(bytes.get(from..to).unwrap_or_default()),
        other => Value::str_from_bytes(
            other
                .as_bytes()
                .and_then(|bytes| bytes.get(from..to))
                .unwrap_or_default(),
        ),
    }
}

/// How many items there are.
pub(super) fn len(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let item = data(args.get(0));
    let length = match &*item {
        Value::Nil => return Err(FuncError::new("len of nil pointer")),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Str(text) => text.len(),
        Value::RawStr(bytes) | Value::Bytes(bytes) => bytes.len(),
        _ => return Err(FuncError::new(format!("len of type {}", item.type_name()))),
    };
    Ok(Value::int(length as i64))
}
