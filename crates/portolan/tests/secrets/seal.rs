//! Objects sealed as sops seals them, for an age key.

use std::io::Write as _;

use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Nonce};
use age::armor::{ArmoredWriter, Format};
use age::x25519::Identity;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha512};

/// The data key of every document: what is sealed here is no secret.
const DATA_KEY: [u8; 32] = [7; 32];

/// When every document was sealed; its code is bound to it.
const SEALED_AT: &str = "2026-01-01T00:00:00Z";

/// Seals the values of one field of an object, each with its sops type.
pub(crate) fn seal(head: &str, field: &str, values: &[(&str, &str, &str)], key: &str) -> String {
    let mut text = format!("{head}{field}:\n");
    let mut hash = Sha512::new();
    let plain = head.lines().filter_map(|line| line.split_once(": "));
    plain.for_each(|(_, value)| hash.update(value));
    for (name, value, kind) in values {
        let sealed = sealed_value(value, &format!("{field}:{name}:"), kind);
        text += &["  ", name, ": ", &sealed, "\n"].concat();
        // Booleans are hashed as Python writes them.
        let is_true = (*kind, *value) == ("bool", "true");
        hash.update(if is_true { "True" } else { *value });
    }
    let code = format!("{:X}", hash.finalize());
    let armored = data_key_for(key).replace('\n', "\n        ");
    text + &format!(
        "sops:\n  age:\n    - recipient: {}\n      enc: |\n        {}\n  lastmodified: \"{SEALED_AT}\"\n  mac: {}\n  encrypted_regex: ^{field}$\n  version: 3.11.0\n",
        identity(key).to_public(),
        armored.trim_end(),
        sealed_value(&code, SEALED_AT, "str")
    )
}

fn sealed_value(value: &str, path: &str, kind: &str) -> String {
    let cipher = AesGcm::<Aes256, U32>::new_from_slice(&DATA_KEY).expect("a key's length");
    let nonce = [9; 32];
    let payload = Payload {
        msg: value.as_bytes(),
        aad: path.as_bytes(),
    };
    let sealed = cipher.encrypt(Nonce::from_slice(&nonce), payload);
    let sealed = sealed.expect("it can be sealed");
    let (data, tag) = sealed.split_at(sealed.len() - 16);
    let [data, nonce, tag] = [data, &nonce, tag].map(|bytes| STANDARD.encode(bytes));
    format!("ENC[AES256_GCM,data:{data},iv:{nonce},tag:{tag},type:{kind}]")
}

fn data_key_for(key: &str) -> String {
    let recipient = identity(key).to_public();
    let recipients = std::iter::once(&recipient as &dyn age::Recipient);
    let encryptor = age::Encryptor::with_recipients(recipients).expect("a recipient");
    let mut out = Vec::new();
    let armor = ArmoredWriter::wrap_output(&mut out, Format::AsciiArmor).expect("armour");
    let mut writer = encryptor.wrap_output(armor).expect("a header");
    writer.write_all(&DATA_KEY).expect("memory");
    let armor = writer.finish().expect("memory");
    armor.finish().expect("memory");
    String::from_utf8(out).expect("armour is text")
}

fn identity(key: &str) -> Identity {
    key.parse().expect("an age key")
}
