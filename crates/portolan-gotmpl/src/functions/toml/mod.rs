//! TOML as Helm's library for it (`BurntSushi/toml`) writes and reads it.

mod decode;
mod encode;

use crate::function::{Args, Ctx, FuncError};
use crate::functions::json::{check_reading, error_map};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

/// TOML, or the error as text.
pub(super) fn to_toml(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    if args.get(0).is_nil() {
        let message = "reflect: call of reflect.Value.Type on zero Value";
        return Err(FuncError::new(message));
    }
    let limit = ctx.meter.value_limit();
    let (text, written) = encode::encode(args.get(0), limit);
    // Every table repeats the names of those around it, so the size shows only as it is written.
    ctx.check_text(text.len())?;
    Ok(written.err().unwrap_or(text).into())
}

/// A map from TOML; an error stands in it under `Error`.
pub(super) fn from_toml(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check_reading(ctx, args.bytes(0))?;
    Ok(decode::decode(args.bytes(0)).unwrap_or_else(|error| error_map(&error)))
}

/// A key as it is written: parts with dots between.
fn dotted(key: &[impl AsRef<str>]) -> String {
    let parts: Vec<String> = key.iter().map(|part| quoted_key(part.as_ref())).collect();
    parts.join(".")
}

/// A part of a key, in quotes where it needs them.
fn quoted_key(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(is_bare) {
        return key.to_owned();
    }
    encode::quoted(key)
}
