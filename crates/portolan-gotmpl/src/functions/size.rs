//! The limit on what one function call may make.

use crate::function::{Ctx, FuncError};

/// Refuses a result of more bytes or items than a value may have.
pub(super) fn check_size(ctx: &Ctx<'_>, size: usize) -> Result<(), FuncError> {
    let limit = ctx.limits.value_size;
    if size <= limit {
        return Ok(());
    }
    let message = format!("result is larger than the limit of {limit} bytes or items");
    Err(FuncError::new(message))
}
