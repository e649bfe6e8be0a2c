//! Digests of strings, printed in hexadecimal or decimal.

use std::fmt::Write;

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

pub(super) fn sha1sum(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(hexadecimal(&Sha1::digest(args.bytes(0))).into())
}

pub(super) fn sha256sum(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(hexadecimal(&Sha256::digest(args.bytes(0))).into())
}

pub(super) fn sha512sum(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(hexadecimal(&Sha512::digest(args.bytes(0))).into())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Adler-32: two sums modulo the largest prime below 65536.
pub(super) fn adler32sum(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    const MODULUS: u32 = 65_521;
    let (low, high) = args.bytes(0).iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    Ok((high << 16 | low).to_string().into())
}
