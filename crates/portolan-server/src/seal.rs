//! Secret values in the store: encrypted with a key of their own, which is encrypted with the key of the server.
//!
//! ```text
//! key-encryption key (file or environment) ──AES-256-GCM──▶ data key ──AES-256-GCM──▶ values
//! ```
//!
//! Both ciphertexts are bound to the kind, namespace, name and uuid of the object: one that was copied to another
//! object cannot be opened there. Several key-encryption keys can be known at once; the first one seals.

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portolan_digest::hex;
use portolan_kinds::wire::SealedValues;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// A key that encrypts the keys of secrets. It prints as its name only.
#[derive(Clone)]
pub struct KeyEncryptionKey {
    /// The first digits of the key's digest: enough to tell keys apart, useless for anything else.
    id: String,
    key: Zeroizing<[u8; KEY_BYTES]>,
}

/// Why values cannot be sealed or opened. No message says anything of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The text is no key.
    #[error("a key-encryption key must be 32 bytes in base64, and as many keys one per line")]
    NotAKey,
    /// The key that sealed the values is not known here.
    #[error("the values were sealed with key `{0}`, which this server does not have")]
    UnknownKey(String),
    /// The ciphertext was changed, or belongs to another object.
    #[error("the sealed values cannot be opened: they were changed, or belong to another object")]
    Damaged,
}

impl KeyEncryptionKey {
    /// A new random key.
    pub fn generate() -> Self {
        Self::from_bytes(&rand::random())
    }

    fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Self {
        let digest = Sha256::digest([b"portolan key id".as_slice(), bytes].concat());
        let id = hex(&digest[..6]);
        Self {
            id,
            key: Zeroizing::new(*bytes),
        }
    }

    /// Reads keys, one in base64 per line; the first one seals, all open.
    ///
    /// # Errors
    /// When a line is no key, or there is none.
    pub fn read_all(text: &str) -> Result<Vec<Self>, SealError> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Result<Vec<Self>, SealError> = lines.map(Self::read).collect();
        let keys = keys?;
        if keys.is_empty() {
            Err(SealError::NotAKey)
        } else {
            Ok(keys)
        }
    }

    fn read(line: &str) -> Result<Self, SealError> {
        let bytes = Zeroizing::new(STANDARD.decode(line).map_err(|_| SealError::NotAKey)?);
        let bytes: [u8; KEY_BYTES] = bytes
            .as_slice()
            .try_into()
            .map_err(|_| SealError::NotAKey)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// The key as a line of a file.
    pub fn to_line(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{}\n", STANDARD.encode(self.key.as_slice())))
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new(self.key.as_slice().into())
    }
}

impl std::fmt::Debug for KeyEncryptionKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "KeyEncryptionKey({}, [redacted])", self.id)
    }
}

/// Seals and opens the values of secrets.
#[derive(Debug, Clone)]
pub(crate) struct Sealer {
    keys: Vec<KeyEncryptionKey>,
}

impl Sealer {
    /// The first key seals; there must be one.
    pub(crate) fn new(keys: Vec<KeyEncryptionKey>) -> Option<Self> {
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// The name of the key that seals.
    pub(crate) fn current(&self) -> &str {
        self.keys.first().map_or("", |key| key.id.as_str())
    }

    /// A key for another purpose, which follows from the key that seals: all servers of a store have the same one.
    pub(crate) fn derived(&self, purpose: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
        let mut hasher = Sha256::new();
        hasher.update(purpose);
        hasher.update([0]);
        hasher.update(self.keys.first()?.key.as_slice());
        Some(Zeroizing::new(hasher.finalize().into()))
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    /// Encrypts values for the object that `bound_to` names.
    pub(crate) fn seal(
        &self,
        values: &Map<String, Value>,
        bound_to: &str,
    ) -> Result<SealedValues, SealError> {
        let data_key = Zeroizing::new(rand::random::<[u8; KEY_BYTES]>());
        let plain = Zeroizing::new(serde_json::to_vec(values).map_err(|_| SealError::Damaged)?);
        let data_cipher = Aes256Gcm::new(data_key.as_slice().into());
        let kek = self.keys.first().ok_or(SealError::NotAKey)?;
        Ok(SealedValues {
            key_id: kek.id.clone(),
            wrapped_key: encrypt(&kek.cipher(), data_key.as_slice(), bound_to)?.into(),
            ciphertext: encrypt(&data_cipher, &plain, bound_to)?.into(),
        })
    }

    /// Decrypts the values of the object that `bound_to` names.
    pub(crate) fn open(
        &self,
        sealed: &SealedValues,
        bound_to: &str,
    ) -> Result<Map<String, Value>, SealError> {
        let data_key = self.open_key(sealed, bound_to)?;
        let cipher = Aes256Gcm::new_from_slice(&data_key).map_err(|_| SealError::Damaged)?;
        let plain = decrypt(&cipher, &sealed.ciphertext, bound_to)?;
        serde_json::from_slice(&plain).map_err(|_| SealError::Damaged)
    }

    /// The same values with their key encrypted by the current key-encryption key; `None` if they have it already.
    pub(crate) fn rewrap(
        &self,
        sealed: &SealedValues,
        bound_to: &str,
    ) -> Result<Option<SealedValues>, SealError> {
        let kek = self.keys.first().ok_or(SealError::NotAKey)?;
        if sealed.key_id == kek.id {
            return Ok(None);
        }
        let data_key = self.open_key(sealed, bound_to)?;
        Ok(Some(SealedValues {
            key_id: kek.id.clone(),
            wrapped_key: encrypt(&kek.cipher(), &data_key, bound_to)?.into(),
            ciphertext: sealed.ciphertext.clone(),
        }))
    }

    fn open_key(
        &self,
        sealed: &SealedValues,
        bound_to: &str,
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let kek = self.keys.iter().find(|key| key.id == sealed.key_id);
        let kek = kek.ok_or_else(|| SealError::UnknownKey(sealed.key_id.clone()))?;
        decrypt(&kek.cipher(), &sealed.wrapped_key, bound_to)
    }
}

fn encrypt(cipher: &Aes256Gcm, plain: &[u8], bound_to: &str) -> Result<Vec<u8>, SealError> {
    let nonce: [u8; NONCE_BYTES] = rand::random();
    let payload = Payload {
        msg: plain,
        aad: bound_to.as_bytes(),
    };
    let sealed = cipher.encrypt(Nonce::from_slice(&nonce), payload);
    let sealed = sealed.map_err(|_| SealError::Damaged)?;
    Ok([nonce.as_slice(), &sealed].concat())
}

fn decrypt(
    cipher: &Aes256Gcm,
    sealed: &[u8],
    bound_to: &str,
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let (nonce, sealed) = sealed
        .split_at_checked(NONCE_BYTES)
        .ok_or(SealError::Damaged)?;
    let payload = Payload {
        msg: sealed,
        aad: bound_to.as_bytes(),
    };
    let plain = cipher.decrypt(Nonce::from_slice(nonce), payload);
    plain.map(Zeroizing::new).map_err(|_| SealError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Map<String, Value> {
        Map::from_iter([("password".to_owned(), Value::from("s3cret-of-the-test"))])
    }

    #[test]
    fn values_can_be_opened_only_for_the_object_they_were_sealed_for() {
        let sealer = Sealer::new(vec![KeyEncryptionKey::generate()]).expect("a key");
        let sealed = sealer.seal(&values(), "Secret/web/db/1").expect("sealed");
        assert_eq!(sealer.open(&sealed, "Secret/web/db/1"), Ok(values()));
        let other = sealer.open(&sealed, "Secret/web/other/2");
        assert_eq!(other, Err(SealError::Damaged));
        let text = format!("{sealed:?} {sealer:?}");
        assert!(!text.contains("s3cret"), "{text}");
    }

    #[test]
    fn an_old_key_opens_until_values_are_wrapped_again() {
        let (old, new) = (KeyEncryptionKey::generate(), KeyEncryptionKey::generate());
        let sealed = Sealer::new(vec![old.clone()])
            .expect("a key")
            .seal(&values(), "x")
            .expect("sealed");
        let both = Sealer::new(vec![new.clone(), old]).expect("keys");
        let rewrapped = both
            .rewrap(&sealed, "x")
            .expect("wrapped")
            .expect("changed");
        let only_new = Sealer::new(vec![new]).expect("a key");
        assert!(matches!(
            only_new.open(&sealed, "x"),
            Err(SealError::UnknownKey(_))
        ));
        assert_eq!(only_new.open(&rewrapped, "x"), Ok(values()));
        assert_eq!(both.rewrap(&rewrapped, "x"), Ok(None));
    }

    #[test]
    fn keys_are_read_one_per_line() {
        let key = KeyEncryptionKey::generate();
        let text = format!("# made today\n{}\n", key.to_line().as_str());
        let read = KeyEncryptionKey::read_all(&text).expect("keys");
        assert_eq!(read[0].id(), key.id());
        assert_eq!(
            KeyEncryptionKey::read_all("abc").unwrap_err(),
            SealError::NotAKey
        );
        assert_eq!(
            KeyEncryptionKey::read_all("").unwrap_err(),
            SealError::NotAKey
        );
    }
}
