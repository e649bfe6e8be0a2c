//! Random strings and numbers from the host's source; a seeded source gives the same in every run.

use crate::function::{Args, Ctx, FuncError};
use crate::functions::encoding::base64_encode;
use crate::value::Value;

type Answer = Result<Value, FuncError>;

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";

pub(super) fn rand_alpha_num(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    random_text(ctx, args, &[LETTERS, DIGITS].concat())
}

pub(super) fn rand_alpha(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    random_text(ctx, args, LETTERS)
}

pub(super) fn rand_numeric(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    random_text(ctx, args, DIGITS)
}

pub(super) fn rand_ascii(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let printable: Vec<u8> = (b' '..=b'~').collect();
    random_text(ctx, args, &printable)
}

/// So many characters of an alphabet; none of a negative number.
fn random_text(ctx: &mut Ctx<'_>, args: Args<'_>, alphabet: &[u8]) -> Answer {
    let count = usize::try_from(args.int(0)).unwrap_or(0);
    ctx.check_text(count)?;
    ctx.step(count as u64)?;
    let pick = |_| char::from(alphabet[below(ctx, alphabet.len() as u64) as usize]);
    Ok((0..count).map(pick).collect::<String>().into())
}

/// A number below a limit, each equally likely.
pub(super) fn below(ctx: &mut Ctx<'_>, limit: u64) -> u64 {
    let limit = limit.max(1);
    // Numbers at the very end would favour the first ones.
    let usable = u64::MAX - u64::MAX % limit;
    loop {
        let mut bytes = [0; 8];
        ctx.host.fill_random(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < usable {
            return number % limit;
        }
    }
}

pub(super) fn rand_bytes(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let Ok(count) = usize::try_from(args.int(0)) else {
        return Err(FuncError::new("runtime error: makeslice: len out of range"));
    };
    // Four characters stand for three bytes.
    ctx.check_text(count.saturating_mul(4) / 3)?;
    let mut bytes = vec![0; count];
    ctx.host.fill_random(&mut bytes);
    Ok(base64_encode(&bytes).into())
}

pub(super) fn rand_int(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (low, high) = (args.int(0), args.int(1));
    let width = high.wrapping_sub(low);
    if width <= 0 {
        return Err(FuncError::new("invalid argument to Intn"));
    }
    Ok(Value::int(
        low.wrapping_add(below(ctx, width as u64) as i64),
    ))
}

pub(super) fn shuffle(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    ctx.step(args.bytes(0).len() as u64)?;
    let mut characters: Vec<char> = args.str(0).chars().collect();
    for last in (1..characters.len()).rev() {
        let chosen = below(ctx, last as u64 + 1) as usize;
        characters.swap(last, chosen);
    }
    Ok(characters.into_iter().collect::<String>().into())
}

pub(super) fn uuidv4(ctx: &mut Ctx<'_>, _: Args<'_>) -> Answer {
    let mut bytes = [0; 16];
    ctx.host.fill_random(&mut bytes);
    // The version and the variant are part of the format.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let number = u128::from_be_bytes(bytes);
    let digits = format!("{number:032x}");
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    Ok(parts.join("-").into())
}
