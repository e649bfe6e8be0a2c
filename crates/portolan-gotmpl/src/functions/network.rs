//! Host name lookups.

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

/// An address of a host; empty unless the host of the engine offers a name service.
pub(super) fn get_host_by_name(ctx: &mut Ctx<'_>, args: Args<'_>) -> Result<Value, FuncError> {
    Ok(ctx.host.address_of(&args.str(0)).into())
}
