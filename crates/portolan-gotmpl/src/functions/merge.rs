//! `merge` and `mergeOverwrite`: fill one map from others, in place.
//!
//! The rules are those of the library that sprig uses: nested maps are merged into the target's own maps, a map that
//! the target does not have is shared with its source, and every empty value counts as missing.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::function::{Args, Ctx, FuncError};
use crate::functions::defaults::is_empty;
use crate::meter::ENTRY_BYTES;
use crate::value::{MAX_DEPTH, Map, MapType, Value};

type Answer = Result<Value, FuncError>;

const STEPS_PER_ENTRY: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The target's values win unless they are empty.
    Fill,
    /// The source's values win.
    Overwrite,
}

pub(super) fn merge(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    merge_all(ctx, args, Mode::Fill)
}

pub(super) fn merge_overwrite(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    merge_all(ctx, args, Mode::Overwrite)
}

fn merge_all(ctx: &Ctx<'_>, args: Args<'_>, mode: Mode) -> Answer {
    let target = match args.map(0) {
        Some(map) if !map.is_nil() => Rc::clone(map),
        _ => Rc::new(Map::new(MapType::Any, BTreeMap::new())),
    };
    for source in args.rest(1).iter().filter_map(Value::as_map) {
        merge_maps(ctx, &target, source, mode, 0)?;
    }
    Ok(Value::Map(target))
}

fn merge_maps(
    ctx: &Ctx<'_>,
    target: &Rc<Map>,
    source: &Rc<Map>,
    mode: Mode,
    depth: usize,
) -> Result<(), FuncError> {
    if depth > MAX_DEPTH {
        return Err(FuncError::new(format!(
            "value nests more than {MAX_DEPTH} deep"
        )));
    }
    // Merged with itself, a map stays what it is.
    if Rc::ptr_eq(target, source) {
        return Ok(());
    }
    // An entry costs a look-up and perhaps an insertion.
    ctx.step(1 + source.len() as u64 * STEPS_PER_ENTRY)?;
    for (key, value) in source.snapshot() {
        let present = target.get(&key);
        if value.is_nil() {
            if mode == Mode::Overwrite {
                target.insert(key, value);
            }
            continue;
        }
        if let (Some(Value::Map(inner)), Value::Map(source)) = (&present, &value) {
            merge_maps(ctx, inner, source, mode, depth + 1)?;
        }
        let kept = present.as_ref().is_some_and(|present| !is_empty(present));
        let takes = match (&present, &value) {
            // A map takes in another one entry by entry, which has happened.
            (Some(Value::Map(_)), Value::Map(_)) if kept => false,
            _ => mode == Mode::Overwrite || !kept,
        };
        if takes {
            check_type(target, &value)?;
            ctx.allocate(ENTRY_BYTES)?;
            target.insert(key, value);
        }
    }
    Ok(())
}

/// A `map[string]string` holds strings only.
fn check_type(target: &Map, value: &Value) -> Result<(), FuncError> {
    if target.map_type() != MapType::Str || value.as_bytes().is_some() {
        return Ok(());
    }
    let name = value.type_name();
    let message =
        format!("reflect.Value.SetMapIndex: value of type {name} is not assignable to type string");
    Err(FuncError::new(message))
}
