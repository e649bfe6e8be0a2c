//! The methods of Helm's `Values` type, which every chart's `.Values` has.

use portolan_yaml::Text;

use crate::fmt::quote;
use crate::function::{Args, Ctx, FuncError, Param};
use crate::functions;
use crate::object::Signature;
use crate::value::{Map, Value};

/// What a method takes; none when `Values` has no such method.
pub(crate) fn method(name: &str) -> Option<Signature> {
    match name {
        "AsMap" | "YAML" => Some(Signature::NONE),
        "Table" | "PathValue" => Some(Signature::new(&[Param::Str])),
        "Encode" => Some(Signature::new(&[Param::Object("io.Writer")])),
        _ => None,
    }
}

/// Calls a method.
pub(crate) fn call(
    ctx: &mut Ctx<'_>,
    map: &Map,
    name: &str,
    args: Args<'_>,
) -> Result<Value, FuncError> {
    let path = args.str(0);
    match name {
        "AsMap" => Ok(map.plain().map_or(Value::Nil, Value::Map)),
        "YAML" => yaml(ctx, map),
        "Table" => table(map, &path).map(Value::Map),
        _ => path_value(map, &path),
    }
}

/// The values as `toYaml` prints them, with the line break at the end.
fn yaml(ctx: &mut Ctx<'_>, map: &Map) -> Result<Value, FuncError> {
    let to_yaml = functions::all()
        .iter()
        .find(|function| function.name == "toYaml");
    let plain = map.plain().map_or(Value::Nil, Value::Map);
    match to_yaml {
        Some(to_yaml) => {
            ctx.weigh(&plain)?;
            let text = (to_yaml.call)(ctx, Args::new(&[plain]))?;
            Ok(Value::str(format!(
                "{}\n",
                text.as_str().unwrap_or_default()
            )))
        }
        None => Ok(Value::Nil),
    }
}

/// The map at a path of keys with dots between.
fn table(map: &Map, path: &str) -> Result<std::rc::Rc<Map>, FuncError> {
    let mut current = map.plain();
    for key in path.split('.') {
        current = current
            .and_then(|map| map.get(key))
            .and_then(|value| match value {
                Value::Map(map) => Some(map.plain().unwrap_or(map)),
                _ => None,
            });
        if current.is_none() {
            return Err(FuncError::new(format!(
                "{} is not a table",
                quote(key.as_bytes(), false)
            )));
        }
    }
    current.ok_or_else(|| FuncError::new("no table"))
}

/// The value at a path of keys, which must not be a map.
fn path_value(map: &Map, path: &str) -> Result<Value, FuncError> {
    let (tables, key) = match path.rsplit_once('.') {
        Some((tables, key)) => (Some(tables), key),
        None => (None, path),
    };
    let missing = || FuncError::new(format!("{} is not a value", quote(key.as_bytes(), false)));
    let holder = match tables {
        Some(tables) => Some(table(map, tables).map_err(|_| missing())?),
        None => map.plain(),
    };
    match holder.and_then(|holder| holder.get(&Text::from(key))) {
        None | Some(Value::Map(_)) => Err(missing()),
        Some(value) => Ok(value),
    }
}
