//! What a value is: its Go type, its kind, and whether it equals another.

use crate::function::{Args, Ctx, FuncError};
use crate::functions::equal::deep_equal as equal;
use crate::value::Value;

type Answer = Result<Value, FuncError>;

pub(super) fn type_of(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.get(0).type_name().into_owned().into())
}

pub(super) fn type_is(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok((args.str(0) == args.get(1).type_name()).into())
}

/// Also true for a pointer to the type.
pub(super) fn type_is_like(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (target, name) = (args.str(0), args.get(1).type_name());
    Ok((name == target || name.strip_prefix('*') == Some(&target)).into())
}

pub(super) fn kind_of(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.get(0).kind().name().into())
}

pub(super) fn kind_is(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok((args.str(0) == args.get(1).kind().name()).into())
}

pub(super) fn deep_equal(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(equal(ctx, args.get(0), args.get(1))?.into())
}
