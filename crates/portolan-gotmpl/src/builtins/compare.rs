//! Comparison: only between values of the same kind, as with Go's operators.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Answer;
use crate::function::{Args, Ctx, FuncError};
use crate::object::Kind;
use crate::value::Value;

const INCOMPATIBLE: &str = "incompatible types for comparison";
const INVALID: &str = "invalid type for comparison";

/// Values in the groups that can be compared.
enum Basic<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Complex(f64, f64),
    Str(&'a [u8]),
}

fn basic(value: &Value) -> Option<Basic<'_>> {
    Some(match value {
        Value::Bool(value) => Basic::Bool(*value),
        Value::Int(_, value) => Basic::Int(*value),
        Value::Uint(_, value) => Basic::Uint(*value),
        Value::Float(_, value) => Basic::Float(*value),
        Value::Complex(re, im) => Basic::Complex(*re, *im),
        Value::Str(text) => Basic::Str(text.as_bytes()),
        Value::RawStr(bytes) => Basic::Str(bytes),
        _ => return None,
    })
}

/// Whether the first argument equals any of the others.
pub(super) fn eq(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    if args.len() < 2 {
        return Err(FuncError::new("missing argument for comparison"));
    }
    for other in args.rest(1) {
        if equal(args.get(0), other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

pub(super) fn ne(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::Bool(!equal(args.get(0), args.get(1))?))
}

pub(super) fn lt(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::Bool(less(args.get(0), args.get(1))?))
}

pub(super) fn le(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    less_or_equal(args).map(Value::Bool)
}

pub(super) fn gt(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::Bool(!less_or_equal(args)?))
}

pub(super) fn ge(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::Bool(!less(args.get(0), args.get(1))?))
}

fn less_or_equal(args: Args<'_>) -> Result<bool, FuncError> {
    Ok(less(args.get(0), args.get(1))? || equal(args.get(0), args.get(1))?)
}

fn equal(left: &Value, right: &Value) -> Result<bool, FuncError> {
    match (basic(left), basic(right)) {
        (Some(a), Some(b)) => equal_basic(&a, &b),
        (None, None) => equal_others(left, right),
        _ if left.is_nil() || right.is_nil() => Ok(false),
        _ => Err(FuncError::new(INCOMPATIBLE)),
    }
}

fn equal_basic(left: &Basic<'_>, right: &Basic<'_>) -> Result<bool, FuncError> {
    match (left, right) {
        (Basic::Bool(a), Basic::Bool(b)) => Ok(a == b),
        (Basic::Int(a), Basic::Int(b)) => Ok(a == b),
        (Basic::Uint(a), Basic::Uint(b)) => Ok(a == b),
        (Basic::Int(a), Basic::Uint(b)) | (Basic::Uint(b), Basic::Int(a)) => {
            Ok(u64::try_from(*a) == Ok(*b))
        }
        (Basic::Float(a), Basic::Float(b)) => Ok(a == b),
        (Basic::Complex(a, b), Basic::Complex(c, d)) => Ok(a == c && b == d),
        (Basic::Str(a), Basic::Str(b)) => Ok(a == b),
        _ => Err(FuncError::new(INCOMPATIBLE)),
    }
}

/// Lists, maps and objects: nil may be asked for, otherwise Go must be able to compare the type.
fn equal_others(left: &Value, right: &Value) -> Result<bool, FuncError> {
    if left.is_nil() || right.is_nil() {
        return Ok(is_nil(left) == is_nil(right));
    }
    let (a, b) = (left.kind(), right.kind());
    if a != b {
        let (a, b) = (left.type_name(), right.type_name());
        let (left, right) = (reflect_text(left), crate::fmt::display(right));
        return Err(FuncError::new(format!(
            "non-comparable types {left}: {a}, {b}: {right}"
        )));
    }
    match (left, right) {
        (Value::Object(a), Value::Object(b)) if matches!(left.kind(), Kind::Ptr | Kind::Struct) => {
            Ok(Rc::ptr_eq(a, b))
        }
        _ => {
            let text = reflect_text(right);
            Err(FuncError::new(format!(
                "non-comparable type {text}: {}",
                right.type_name()
            )))
        }
    }
}

/// Whether a value is nil, or a map or list that was never made.
fn is_nil(value: &Value) -> bool {
    match value {
        Value::Map(map) => map.is_nil(),
        Value::List(list) => list.is_nil(),
        _ => value.is_nil(),
    }
}

/// What `%s` prints for a `reflect.Value` that holds a list or map.
fn reflect_text(value: &Value) -> String {
    let text = crate::fmt::sprintf("%s", std::slice::from_ref(value), usize::MAX);
    crate::fmt::display(&text.unwrap_or_default())
}

fn less(left: &Value, right: &Value) -> Result<bool, FuncError> {
    let (Some(a), Some(b)) = (basic(left), basic(right)) else {
        return Err(FuncError::new(INVALID));
    };
    let ordering = match (&a, &b) {
        (Basic::Int(a), Basic::Int(b)) => a.cmp(b),
        (Basic::Uint(a), Basic::Uint(b)) => a.cmp(b),
        (Basic::Int(a), Basic::Uint(b)) => u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b)),
        (Basic::Uint(a), Basic::Int(b)) => {
            u64::try_from(*b).map_or(Ordering::Greater, |b| a.cmp(&b))
        }
        (Basic::Float(a), Basic::Float(b)) => return Ok(a < b),
        (Basic::Str(a), Basic::Str(b)) => a.cmp(b),
        (Basic::Bool(_), Basic::Bool(_)) | (Basic::Complex(..), Basic::Complex(..)) => {
            return Err(FuncError::new(INVALID));
        }
        _ => return Err(FuncError::new(INCOMPATIBLE)),
    };
    Ok(ordering == Ordering::Less)
}
