//! Replacements for missing values: `default`, `coalesce`, `ternary`, and what counts as empty.

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

/// Whether a value is nil, zero, false or has no elements; no struct is.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}

pub(super) fn default(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let given = args.rest(1).first().filter(|given| !is_empty(given));
    Ok(given.unwrap_or(args.get(0)).clone())
}

pub(super) fn empty(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(is_empty(args.get(0)).into())
}

pub(super) fn coalesce(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let first = args.all().iter().find(|value| !is_empty(value));
    Ok(first.cloned().unwrap_or_default())
}

pub(super) fn all(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok((!args.all().iter().any(is_empty)).into())
}

pub(super) fn any(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok((!args.all().iter().all(is_empty)).into())
}

pub(super) fn ternary(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.get(usize::from(!args.bool(2))).clone())
}
