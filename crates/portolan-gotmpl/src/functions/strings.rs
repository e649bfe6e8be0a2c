//! Strings: trimming, cutting, padding, quoting, splitting. Positions count bytes, as Go's slices do.

use crate::fmt::{display, quote as quoted};
use crate::function::{Args, Ctx, FuncError};
use crate::functions::convert::{string_of, strings_of};
use crate::functions::letters;
use crate::value::{MapType, Value};

type Answer = Result<Value, FuncError>;

/// Making a text takes about as long as a few instructions.
pub(super) const STEPS_PER_TEXT: u64 = 4;

/// What a text takes beside its bytes.
pub(super) const BYTES_PER_TEXT: usize = 48;

fn text(bytes: &[u8]) -> Answer {
    Ok(Value::str_from_bytes(bytes))
}

// === Trimming ===

pub(super) fn trim(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.str(0).trim().into())
}

pub(super) fn trim_all(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (cutset, text) = (args.str(0), args.str(1));
    Ok(text.trim_matches(|c| cutset.contains(c)).into())
}

pub(super) fn trim_suffix(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (suffix, value) = (args.bytes(0), args.bytes(1));
    text(value.strip_suffix(suffix).unwrap_or(value))
}

pub(super) fn trim_prefix(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (prefix, value) = (args.bytes(0), args.bytes(1));
    text(value.strip_prefix(prefix).unwrap_or(value))
}

/// Without white space. The original walks bytes and writes each as a character of its own when it drops any.
pub(super) fn nospace(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let bytes = args.bytes(0);
    let kept: Vec<char> = bytes
        .iter()
        .map(|byte| char::from(*byte))
        .filter(|c| !c.is_whitespace())
        .collect();
    if kept.len() == bytes.len() {
        return Ok(args.get(0).clone());
    }
    Ok(kept.into_iter().collect::<String>().into())
}

// === Case ===

pub(super) fn upper(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mapped: String = args.characters(0).chars().map(letters::upper).collect();
    Ok(mapped.into())
}

pub(super) fn lower(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let mapped: String = args.characters(0).chars().map(letters::lower).collect();
    Ok(mapped.into())
}

// === Cutting ===

/// The first `n` bytes, or the last `-n`.
pub(super) fn trunc(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (count, value) = (args.int(0), args.bytes(1));
    let length = value.len() as i64;
    let kept = match count {
        0.. => value.get(..count as usize),
        _ if length.saturating_add(count) > 0 => value.get((length + count) as usize..),
        _ => None,
    };
    text(kept.unwrap_or(value))
}

pub(super) fn substr(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (start, end, value) = (args.int(0), args.int(1), args.bytes(2));
    let length = value.len() as i64;
    let out_of_range = |range: String| {
        let message = format!("runtime error: slice bounds out of range {range}");
        Err(FuncError::new(message))
    };
    if start < 0 {
        return match usize::try_from(end).map(|end| value.get(..end)) {
            Err(_) => out_of_range(format!("[:{end}]")),
            Ok(None) => out_of_range(format!("[:{end}] with length {length}")),
            Ok(Some(head)) => text(head),
        };
    }
    let end = if end < 0 || end > length { length } else { end };
    match value.get(start as usize..end as usize) {
        Some(part) => text(part),
        None => out_of_range(format!("[{start}:{end}]")),
    }
}

pub(super) fn contains(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.str(1).contains(args.str(0).as_ref()).into())
}

pub(super) fn has_prefix(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.bytes(1).starts_with(args.bytes(0)).into())
}

pub(super) fn has_suffix(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.bytes(1).ends_with(args.bytes(0)).into())
}

// === Growing ===

pub(super) fn repeat(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let count = repeat_count(args.int(0))?;
    let value = args.bytes(1);
    ctx.check_text(value.len().saturating_mul(count))?;
    text(&value.repeat(count))
}

fn repeat_count(count: i64) -> Result<usize, FuncError> {
    usize::try_from(count).map_err(|_| FuncError::new("strings: negative Repeat count"))
}

pub(super) fn replace(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (old, new, source) = (args.str(0), args.str(1), args.str(2));
    let growth = new.len().saturating_sub(old.len());
    if growth > 0 {
        let times = source.matches(old.as_ref()).count();
        ctx.check_text(source.len().saturating_add(growth.saturating_mul(times)))?;
    }
    Ok(source.replace(old.as_ref(), &new).into())
}

pub(super) fn indent(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    indented(ctx, args, "")
}

pub(super) fn nindent(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    indented(ctx, args, "\n")
}

/// Every line after as many spaces as asked, empty lines too.
fn indented(ctx: &Ctx<'_>, args: Args<'_>, before: &str) -> Answer {
    let (spaces, value) = (repeat_count(args.int(0))?, args.bytes(1));
    let breaks = value.split(|byte| *byte == b'\n').count() - 1;
    let size = spaces
        .saturating_mul(breaks + 1)
        .saturating_add(value.len() + before.len());
    ctx.check_text(size)?;
    let pad = vec![b' '; spaces];
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(&pad);
    for line in value.split_inclusive(|byte| *byte == b'\n') {
        out.extend_from_slice(line);
        if line.ends_with(b"\n") {
            out.extend_from_slice(&pad);
        }
    }
    text(&out)
}

// === Printing ===

pub(super) fn quote(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let quoted = |value: &Value| match value {
        Value::RawStr(bytes) | Value::Bytes(bytes) => quoted(bytes, false),
        _ => quoted(string_of(value).as_bytes(), false),
    };
    Ok(join_present(args.all(), quoted).into())
}

pub(super) fn squote(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(join_present(args.all(), |value| format!("'{}'", display(value))).into())
}

pub(super) fn cat(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(join_present(args.all(), display).into())
}

/// All values but nils, printed, with spaces between.
fn join_present(values: &[Value], print: impl Fn(&Value) -> String) -> String {
    let printed: Vec<String> = values.iter().filter(|v| !v.is_nil()).map(print).collect();
    printed.join(" ")
}

pub(super) fn plural(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.get(usize::from(args.int(2) != 1)).clone())
}

pub(super) fn to_string(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    match args.get(0) {
        Value::Bytes(bytes) => text(bytes),
        raw @ Value::RawStr(_) => Ok(raw.clone()),
        value => Ok(string_of(value).into()),
    }
}

pub(super) fn to_strings(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::strings(strings_of(args.get(0))))
}

pub(super) fn hello(_: &mut Ctx<'_>, _: Args<'_>) -> Answer {
    Ok("Hello!".into())
}

// === Splitting and joining ===

pub(super) fn join(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let parts = strings_of(args.get(1));
    let separator = args.str(0);
    let size: usize = parts.iter().map(|part| part.len() + separator.len()).sum();
    ctx.check_text(size)?;
    Ok(parts.join(separator.as_ref()).into())
}

pub(super) fn split(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_parts(ctx, &args.str(1), &args.str(0), -1)?;
    Ok(numbered(&parts(&args.str(1), &args.str(0), -1)))
}

pub(super) fn splitn(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_parts(ctx, &args.str(2), &args.str(0), args.int(1))?;
    Ok(numbered(&parts(&args.str(2), &args.str(0), args.int(1))))
}

pub(super) fn split_list(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_parts(ctx, &args.str(1), &args.str(0), -1)?;
    Ok(Value::strings(parts(&args.str(1), &args.str(0), -1)))
}

/// Charges the parts of a text before they are made; each is a text of its own.
fn check_parts(ctx: &Ctx<'_>, text: &str, separator: &str, limit: i64) -> Result<(), FuncError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = match separator {
        "" => text.chars().count(),
        _ => text.matches(separator).count() + 1,
    };
    let count = count.min(limit);
    ctx.check_items(count)?;
    ctx.step(count as u64 * STEPS_PER_TEXT)?;
    ctx.allocate(
        count
            .saturating_mul(BYTES_PER_TEXT)
            .saturating_add(text.len()),
    )
}

/// `map[string]string` of `_0`, `_1`, ….
fn numbered(parts: &[&str]) -> Value {
    let entries = parts
        .iter()
        .enumerate()
        .map(|(index, part)| (format!("_{index}").into(), Value::from(*part)))
        .collect();
    Value::typed_map(MapType::Str, entries)
}

/// Go's `strings.SplitN`: an empty separator stands between all characters, a negative limit means all parts.
fn parts<'t>(text: &'t str, separator: &str, limit: i64) -> Vec<&'t str> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Vec::new();
    }
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if parts.len() + 1 == limit {
            rest.len()
        } else {
            first.len_utf8()
        };
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_separator_splits_between_characters() {
        assert_eq!(parts("aéb", "", -1), ["a", "é", "b"]);
        assert_eq!(parts("aéb", "", 2), ["a", "éb"]);
        assert_eq!(parts("", "", -1), [""; 0]);
        assert_eq!(parts("", ",", -1), [""]);
        assert_eq!(parts("a,b,c", ",", 2), ["a", "b,c"]);
    }
}
