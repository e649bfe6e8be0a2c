//! Base 64 and base 32, standard alphabets with padding. A text that cannot be decoded yields Go's error as text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

pub(super) fn b64enc(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    ctx.check_text(args.bytes(0).len().saturating_mul(4) / 3)?;
    Ok(base64_encode(args.bytes(0)).into())
}

pub(super) fn b64dec(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    ctx.step(args.bytes(0).len() as u64 / 2)?;
    Ok(match base64_decode(args.bytes(0)) {
        Ok(bytes) => Value::str_from_bytes(&bytes),
        Err(error) => error.into(),
    })
}

pub(super) fn b32enc(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    ctx.check_text(args.bytes(0).len().saturating_mul(8) / 5)?;
    Ok(base32_encode(args.bytes(0)).into())
}

pub(super) fn b32dec(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    ctx.step(args.bytes(0).len() as u64 / 2)?;
    Ok(match base32_decode(args.bytes(0)) {
        Ok(bytes) => Value::str_from_bytes(&bytes),
        Err(at) => format!("illegal base32 data at input byte {at}").into(),
    })
}

/// Bytes in base 64.
pub(super) fn base64_encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Bytes from base 64; Go's error text says at which byte it fails.
pub(super) fn base64_decode(text: &[u8]) -> Result<Vec<u8>, String> {
    decode_groups(text).map_err(|at| format!("illegal base64 data at input byte {at}"))
}

/// Decodes groups of four; line ends do not count.
fn decode_groups(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut group = Vec::with_capacity(4);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\r' | b'\n' => continue,
            b'=' => {
                base64_padding(text, at, group.len())?;
                break;
            }
            _ => group.push(base64_value(byte).ok_or(at - 1)?),
        }
        if group.len() == 4 {
            push_bits(&mut out, &group, 6);
            group.clear();
        }
    }
    if at == text.len() && !group.is_empty() && !text.contains(&b'=') {
        return Err(at - group.len());
    }
    push_bits(&mut out, &group, 6);
    Ok(out)
}

/// What may follow the first `=`, which stands before `at`.
fn base64_padding(text: &[u8], at: usize, length: usize) -> Result<(), usize> {
    let skip_lines = |mut at: usize| {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    let mut at = match length {
        0 | 1 => return Err(at - 1),
        2 => {
            let at = skip_lines(at);
            match text.get(at) {
                None => return Err(text.len()),
                Some(b'=') => at + 1,
                Some(_) => return Err(at - 1),
            }
        }
        _ => at,
    };
    at = skip_lines(at);
    if at < text.len() { Err(at) } else { Ok(()) }
}

fn base64_value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// The whole bytes that values of some bits each make.
fn push_bits(out: &mut Vec<u8>, values: &[u8], bits: usize) {
    let joined = values
        .iter()
        .fold(0_u64, |joined, value| joined << bits | u64::from(*value));
    let length = values.len() * bits;
    out.extend((1..=length / 8).map(|byte| (joined >> (length - 8 * byte)) as u8));
}

fn base32_encode(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let bits = (0..5).fold(0_u64, |bits, at| {
            bits << 8 | u64::from(*chunk.get(at).unwrap_or(&0))
        });
        let used = (chunk.len() * 8).div_ceil(5);
        for place in 0..8 {
            let letter = LETTERS[(bits >> (35 - 5 * place)) as usize & 31];
            out.push(if place < used {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

/// Decodes groups of eight, line ends taken out first; the error is the byte at which Go reports it.
fn base32_decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    for (index, group) in text.chunks(8).enumerate() {
        let start = index * 8;
        let mut values = Vec::with_capacity(8);
        for (place, byte) in group.iter().enumerate() {
            let last = text.len() - start - place - 1 < 8;
            if *byte == b'=' && place >= 2 && last {
                base32_padding(&text, start, place)?;
                push_bits(&mut out, &values, 5);
                return Ok(out);
            }
            values.push(base32_value(*byte).ok_or(start + place)?);
        }
        if group.len() < 8 {
            return Err(start);
        }
        push_bits(&mut out, &values, 5);
    }
    Ok(out)
}

/// What must follow a first `=` at some place of the last group.
fn base32_padding(text: &[u8], start: usize, place: usize) -> Result<(), usize> {
    if text.len() < start + 8 {
        return Err(text.len());
    }
    let padding = &text[start + place + 1..start + 8];
    if let Some(wrong) = padding.iter().position(|byte| *byte != b'=') {
        return Err(start + place + wrong);
    }
    if matches!(place, 3 | 6) {
        Err(start + place)
    } else {
        Ok(())
    }
}

fn base32_value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_pads_to_eight() {
        assert_eq!(base32_encode(b"hello"), "NBSWY3DP");
        assert_eq!(base32_encode(b"a"), "ME======");
        assert_eq!(base32_decode(b"ME======"), Ok(b"a".to_vec()));
    }

    #[test]
    fn base64_tells_where_it_fails() {
        assert_eq!(base64_decode(b"aGVsbG8=\n"), Ok(b"hello".to_vec()));
        assert_eq!(
            base64_decode(b"a").unwrap_err(),
            "illegal base64 data at input byte 0"
        );
        assert_eq!(
            base64_decode(b"!!").unwrap_err(),
            "illegal base64 data at input byte 0"
        );
    }
}
