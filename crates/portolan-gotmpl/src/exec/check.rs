//! Whether a value may be passed for a parameter.

use crate::function::Param;
use crate::value::{ElementType, FloatKind, IntKind, UintKind, Value};

/// Checks a value against a parameter's type; the error is Go's message.
///
/// `boxed` says that the value was declared as `interface {}`: a nil then has a type, only the wrong one.
pub(super) fn check(value: &mut Value, boxed: bool, param: Param) -> Result<(), String> {
    if value.is_nil() {
        return check_nil(boxed, param);
    }
    if fits(value, param) {
        return Ok(());
    }
    if let (Param::Map, Value::Map(map)) = (param, &*value)
        && let Some(plain) = map.plain()
    {
        *value = Value::Map(plain);
        return Ok(());
    }
    Err(format!(
        "wrong type for value; expected {}; got {}",
        param.name(),
        value.type_name()
    ))
}

fn check_nil(boxed: bool, param: Param) -> Result<(), String> {
    if param.takes_anything() || (!boxed && param.can_be_nil()) {
        return Ok(());
    }
    let expected = param.name();
    Err(if boxed {
        format!("wrong type for value; expected {expected}; got interface {{}}")
    } else {
        format!("invalid value; expected {expected}")
    })
}

fn fits(value: &Value, param: Param) -> bool {
    match param {
        Param::Any | Param::Value => true,
        Param::Str => matches!(value, Value::Str(_) | Value::RawStr(_)),
        Param::Bool => matches!(value, Value::Bool(_)),
        Param::Int => matches!(value, Value::Int(IntKind::Int, _)),
        Param::Int64 => matches!(value, Value::Int(IntKind::Int64, _)),
        Param::Uint32 => matches!(value, Value::Uint(UintKind::Uint32, _)),
        Param::Float => matches!(value, Value::Float(FloatKind::Float64, _)),
        Param::Bytes => matches!(value, Value::Bytes(_)),
        Param::List => matches!(value, Value::List(list) if list.element() == ElementType::Any),
        Param::Strings => matches!(value, Value::List(list) if list.element() == ElementType::Str),
        Param::Map => {
            matches!(value, Value::Map(map) if map.map_type() == crate::value::MapType::Any)
        }
        Param::Object(name) => {
            matches!(value, Value::Object(object) if object.type_name() == name)
        }
    }
}
