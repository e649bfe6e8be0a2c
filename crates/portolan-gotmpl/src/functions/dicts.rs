//! Maps: making, reading, changing and copying them.

use std::collections::BTreeMap;
use std::rc::Rc;

use portolan_yaml::Text;

use crate::function::{Args, Ctx, FuncError};
use crate::functions::convert::string_of;
use crate::meter::{ENTRY_BYTES, map_bytes};
use crate::value::{MAX_DEPTH, Map, MapType, Value};

type Answer = Result<Value, FuncError>;

pub(super) fn dict(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut entries = BTreeMap::new();
    for pair in args.all().chunks(2) {
        let key = match pair.first() {
            Some(key) => key_of(ctx, key)?,
            None => Text::default(),
        };
        let value = pair.get(1).cloned().unwrap_or_else(|| "".into());
        entries.insert(key, value);
    }
    Ok(Value::map(entries))
}

/// A value as a key; a text is shared, not copied.
fn key_of(ctx: &Ctx<'_>, value: &Value) -> Result<Text, FuncError> {
    if let Value::Str(text) = value {
        return Ok(text.clone());
    }
    ctx.weigh(value)?;
    let text = string_of(value);
    ctx.allocate(text.len())?;
    Ok(Text::from(text))
}

pub(super) fn get(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let found = args.map(0).and_then(|map| map.get(&args.str(1)));
    Ok(found.unwrap_or_else(|| "".into()))
}

pub(super) fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let Some(map) = args.map(0).filter(|map| !map.is_nil()) else {
        return Err(FuncError::new("assignment to entry in nil map"));
    };
    ctx.allocate(map_bytes(map.len() + 1) - map_bytes(map.len()) + ENTRY_BYTES)?;
    map.insert(key_of(ctx, args.get(1))?, args.get(2).clone());
    Ok(Value::Map(Rc::clone(map)))
}

pub(super) fn unset(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let Some(map) = args.map(0) else {
        return Ok(Value::map(BTreeMap::new()));
    };
    map.borrow_mut().remove(args.str(1).as_ref());
    Ok(Value::Map(Rc::clone(map)))
}

pub(super) fn has_key(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let found = args
        .map(0)
        .is_some_and(|map| map.get(&args.str(1)).is_some());
    Ok(found.into())
}

pub(super) fn pluck(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let key = args.str(0);
    let found = args
        .rest(1)
        .iter()
        .filter_map(|map| map.as_map()?.get(&key));
    Ok(Value::list(found.collect()))
}

/// The keys in order; Go's order changes from run to run.
pub(super) fn keys(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let maps = args.all().iter().filter_map(Value::as_map);
    ctx.check_items(maps.clone().map(|map| map.len()).sum())?;
    let keys = maps.flat_map(|map| map.snapshot().into_iter().map(|(key, _)| key));
    Ok(Value::strings(keys))
}

/// The values in the order of their keys.
pub(super) fn values(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let entries = entries(ctx, args.map(0))?;
    Ok(Value::list(entries.into_values().collect()))
}

fn entries(ctx: &Ctx<'_>, map: Option<&Rc<Map>>) -> Result<BTreeMap<Text, Value>, FuncError> {
    let Some(map) = map else {
        return Ok(BTreeMap::new());
    };
    let entries = map.borrow();
    ctx.check_text(entries.len().saturating_mul(ENTRY_BYTES))?;
    Ok(entries.clone())
}

pub(super) fn pick(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let map = entries(ctx, args.map(0))?;
    let picked = args.rest(1).iter().filter_map(Value::as_str);
    let picked = picked.filter_map(|key| map.get_key_value(key));
    Ok(Value::map(
        picked
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    ))
}

pub(super) fn omit(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut map = entries(ctx, args.map(0))?;
    for key in args.rest(1).iter().filter_map(Value::as_str) {
        map.remove(key);
    }
    Ok(Value::map(map))
}

/// `dig "a" "b" default map`: what stands at the end of a path, or the default. Every step must be a plain map.
pub(super) fn dig(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let [keys @ .., default, map] = args.all() else {
        return Err(FuncError::new("dig needs at least three arguments"));
    };
    if keys.is_empty() {
        return Err(FuncError::new("dig needs at least three arguments"));
    }
    let plain_map = |value: &Value| match value {
        Value::Map(map) if map.map_type() == MapType::Any => Ok(Rc::clone(map)),
        _ => Err(conversion(value, "map[string]interface {}")),
    };
    let mut map = plain_map(map)?;
    for key in keys {
        if !matches!(key, Value::Str(_) | Value::RawStr(_)) {
            return Err(conversion(key, "string"));
        }
    }
    for (index, key) in keys.iter().enumerate() {
        let Some(step) = map.get(key.as_str().unwrap_or_default()) else {
            return Ok(default.clone());
        };
        if index + 1 == keys.len() {
            return Ok(step);
        }
        map = plain_map(&step)?;
    }
    Ok(default.clone())
}

/// Go's words for a failed type assertion.
fn conversion(value: &Value, wanted: &str) -> FuncError {
    let found = match value {
        Value::Nil => "nil".into(),
        _ => value.type_name(),
    };
    let message = format!("interface conversion: interface {{}} is {found}, not {wanted}");
    FuncError::new(message)
}

pub(super) fn deep_copy(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    if args.get(0).is_nil() {
        let message = "reflect: call of reflect.Value.Type on zero Value";
        return Err(FuncError::new(message));
    }
    copy(ctx, args.get(0), 0)
}

/// The same data in lists and maps of its own.
fn copy(ctx: &Ctx<'_>, value: &Value, depth: usize) -> Answer {
    if depth > MAX_DEPTH {
        return Err(FuncError::new(format!(
            "value nests more than {MAX_DEPTH} deep"
        )));
    }
    Ok(match value {
        Value::List(list) => {
            ctx.step(1 + list.len() as u64)?;
            ctx.allocate(list.len() * size_of::<Value>())?;
            let items = list.iter().map(|item| copy(ctx, item, depth + 1));
            Value::typed_list(list.element(), items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) if map.is_nil() => value.clone(),
        Value::Map(map) => match map.frozen_copy() {
            Some(copied) => Value::Map(Rc::new(copied)),
            None => {
                let entries = map.borrow();
                ctx.step(1 + entries.len() as u64)?;
                ctx.allocate(map_bytes(entries.len()))?;
                let copy =
                    |(key, value): (&Text, _)| Ok((key.clone(), copy(ctx, value, depth + 1)?));
                let entries = entries.iter().map(copy);
                Value::typed_map(map.map_type(), entries.collect::<Result<_, FuncError>>()?)
            }
        },
        _ => value.clone(),
    })
}
