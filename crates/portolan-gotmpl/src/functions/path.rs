//! Slash-separated paths, split as Go's `path` does; on Linux `filepath` does the same.

use portolan_go::path;

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

pub(super) fn base(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(path::base(&args.str(0)).into())
}

pub(super) fn dir(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(path::dir(&args.str(0)).into())
}

pub(super) fn clean(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(path::clean(&args.str(0)).into())
}

pub(super) fn ext(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(path::ext(&args.str(0)).into())
}

pub(super) fn is_abs(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(args.str(0).starts_with('/').into())
}
