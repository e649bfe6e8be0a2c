//! Public `OpenPGP` keys, as repositories of packages are signed with: read from armored or binary files, known by their
//! fingerprints, and written in one form.
//!
//! Only as much is read as a fingerprint needs. Whether a signature is right is decided by `gpgv` or `rpm`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

/// The largest file of keys that is read.
pub(crate) const MAX_KEY_BYTES: u64 = 1 << 20;

/// The most keys of one file.
const MAX_KEYS: usize = 64;

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// The letters of a line of armor.
const LINE_LETTERS: usize = 64;

/// Public keys with all their packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKeys {
    packets: Vec<u8>,
    fingerprints: Vec<String>,
}

/// Why a text is not a list of public keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// It begins with something else.
    #[error("it is not a public OpenPGP key")]
    NotAKey,
    /// It has a private key, which must not leave its owner.
    #[error("it has a private key")]
    Private,
    /// It ends too early, or its letters are not those of an armor.
    #[error("it is damaged")]
    Damaged,
    /// A key has a version of which fingerprints are not safe, or not known.
    #[error("it has a key of version {0}; versions 4 and 6 are read")]
    Version(u8),
    /// There are more keys than a repository needs.
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
}

impl PublicKeys {
    /// Reads keys, armored or binary.
    ///
    /// # Errors
    /// When they are something else, damaged, private or too many.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyFault> {
        let packets = match std::str::from_utf8(bytes) {
            Ok(text) if text.contains("-----BEGIN PGP ") => without_armor(text)?,
            _ => bytes.to_vec(),
        };
        let fingerprints = fingerprints_of(&packets)?;
        Ok(Self {
            packets,
            fingerprints,
        })
    }

    /// The fingerprints of all primary keys, in capital hexadecimal digits.
    pub fn fingerprints(&self) -> &[String] {
        &self.fingerprints
    }

    /// The keys as a text: one armor, whatever they were read from.
    pub fn armored(&self) -> String {
        let letters = STANDARD.encode(&self.packets);
        let mut text = format!("{BEGIN}\n\n");
        let mut rest = letters.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE_LETTERS));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        let sum = crc24(&self.packets).to_be_bytes();
        text.push('=');
        text.push_str(&STANDARD.encode(&sum[1..]));
        text.push('\n');
        text.push_str(END);
        text.push('\n');
        text
    }
}

/// A fingerprint as people write it, in capital digits without spaces; `None` if it is a short name of a key, which
/// anybody can make another key for.
pub fn read_fingerprint(text: &str) -> Option<String> {
    let digits: String = text
        .chars()
        .filter(|letter| !letter.is_ascii_whitespace() && *letter != ':')
        .collect();
    let digits = digits
        .strip_prefix("0x")
        .unwrap_or(&digits)
        .to_ascii_uppercase();
    let is_whole = matches!(digits.len(), 40 | 64);
    (is_whole && digits.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(digits)
}

/// The packets of all armored blocks of a text.
fn without_armor(text: &str) -> Result<Vec<u8>, KeyFault> {
    let mut packets = Vec::new();
    let mut lines = text.lines().map(str::trim_end);
    while let Some(line) = lines.next() {
        if line != BEGIN {
            if line.starts_with("-----BEGIN PGP PRIVATE") {
                return Err(KeyFault::Private);
            }
            if line.starts_with("-----BEGIN PGP ") {
                return Err(KeyFault::NotAKey);
            }
            continue;
        }
        // Headers such as `Comment:` come before an empty line.
        let mut body = String::new();
        let mut is_body = false;
        loop {
            let line = lines.next().ok_or(KeyFault::Damaged)?;
            if line == END {
                break;
            }
            if !is_body {
                is_body = line.is_empty();
            } else if !line.starts_with('=') {
                body.push_str(line.trim());
            }
        }
        let block = STANDARD.decode(&body).map_err(|_| KeyFault::Damaged)?;
        packets.extend(block);
    }
    Ok(packets)
}

/// Walks through packets. Only those that public keys consist of may be there.
fn fingerprints_of(packets: &[u8]) -> Result<Vec<String>, KeyFault> {
    const SIGNATURE: u8 = 2;
    const SECRET_KEY: u8 = 5;
    const PUBLIC_KEY: u8 = 6;
    const SECRET_SUBKEY: u8 = 7;
    const TRUST: u8 = 12;
    const USER_ID: u8 = 13;
    const PUBLIC_SUBKEY: u8 = 14;
    const USER_ATTRIBUTE: u8 = 17;
    const PADDING: u8 = 21;
    let mut found = Vec::new();
    let mut rest = packets;
    while !rest.is_empty() {
        let (tag, body, after) = packet(rest)?;
        rest = after;
        match tag {
            PUBLIC_KEY if found.len() >= MAX_KEYS => return Err(KeyFault::TooMany),
            PUBLIC_KEY => found.push(fingerprint(body)?),
            SECRET_KEY | SECRET_SUBKEY => return Err(KeyFault::Private),
            _ if found.is_empty() => return Err(KeyFault::NotAKey),
            SIGNATURE | TRUST | USER_ID | PUBLIC_SUBKEY | USER_ATTRIBUTE | PADDING => {}
            _ => return Err(KeyFault::NotAKey),
        }
    }
    if found.is_empty() {
        return Err(KeyFault::NotAKey);
    }
    Ok(found)
}

/// The tag and the body of the first packet, and what comes after it.
fn packet(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), KeyFault> {
    let (&first, rest) = bytes.split_first().ok_or(KeyFault::Damaged)?;
    if first & 0x80 == 0 {
        return Err(KeyFault::NotAKey);
    }
    let is_new = first & 0x40 != 0;
    let (tag, length, rest) = if is_new {
        let (&one, after) = rest.split_first().ok_or(KeyFault::Damaged)?;
        let (length, rest) = match one {
            0..=191 => (usize::from(one), after),
            192..=223 => {
                let (&two, after) = after.split_first().ok_or(KeyFault::Damaged)?;
                let high = (usize::from(one) - 192) << 8;
                (high + usize::from(two) + 192, after)
            }
            255 => number(after, 4)?,
            // A body in parts is for data of unknown length, which a key is not.
            224..=254 => return Err(KeyFault::Damaged),
        };
        (first & 0x3f, length, rest)
    } else {
        let (length, rest) = match first & 3 {
            0 => number(rest, 1)?,
            1 => number(rest, 2)?,
            2 => number(rest, 4)?,
            _ => return Err(KeyFault::Damaged),
        };
        ((first >> 2) & 0x0f, length, rest)
    };
    let (body, after) = rest.split_at_checked(length).ok_or(KeyFault::Damaged)?;
    Ok((tag, body, after))
}

/// A number of some bytes, the highest first.
fn number(bytes: &[u8], count: usize) -> Result<(usize, &[u8]), KeyFault> {
    let (digits, rest) = bytes.split_at_checked(count).ok_or(KeyFault::Damaged)?;
    let add = |number: usize, byte: &u8| (number << 8) | usize::from(*byte);
    Ok((digits.iter().fold(0, add), rest))
}

fn fingerprint(body: &[u8]) -> Result<String, KeyFault> {
    let version = *body.first().ok_or(KeyFault::Damaged)?;
    let digest = match version {
        4 => {
            let length = u16::try_from(body.len()).map_err(|_| KeyFault::Damaged)?;
            let mut hasher = Sha1::new();
            hasher.update([0x99]);
            hasher.update(length.to_be_bytes());
            hasher.update(body);
            hasher.finalize().to_vec()
        }
        6 => {
            let length = u32::try_from(body.len()).map_err(|_| KeyFault::Damaged)?;
            let mut hasher = Sha256::new();
            hasher.update([0x9b]);
            hasher.update(length.to_be_bytes());
            hasher.update(body);
            hasher.finalize().to_vec()
        }
        other => return Err(KeyFault::Version(other)),
    };
    let mut digits = String::new();
    for byte in digest {
        // Writing to a text cannot fail.
        let _ = write!(digits, "{byte:02X}");
    }
    Ok(digits)
}

/// The check sum that ends an armor.
fn crc24(bytes: &[u8]) -> u32 {
    let mut sum: u32 = 0x00b7_04ce;
    for byte in bytes {
        sum ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            sum <<= 1;
            if sum & 0x0100_0000 != 0 {
                sum ^= 0x0186_4cfb;
            }
        }
    }
    sum & 0x00ff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `GnuPG` 2.2.
    const KEY: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEav1TvhYJKwYBBAHaRw8BAQdAFAuPd3EEws2Dbblpb5tAEwwm8gVfsK6rkzrw
Qyo0Sym0EVQgPHRAZXhhbXBsZS5vcmc+iJAEExYIADgWIQSQ30mQF3p1/e6Xa7Tg
BYqwen+LMgUCav1TvgIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRDgBYqw
en+LMnLJAQDMvLkhgA/xBaY6zgOE+OcQRBIDhb8zeAT28oHTr30TiAEA8ZttKkG5
LIhK5xfAUJu3F2sSWB4o+hGZLQyqgLHVGgE=
=I4xM
-----END PGP PUBLIC KEY BLOCK-----
";

    #[test]
    fn a_key_has_the_fingerprint_and_the_armor_that_gnupg_gives_it() {
        let keys = PublicKeys::parse(KEY.as_bytes()).unwrap();
        assert_eq!(
            keys.fingerprints(),
            ["90DF4990177A75FDEE976BB4E0058AB07A7F8B32"]
        );
        assert_eq!(keys.armored(), KEY);
        let binary = PublicKeys::parse(&keys.packets).unwrap();
        assert_eq!(binary, keys);
    }

    #[test]
    fn all_keys_of_a_file_are_found() {
        let twice = format!("{KEY}\nand\n{KEY}");
        let keys = PublicKeys::parse(twice.as_bytes()).unwrap();
        assert_eq!(keys.fingerprints().len(), 2, "none may come in unseen");
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        let fault = |bytes: &[u8]| PublicKeys::parse(bytes).unwrap_err();
        assert_eq!(fault(b""), KeyFault::NotAKey);
        assert_eq!(fault(b"<html>not found</html>"), KeyFault::NotAKey);
        let private = KEY.replace("PUBLIC", "PRIVATE");
        assert_eq!(fault(private.as_bytes()), KeyFault::Private);
        let cut = KEY.replace("LIhK5xfAUJu3F2sSWB4o+hGZLQyqgLHVGgE=\n", "");
        assert_eq!(fault(cut.as_bytes()), KeyFault::Damaged);
        let end = KEY.find("=I4xM").unwrap();
        assert_eq!(fault(&KEY.as_bytes()[..end]), KeyFault::Damaged);
    }

    #[test]
    fn short_names_of_keys_are_no_fingerprints() {
        assert_eq!(
            read_fingerprint("90DF 4990 177A 75FD EE97  6BB4 E005 8AB0 7A7F 8B32").as_deref(),
            Some("90DF4990177A75FDEE976BB4E0058AB07A7F8B32")
        );
        assert_eq!(read_fingerprint("E0058AB07A7F8B32"), None);
        assert_eq!(read_fingerprint("x"), None);
    }
}
