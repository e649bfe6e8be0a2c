//! TOML as Helm's library for it (`BurntSushi/toml`) writes and reads it.

mod decode;
mod encode;

use crate::function::{Args, Ctx, FuncError};
use crate::functions::json::error_map;
use crate::value::Value;

type Answer = Result<Value, FuncError>;

/// TOML, or the error as text.
pub(super) fn to_toml(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    if args.get(0).is_nil() {
        let message = "reflect: call of reflect.Value.Type on zero Value";
        return Err(FuncError::new(message));
    }
    Ok(encode::encode(args.get(0))
        .unwrap_or_else(|error| error)
        .into())
}

/// A map from TOML; an error stands in it under `Error`.
pub(super) fn from_toml(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
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
