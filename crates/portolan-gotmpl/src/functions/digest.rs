//! Digests of strings, printed in hexadecimal or decimal.

use std::fmt::Write;

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

/// Without instructions of the processor for it, a digest takes about five nanoseconds for a byte.
const BYTES_PER_STEP: usize = 2;

fn check(ctx: &Ctx<'_>, args: Args<'_>) -> Result<(), FuncError> {
    ctx.step((args.bytes(0).len() / BYTES_PER_STEP) as u64)
}

pub(super) fn sha1sum(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check(ctx, args)?;
    Ok(hexadecimal(&Sha1::digest(args.bytes(0))).into())
}

pub(super) fn sha256sum(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check(ctx, args)?;
    Ok(hexadecimal(&Sha256::digest(args.bytes(0))).into())
}

pub(super) fn sha512sum(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check(ctx, args)?;
    Ok(hexadecimal(&Sha512::digest(args.bytes(0))).into())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Adler-32: two sums modulo the largest prime below 65536.
pub(super) fn adler32sum(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    check(ctx, args)?;
    const MODULUS: u32 = 65_521;
    let (low, high) = args.bytes(0).iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    Ok((high << 16 | low).to_string().into())
}
