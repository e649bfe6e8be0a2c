//! `encryptAES` and `decryptAES`: AES-256 in CBC mode, with the random initialisation vector in front, in base 64.

use aes::Aes256;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};

use crate::function::{Args, Ctx, FuncError};
use crate::functions::encoding::{base64_decode, base64_encode};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

/// The length of a block.
const BLOCK: usize = 16;

/// A cipher for a password: its first bytes, filled up with zeros, are the key.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    let length = password.len().min(key.len());
    key[..length].copy_from_slice(&password[..length]);
    Aes256::new(&GenericArray::from(key))
}

pub(super) fn encrypt_aes(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (cipher, text) = (cipher(args.bytes(0)), args.bytes(1));
    if text.is_empty() {
        return Ok("".into());
    }
    ctx.step(text.len() as u64)?;
    ctx.check_text(text.len().saturating_mul(4) / 3)?;
    let padding = BLOCK - text.len() % BLOCK;
    let padded = [text, &vec![padding as u8; padding]].concat();
    let mut previous = [0; BLOCK];
    ctx.host.fill_random(&mut previous);
    let mut out = previous.to_vec();
    for chunk in padded.chunks(BLOCK) {
        let mut block = GenericArray::from(previous);
        for (byte, plain) in block.iter_mut().zip(chunk) {
            *byte ^= plain;
        }
        cipher.encrypt_block(&mut block);
        previous = block.into();
        out.extend_from_slice(&block);
    }
    Ok(base64_encode(&out).into())
}

/// Decrypts; the padding is cut off unchecked, as in the original, whose panics are errors here.
pub(super) fn decrypt_aes(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let (cipher, text) = (cipher(args.bytes(0)), args.bytes(1));
    if text.is_empty() {
        return Ok("".into());
    }
    ctx.step(text.len() as u64)?;
    ctx.check_text(text.len().saturating_mul(4) / 3)?;
    let bytes = base64_decode(text).map_err(FuncError::new)?;
    let Some((first, rest)) = bytes.split_at_checked(BLOCK) else {
        let capacity = text.len() / 4 * 3;
        return Err(FuncError::new(format!(
            "runtime error: slice bounds out of range [:{BLOCK}] with capacity {capacity}"
        )));
    };
    if rest.len() % BLOCK != 0 {
        return Err(FuncError::new("crypto/cipher: input not full blocks"));
    }
    let mut previous = first;
    let mut out = Vec::with_capacity(rest.len());
    for chunk in rest.chunks(BLOCK) {
        let mut block = GenericArray::clone_from_slice(chunk);
        cipher.decrypt_block(&mut block);
        out.extend(block.iter().zip(previous).map(|(byte, mask)| byte ^ mask));
        previous = chunk;
    }
    let Some(padding) = out.last() else {
        return Err(FuncError::new("runtime error: index out of range [-1]"));
    };
    let length = out.len() as i64 - i64::from(*padding);
    match usize::try_from(length) {
        Ok(length) => Ok(Value::str_from_bytes(&out[..length])),
        Err(_) => Err(FuncError::new(format!(
            "runtime error: slice bounds out of range [:{length}]"
        ))),
    }
}
