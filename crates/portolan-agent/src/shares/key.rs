//! The key of the node for shares: an X25519 identity of age, which never leaves the node.

use std::io::{self, Read as _, Write as _};

use age::secrecy::ExposeSecret as _;
use age::x25519::{Identity, Recipient};
use camino::Utf8Path;
use portolan_digest::Digest;
use portolan_modules::{MAX_SHARE_BYTES, MAX_SHARE_CONTENT};
use zeroize::Zeroizing;

use crate::disk;
use crate::wire::ShareRecipient;

/// The key of the node for shares.
pub(super) struct ShareIdentity(Identity);

/// Why a share cannot be encrypted or read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SealingError {
    /// There is nobody to encrypt it to.
    #[error("no node whose key is known may have the share")]
    Nobody,
    /// The text is no key.
    #[error("the key of node {0} is none of age")]
    NotAKey(String),
    /// It is not for this node, or was changed.
    #[error("the share cannot be decrypted: it is not for this node, or was changed")]
    NotForUs,
    /// It is too large.
    #[error("the share is larger than {MAX_SHARE_BYTES} bytes")]
    TooLarge,
    /// It cannot be encrypted.
    #[error("the share cannot be encrypted: {0}")]
    Encrypt(String),
}

impl ShareIdentity {
    /// Reads the key, or makes it; it is on the disk before anybody hears of it.
    pub(super) fn open(path: &Utf8Path) -> io::Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let text = Zeroizing::new(text);
                text.trim().parse().map(Self).map_err(io::Error::other)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let identity = Identity::generate();
                disk::write_durable(path, identity.to_string().expose_secret().as_bytes())?;
                Ok(Self(identity))
            }
            Err(error) => Err(error),
        }
    }

    /// The public key.
    pub(super) fn recipient(&self) -> String {
        self.0.to_public().to_string()
    }

    /// Encrypts something for this node alone.
    pub(super) fn encrypt_for_self(&self, content: &[u8]) -> Result<Vec<u8>, SealingError> {
        let own = ShareRecipient {
            key: self.recipient(),
            ..ShareRecipient::default()
        };
        encrypt(content, &[own])
    }

    /// A digest that only this node can make.
    pub(super) fn keyed_digest(&self, content: &[u8]) -> Digest {
        let text = self.0.to_string();
        let mut keyed = Zeroizing::new(
            Digest::of(text.expose_secret().as_bytes())
                .to_string()
                .into_bytes(),
        );
        keyed.extend_from_slice(content);
        Digest::of(&keyed)
    }

    pub(super) fn decrypt(&self, sealed: &[u8]) -> Result<Vec<u8>, SealingError> {
        let decryptor = age::Decryptor::new(sealed).map_err(|_| SealingError::NotForUs)?;
        let keys = std::iter::once(&self.0 as &dyn age::Identity);
        let reader = decryptor.decrypt(keys);
        let reader = reader.map_err(|_| SealingError::NotForUs)?;
        let mut content = Vec::new();
        let mut limited = reader.take(MAX_SHARE_CONTENT as u64 + 1);
        let read = limited.read_to_end(&mut content);
        read.map_err(|_| SealingError::NotForUs)?;
        if content.len() > MAX_SHARE_CONTENT {
            return Err(SealingError::TooLarge);
        }
        Ok(content)
    }
}

/// Encrypts a share to its recipients.
pub(super) fn encrypt(
    content: &[u8],
    recipients: &[ShareRecipient],
) -> Result<Vec<u8>, SealingError> {
    if content.len() > MAX_SHARE_CONTENT {
        return Err(SealingError::TooLarge);
    }
    let keys: Result<Vec<Recipient>, SealingError> = recipients
        .iter()
        .map(|one| {
            let key = one.key.parse();
            key.map_err(|_| SealingError::NotAKey(one.name.clone()))
        })
        .collect();
    let keys = keys?;
    let keys = keys.iter().map(|key| key as &dyn age::Recipient);
    let encryptor = age::Encryptor::with_recipients(keys).map_err(|_| SealingError::Nobody)?;
    let mut sealed = Vec::new();
    let failed = |error: io::Error| SealingError::Encrypt(error.to_string());
    let mut writer = encryptor.wrap_output(&mut sealed).map_err(failed)?;
    writer.write_all(content).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(directory: &tempfile::TempDir, name: &str) -> ShareIdentity {
        let path = directory.path().join(name);
        ShareIdentity::open(Utf8Path::from_path(&path).expect("UTF-8")).expect("opened")
    }

    fn recipient(identity: &ShareIdentity) -> ShareRecipient {
        ShareRecipient {
            key: identity.recipient(),
            ..ShareRecipient::default()
        }
    }

    #[test]
    fn only_recipients_can_read_a_share() {
        let directory = tempfile::tempdir().expect("a directory");
        let [a, b, c] = ["a", "b", "c"].map(|name| identity(&directory, name));
        let both = [recipient(&a), recipient(&b)];
        let sealed = encrypt(b"the token", &both).expect("encrypted");
        assert!(!sealed.windows(9).any(|part| part == b"the token"));
        assert_eq!(a.decrypt(&sealed).expect("a holder"), b"the token");
        // The key is the same after a restart.
        let b = identity(&directory, "b");
        assert_eq!(b.decrypt(&sealed).expect("a holder"), b"the token");
        assert!(matches!(c.decrypt(&sealed), Err(SealingError::NotForUs)));
        let mut changed = sealed;
        let last = changed.len() - 1;
        changed[last] ^= 1;
        assert!(matches!(b.decrypt(&changed), Err(SealingError::NotForUs)));
        assert!(matches!(
            encrypt(&vec![0; MAX_SHARE_CONTENT + 1], &[recipient(&a)]),
            Err(SealingError::TooLarge)
        ));
        assert!(matches!(encrypt(b"x", &[]), Err(SealingError::Nobody)));
        assert_ne!(a.keyed_digest(b"x"), b.keyed_digest(b"x"));
    }
}
