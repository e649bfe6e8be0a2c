//! Passwords: `bcrypt`, `htpasswd` and `derivePassword`.

use std::cell::RefCell;
use std::collections::HashMap;

use bcrypt::Version;
use hmac::{Hmac, Mac};
use scrypt::Params;
use sha2::Sha256;

use crate::function::{Args, Ctx, FuncError};
use crate::value::Value;

type Answer = Result<Value, FuncError>;

/// The cost of a bcrypt digest, as a power of two.
const BCRYPT_COST: u32 = 10;

/// The longest password that bcrypt takes.
const BCRYPT_LENGTH: usize = 72;

/// What a bcrypt digest costs: about a twentieth of a second.
const BCRYPT_STEPS: u64 = 5_000_000;

/// What deriving a password costs: about a seventh of a second.
const DERIVE_STEPS: u64 = 15_000_000;

/// How many digests a thread keeps: one takes as long as rendering ten charts.
const MAX_DIGESTS: usize = 64;

type SaltAndPassword = ([u8; 16], Vec<u8>);

thread_local! {
    static DIGESTS: RefCell<HashMap<SaltAndPassword, String>> = RefCell::default();
}

pub(super) fn bcrypt(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(digest(ctx, args.bytes(0))?.into())
}

pub(super) fn htpasswd(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let user = args.str(0);
    if user.contains(':') {
        return Ok(format!("invalid username: {user}").into());
    }
    Ok(format!("{user}:{}", digest(ctx, args.bytes(1))?).into())
}

/// The bcrypt digest of a password, or an error as text.
fn digest(ctx: &mut Ctx<'_>, password: &[u8]) -> Result<String, FuncError> {
    let failed = |reason: &str| format!("failed to encrypt string with bcrypt: {reason}");
    if password.len() > BCRYPT_LENGTH {
        return Ok(failed("bcrypt: password length exceeds 72 bytes"));
    }
    let key = (ctx.host.salt(password), password.to_owned());
    if let Some(known) = DIGESTS.with_borrow(|digests| digests.get(&key).cloned()) {
        return Ok(known);
    }
    ctx.step(BCRYPT_STEPS)?;
    Ok(match bcrypt::hash_with_salt(password, BCRYPT_COST, key.0) {
        Ok(parts) => {
            let digest = parts.format_for_version(Version::TwoA);
            remember(key, &digest);
            digest
        }
        Err(error) => failed(&error.to_string()),
    })
}

fn remember(key: SaltAndPassword, digest: &str) {
    DIGESTS.with_borrow_mut(|digests| {
        if digests.len() >= MAX_DIGESTS {
            digests.clear();
        }
        digests.insert(key, digest.to_owned());
    });
}

/// The name that the derivation mixes in everywhere; it is that of the program this scheme comes from.
const SEED: &[u8] = b"com.lyndir.masterpassword";

/// The shapes of a type of password; each letter stands for a set of characters.
fn shapes(password_type: &str) -> Option<&'static [&'static str]> {
    Some(match password_type {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

/// The characters that a letter of a shape stands for.
fn characters(letter: u8) -> &'static [u8] {
    match letter {
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// A password for a site, from a master password; the same input always gives the same password.
pub(super) fn derive_password(ctx: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let password_type = args.str(1);
    let Some(shapes) = shapes(&password_type) else {
        return Ok(format!("cannot find password template {password_type}").into());
    };
    ctx.step(DERIVE_STEPS)?;
    let (counter, password, user, site) = (
        args.int(0) as u32,
        args.bytes(2),
        args.bytes(3),
        args.bytes(4),
    );
    let length = |bytes: &[u8]| (bytes.len() as u32).to_be_bytes();

    let salt = [SEED, &length(user), user].concat();
    let parameters =
        Params::new(15, 8, 2, 64).map_err(|error| FuncError::new(error.to_string()))?;
    let mut key = [0; 64];
    scrypt::scrypt(password, &salt, &parameters, &mut key)
        .map_err(|error| FuncError::new(error.to_string()))?;

    let mut mac =
        Hmac::<Sha256>::new_from_slice(&key).map_err(|error| FuncError::new(error.to_string()))?;
    mac.update(&[SEED, &length(site), site, &counter.to_be_bytes()].concat());
    let seed = mac.finalize().into_bytes();

    let choose = |number: u8, count: usize| usize::from(number) % count;
    let shape = shapes[choose(seed[0], shapes.len())];
    let derived: String = shape
        .bytes()
        .zip(&seed[1..])
        .map(|(letter, number)| {
            let characters = characters(letter);
            char::from(characters[choose(*number, characters.len())])
        })
        .collect();
    Ok(derived.into())
}
