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
    Ok(decode::decode(&args.str(0)).unwrap_or_else(|error| error_map(&error)))
}
