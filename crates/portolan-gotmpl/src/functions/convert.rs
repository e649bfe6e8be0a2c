//! Conversions between kinds as in sprig: a value that cannot be converted becomes zero.

use crate::fmt::display;
use crate::function::{Args, Ctx, FuncError};
use crate::functions::time::Named;
use crate::value::Value;
use portolan_go::strconv::{parse_float, parse_int, saturating_int};

type Answer = Result<Value, FuncError>;

/// The text of a value: strings and bytes as they are, all else as `%v` prints it.
pub(super) fn string_of(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => display(value),
    }
}

/// The texts of a list's items, nils left out; of anything else its own text.
pub(super) fn strings_of(value: &Value) -> Vec<String> {
    match value {
        Value::Nil => Vec::new(),
        Value::Bytes(bytes) => bytes.iter().map(u8::to_string).collect(),
        Value::List(list) => list.iter().filter(|v| !v.is_nil()).map(string_of).collect(),
        Value::Object(object) => match object.data() {
            Some(data @ Value::List(_)) => strings_of(&data),
            _ => vec![string_of(value)],
        },
        _ => vec![string_of(value)],
    }
}

/// An integer: `"010"` is octal, fractions are cut, `"3.7"` is no integer.
pub(super) fn int_of(value: &Value) -> i64 {
    match value {
        Value::Bool(value) => i64::from(*value),
        Value::Int(_, value) => *value,
        Value::Uint(_, value) => *value as i64,
        Value::Float(_, value) => int_of_float(*value),
        Value::Str(text) => parse_int(without_zero_fraction(text), 0).unwrap_or(0),
        Value::Object(_) => value.downcast::<Named>().map_or(0, Named::number),
        _ => 0,
    }
}

/// A float as Go on amd64 cuts it: what does not fit becomes the lowest integer.
pub(super) fn int_of_float(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// `1.00` without its fraction, which holds nothing but zeros.
fn without_zero_fraction(text: &str) -> &str {
    let trimmed = text.trim_end_matches('0');
    match trimmed.strip_suffix('.') {
        Some(whole) if trimmed.len() < text.len() => whole,
        _ => text,
    }
}

/// A float.
pub(super) fn float_of(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Int(_, value) => *value as f64,
        Value::Uint(_, value) => *value as f64,
        Value::Float(_, value) => *value,
        Value::Str(text) => parse_float(text).unwrap_or(0.0),
        Value::Object(_) => value
            .downcast::<Named>()
            .map_or(0.0, |named| named.number() as f64),
        _ => 0.0,
    }
}

pub(super) fn int(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::int(int_of(args.get(0))))
}

pub(super) fn int64(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::int64(int_of(args.get(0))))
}

pub(super) fn float64(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::float(float_of(args.get(0))))
}

pub(super) fn atoi(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::int(saturating_int(&args.str(0))))
}

/// Reads a number's decimal digits as octal ones.
pub(super) fn to_decimal(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let printed = display(args.get(0));
    Ok(Value::int64(parse_int(&printed, 8).unwrap_or(0)))
}
