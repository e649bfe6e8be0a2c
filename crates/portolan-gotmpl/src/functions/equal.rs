//! Go's `reflect.DeepEqual`: equal types and equal contents, so `1` is not `1.0`.

use std::rc::Rc;

use crate::value::{List, MAX_DEPTH, Map, Value};

/// Whether two values have the same Go type and the same content; those nested beyond all limits have not.
pub(super) fn deep_equal(left: &Value, right: &Value) -> bool {
    equal(left, right, 0)
}

fn equal(left: &Value, right: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match (left, right) {
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
        (Value::Str(left), Value::Str(right)) => left == right,
        (Value::RawStr(left), Value::RawStr(right)) | (Value::Bytes(left), Value::Bytes(right)) => {
            left == right
        }
        (Value::List(left), Value::List(right)) => lists_equal(left, right, depth),
        (Value::Map(left), Value::Map(right)) => maps_equal(left, right, depth),
        (Value::Object(left), Value::Object(right)) => {
            Rc::ptr_eq(left, right)
                || left.type_name() == right.type_name()
                    && match (left.data(), right.data()) {
                        (Some(left), Some(right)) => equal(&left, &right, depth + 1),
                        _ => printed(left.as_ref()) == printed(right.as_ref()),
                    }
        }
        _ => false,
    }
}

fn lists_equal(left: &Rc<List>, right: &Rc<List>, depth: usize) -> bool {
    let items_equal = || {
        left.iter()
            .zip(right.iter())
            .all(|(l, r)| equal(l, r, depth + 1))
    };
    left.element() == right.element()
        && left.is_nil() == right.is_nil()
        && left.len() == right.len()
        && (Rc::ptr_eq(left, right) || items_equal())
}

fn maps_equal(left: &Rc<Map>, right: &Rc<Map>, depth: usize) -> bool {
    if left.map_type() != right.map_type() {
        return false;
    }
    if Rc::ptr_eq(left, right) {
        return true;
    }
    let (left, right) = (left.borrow(), right.borrow());
    left.len() == right.len()
        && left
            .iter()
            .zip(right.iter())
            .all(|((left_key, l), (right_key, r))| left_key == right_key && equal(l, r, depth + 1))
}

fn printed(object: &dyn crate::object::Object) -> String {
    let mut text = String::new();
    object.print(&mut text);
    text
}
