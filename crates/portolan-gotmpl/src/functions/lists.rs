//! Lists. All of these functions make new lists. A nil list is a nil pointer in Go, and fails like one.

use std::borrow::Cow;

use crate::function::{Args, Ctx, FuncError};
use crate::functions::convert::{int_of, int_of_float, string_of, strings_of};
use crate::functions::defaults::is_empty;
use crate::functions::equal::deep_equal;
use crate::value::{ElementType, UintKind, Value};

type Answer = Result<Value, FuncError>;

/// The items of a slice of any type; for anything else the error, which names the act and the kind.
pub(super) fn items<'v>(
    ctx: &Ctx<'_>,
    value: &'v Value,
    act: &str,
) -> Result<Cow<'v, [Value]>, FuncError> {
    match value {
        Value::Nil => Err(nil_pointer()),
        Value::List(list) => Ok(Cow::Borrowed(list)),
        Value::Bytes(bytes) => {
            ctx.check_items(bytes.len())?;
            let byte = |byte: &u8| Value::Uint(UintKind::Uint8, u64::from(*byte));
            Ok(Cow::Owned(bytes.iter().map(byte).collect()))
        }
        Value::Object(object) => match object.data() {
            Some(Value::List(list)) => Ok(Cow::Owned(list.to_vec())),
            _ => Err(wrong_kind(value, act)),
        },
        _ => Err(wrong_kind(value, act)),
    }
}

fn nil_pointer() -> FuncError {
    FuncError::new("runtime error: invalid memory address or nil pointer dereference")
}

fn wrong_kind(value: &Value, act: &str) -> FuncError {
    FuncError::new(format!("{act} {}", value.kind().name()))
}

pub(super) fn list(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::list(args.all().to_vec()))
}

// === Ends ===

pub(super) fn first(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot find first on type")?;
    Ok(items.first().cloned().unwrap_or_default())
}

pub(super) fn last(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot find last on type")?;
    Ok(items.last().cloned().unwrap_or_default())
}

pub(super) fn rest(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot find rest on type")?;
    ctx.check_items(items.len())?;
    Ok(match items.split_first() {
        Some((_, rest)) => Value::list(rest.to_vec()),
        None => Value::nil_list(ElementType::Any),
    })
}

pub(super) fn initial(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot find initial on type")?;
    ctx.check_items(items.len())?;
    Ok(match items.split_last() {
        Some((_, initial)) => Value::list(initial.to_vec()),
        None => Value::nil_list(ElementType::Any),
    })
}

pub(super) fn append(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot push on type")?;
    ctx.check_items(items.len() + 1)?;
    Ok(Value::list([&items[..], &[args.get(1).clone()]].concat()))
}

pub(super) fn prepend(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot prepend on type")?;
    ctx.check_items(items.len() + 1)?;
    Ok(Value::list([&[args.get(1).clone()], &items[..]].concat()))
}

pub(super) fn concat(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut joined = Vec::new();
    for list in args.all() {
        let items = items(ctx, list, "Cannot concat type").map_err(|error| match list {
            Value::Nil => error,
            _ => FuncError::new(format!("{error} as list")),
        })?;
        ctx.check_items(joined.len() + items.len())?;
        joined.extend_from_slice(&items);
    }
    if joined.is_empty() {
        return Ok(Value::nil_list(ElementType::Any));
    }
    Ok(Value::list(joined))
}

/// A part of a list, of the list's own type.
pub(super) fn slice(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let list = args.get(0);
    let items = items(ctx, list, "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = args.rest(1).first().map_or(0, int_of);
    let end = args.rest(2).first().map_or(items.len() as i64, int_of);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| items.get(start..end));
    let part =
        part.ok_or_else(|| FuncError::new("reflect.Value.Slice: slice index out of bounds"))?;
    ctx.check_items(part.len())?;
    Ok(match list {
        Value::Bytes(bytes) => Value::bytes(&bytes[start as usize..end as usize]),
        Value::List(list) => Value::typed_list(list.element(), part.to_vec()),
        _ => Value::list(part.to_vec()),
    })
}

/// A list of lists of some length; the original computes their number with floats.
pub(super) fn chunk(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let size = args.int(0);
    let items = items(ctx, args.get(1), "Cannot chunk type")?;
    let count = int_of_float(((items.len() as f64 - 1.0) / size as f64).floor() + 1.0);
    // A negative size makes no chunks, or one of a single item, or fails.
    let remainder = (items.len() as u64)
        .checked_rem(size.unsigned_abs())
        .unwrap_or(0);
    let negative = size < 0 && (count > 1 || (count == 1 && remainder == 0));
    if count < 0 || negative {
        return Err(FuncError::new("runtime error: makeslice: len out of range"));
    }
    // Every chunk is a list of its own.
    ctx.check_items(items.len().saturating_add(count as usize))?;
    ctx.allocate((items.len() + items.len().min(count as usize)) * size_of::<Value>())?;
    let length = usize::try_from(size).unwrap_or(items.len()).max(1);
    let chunks = items
        .chunks(length)
        .take(count as usize)
        .map(|chunk| Value::list(chunk.to_vec()));
    Ok(Value::typed_list(ElementType::AnyList, chunks.collect()))
}

// === Order ===

pub(super) fn reverse(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot find reverse on type")?;
    ctx.check_items(items.len())?;
    Ok(Value::list(items.iter().rev().cloned().collect()))
}

pub(super) fn sort_alpha(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mut texts = match items(ctx, args.get(0), "") {
        Ok(_) => strings_of(args.get(0)),
        Err(_) => vec![string_of(args.get(0))],
    };
    texts.sort_unstable();
    Ok(Value::strings(texts))
}

// === Membership ===

pub(super) fn compact(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot compact on type")?;
    ctx.check_items(items.len())?;
    Ok(Value::list(
        items
            .iter()
            .filter(|item| !is_empty(item))
            .cloned()
            .collect(),
    ))
}

pub(super) fn uniq(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot find uniq on type")?;
    let mut unique: Vec<Value> = Vec::new();
    for item in items.iter() {
        if !holds(ctx, &unique, item)? {
            unique.push(item.clone());
        }
    }
    Ok(Value::list(unique))
}

pub(super) fn without(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let items = items(ctx, args.get(0), "Cannot find without on type")?;
    let mut kept = Vec::new();
    for item in items.iter() {
        if !holds(ctx, args.rest(1), item)? {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

pub(super) fn has(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    if args.get(1).is_nil() {
        return Ok(false.into());
    }
    let items = items(ctx, args.get(1), "Cannot find has on type")?;
    Ok(holds(ctx, &items, args.get(0))?.into())
}

fn holds(ctx: &Ctx<'_>, items: &[Value], wanted: &Value) -> Result<bool, FuncError> {
    for item in items {
        if deep_equal(ctx, item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}
