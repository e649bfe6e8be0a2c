//! Encrypted values: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::secret::Secret;

const PREFIX: &str = "ENC[AES256_GCM,data:";
const NONCE_LENGTH: usize = 32;

/// A value as it stands in an encrypted document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SealedValue<'a> {
    data: &'a str,
    nonce: &'a str,
    tag: &'a str,
    /// `str`, `int`, `float`, `bool`, `bytes`, `time` or `comment`.
    pub(crate) kind: &'a str,
}

/// Opens values with a document's data key.
pub(crate) struct Cipher(AesGcm<Aes256, U32>);

/// Whether a text has the shape of a sealed value.
pub(crate) fn looks_sealed(text: &str) -> bool {
    SealedValue::parse(text).is_some()
}

impl<'a> SealedValue<'a> {
    /// Takes a text apart.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (data, rest) = rest.split_once(",iv:")?;
        let (nonce, rest) = rest.split_once(",tag:")?;
        let (tag, rest) = rest.split_once(",type:")?;
        let (kind, _) = rest.rsplit_once(']')?;
        Some(Self {
            data,
            nonce,
            tag,
            kind,
        })
    }
}

impl Cipher {
    /// A cipher with this key, when it has the length of one.
    pub(crate) fn new(key: &Secret) -> Option<Self> {
        AesGcm::new_from_slice(key.reveal()).ok().map(Self)
    }

    /// The plain bytes, when neither the value nor what is authenticated with it was changed.
    pub(crate) fn open(
        &self,
        sealed: &SealedValue<'_>,
        associated: &str,
    ) -> Option<Zeroizing<Vec<u8>>> {
        let nonce = STANDARD.decode(sealed.nonce).ok()?;
        let mut data = STANDARD.decode(sealed.data).ok()?;
        data.extend(STANDARD.decode(sealed.tag).ok()?);
        if nonce.len() != NONCE_LENGTH {
            return None;
        }
        let payload = Payload {
            msg: &data,
            aad: associated.as_bytes(),
        };
        let plain = self
            .0
            .decrypt(Nonce::<U32>::from_slice(&nonce), payload)
            .ok()?;
        Some(Zeroizing::new(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_is_taken_apart() {
        let sealed = SealedValue::parse("ENC[AES256_GCM,data:YQ==,iv:Yg==,tag:Yw==,type:str]");
        assert_eq!(
            sealed.map(|sealed| (sealed.data, sealed.kind)),
            Some(("YQ==", "str"))
        );
    }

    #[test]
    fn anything_else_is_not_sealed() {
        for text in [
            "",
            "plain",
            "ENC[AES256_GCM,data:YQ==]",
            "ENC[AES256_GCM,data:a,iv:b,tag:c,type:str",
        ] {
            assert!(!looks_sealed(text), "{text}");
        }
    }
}
