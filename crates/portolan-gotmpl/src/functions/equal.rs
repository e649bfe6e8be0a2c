//! Go's `reflect.DeepEqual`: equal types and equal contents, so `1` is not `1.0`.

use std::rc::Rc;

use crate::function::{Ctx, FuncError};
use crate::value::{List, MAX_DEPTH, Map, Value};

/// Comparing two values takes about as long as two instructions.
const STEPS_PER_PAIR: u64 = 2;

/// Whether two values have the same Go type and the same content; those nested beyond all limits have not.
pub(super) fn deep_equal(ctx: &Ctx<'_>, left: &Value, right: &Value) -> Result<bool, FuncError> {
    equal(ctx, left, right, 0)
}

fn equal(ctx: &Ctx<'_>, left: &Value, right: &Value, depth: usize) -> Result<bool, FuncError> {
    if depth > MAX_DEPTH {
        return Ok(false);
    }
    ctx.step(STEPS_PER_PAIR)?;
    Ok(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left_kind, left), Value::Int(right_kind, right)) => {
            left_kind == right_kind && left == right
        }
        (Value::Uint(left_kind, left), Value::Uint(right_kind, right)) => {
            left_kind == right_kind && left == right
        }
        (Value::Float(left_kind, left), Value::Float(right_kind, right)) => {
            left_kind == right_kind && left == right
        }
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Str(left), Value::Str(right)) => {
            bytes_equal(ctx, left.as_bytes(), right.as_bytes())?
        }
        (Value::RawStr(left), Value::RawStr(right)) | (Value::Bytes(left), Value::Bytes(right)) => {
            bytes_equal(ctx, left, right)?
        }
        (Value::List(left), Value::List(right)) => lists_equal(ctx, left, right, depth)?,
        (Value::Map(left), Value::Map(right)) => maps_equal(ctx, left, right, depth)?,
        (Value::Object(left), Value::Object(right)) => {
            Rc::ptr_eq(left, right)
                || left.type_name() == right.type_name()
                    && match (left.data(), right.data()) {
                        (Some(left), Some(right)) => equal(ctx, &left, &right, depth + 1)?,
                        _ => printed(left.as_ref()) == printed(right.as_ref()),
                    }
        }
        _ => false,
    })
}

fn bytes_equal(ctx: &Ctx<'_>, left: &[u8], right: &[u8]) -> Result<bool, FuncError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    ctx.meter.copy(left.len())?;
    Ok(left == right)
}

fn lists_equal(
    ctx: &Ctx<'_>,
    left: &Rc<List>,
    right: &Rc<List>,
    depth: usize,
) -> Result<bool, FuncError> {
    if left.element() != right.element()
        || left.is_nil() != right.is_nil()
        || left.len() != right.len()
    {
        return Ok(false);
    }
    if Rc::ptr_eq(left, right) {
        return Ok(true);
    }
    for (left, right) in left.iter().zip(right.iter()) {
        if !equal(ctx, left, right, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(
    ctx: &Ctx<'_>,
    left: &Rc<Map>,
    right: &Rc<Map>,
    depth: usize,
) -> Result<bool, FuncError> {
    if left.map_type() != right.map_type() || left.is_nil() != right.is_nil() {
        return Ok(false);
    }
    if Rc::ptr_eq(left, right) {
        return Ok(true);
    }
    let (left, right) = (left.borrow(), right.borrow());
    if left.len() != right.len() {
        return Ok(false);
    }
    for ((left_key, left), (right_key, right)) in left.iter().zip(right.iter()) {
        if left_key != right_key || !equal(ctx, left, right, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn printed(object: &dyn crate::object::Object) -> String {
    let mut text = String::new();
    object.print(&mut text);
    text
}
