//! Join tokens: `ptj_FLEET_ID_SEED`. The seed makes an Ed25519 key; the server has only its public part, so neither a
//! copy of the store nor what goes over the network enrols anybody.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use portolan_digest::hex;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::error::{IdentityError, malformed};
use crate::pin::{CaPin, read_hex};
use crate::transport::EXPORTER_BYTES;

const PREFIX: &str = "ptj_";

/// What a signature is for comes first, so that it is good for nothing else.
const PURPOSE: &[u8] = b"portolan enrolment 1\0";

/// A join token as its owner has it.
#[derive(Clone)]
pub struct JoinToken {
    fleet: String,
    id: String,
    key: SigningKey,
}

/// The public part of a join token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinTokenKey(VerifyingKey);

/// What is signed with a join token: this connection, this key, this fleet. Sent elsewhere, or again, it is worth
/// nothing.
#[derive(Debug, Clone, Copy)]
pub struct EnrolProof<'p> {
    /// A value that only both ends of this TLS connection know.
    pub exporter: &'p [u8; EXPORTER_BYTES],
    /// The key that a certificate is asked for.
    pub key: CaPin,
    /// The fleet.
    pub fleet: &'p str,
}

impl JoinToken {
    /// Makes a token of a fleet.
    pub fn generate(fleet: &str) -> Self {
        let seed = Zeroizing::new(rand::random::<[u8; 32]>());
        Self {
            fleet: fleet.to_owned(),
            id: hex(&rand::random::<[u8; 8]>()),
            key: SigningKey::from_bytes(&seed),
        }
    }

    /// The fleet.
    pub fn fleet(&self) -> &str {
        &self.fleet
    }

    /// The public name of the token.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the server keeps.
    pub fn public_key(&self) -> JoinTokenKey {
        JoinTokenKey(self.key.verifying_key())
    }

    /// The token as text, which nobody can read again.
    pub fn to_text(&self) -> Zeroizing<String> {
        let seed = Zeroizing::new(hex(self.key.as_bytes()));
        Zeroizing::new(format!(
            "{PREFIX}{}_{}_{}",
            self.fleet,
            self.id,
            seed.as_str()
        ))
    }

    /// Signs a proof.
    pub fn sign(&self, proof: &EnrolProof<'_>) -> [u8; 64] {
        self.key.sign(&proof.digest()).to_bytes()
    }
}

impl std::str::FromStr for JoinToken {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let wrong = || malformed("join token (ptj_…)");
        let parts = text.trim().strip_prefix(PREFIX).ok_or_else(wrong)?;
        let parts: Vec<&str> = parts.split('_').collect();
        let [fleet, id, seed] = parts.as_slice() else {
            return Err(wrong());
        };
        let is_name = |part: &str, most: usize| {
            !part.is_empty()
                && part.len() <= most
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !is_name(fleet, 64) || !is_name(id, 32) {
            return Err(wrong());
        }
        let seed = Zeroizing::new(read_hex(seed).ok_or_else(wrong)?);
        Ok(Self {
            fleet: (*fleet).to_owned(),
            id: (*id).to_owned(),
            key: SigningKey::from_bytes(&seed),
        })
    }
}

impl std::fmt::Debug for JoinToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "JoinToken({}, [redacted])", self.id)
    }
}

impl JoinTokenKey {
    /// The key as it is stored.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Reads a stored key.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, IdentityError> {
        let key = bytes.try_into().ok().map(VerifyingKey::from_bytes);
        match key {
            Some(Ok(key)) => Ok(Self(key)),
            _ => Err(malformed("public key of a join token")),
        }
    }

    /// Whether the token has signed the proof.
    pub fn has_signed(&self, proof: &EnrolProof<'_>, signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(&proof.digest(), &signature).is_ok())
    }
}

impl EnrolProof<'_> {
    /// Everything in it, each part with a fixed length or after its length.
    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(PURPOSE);
        digest.update(self.exporter);
        digest.update(self.key.to_bytes());
        digest.update((self.fleet.len() as u64).to_be_bytes());
        digest.update(self.fleet.as_bytes());
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_as_it_is_written_and_hides_its_seed() {
        let token = JoinToken::generate("4f6e");
        let read: JoinToken = token.to_text().parse().expect("a token");
        assert_eq!(read.public_key(), token.public_key());
        assert_eq!((read.id(), read.fleet()), (token.id(), "4f6e"));
        let seed = hex(token.key.as_bytes());
        assert!(!format!("{token:?}").contains(&seed));
        for text in ["", "ptj_a_b", "ptj_a_b_00", "ptl_a_b_c", "ptj_a_b_c_d"] {
            assert!(text.parse::<JoinToken>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_signature_holds_for_one_connection_key_and_fleet() {
        let token = JoinToken::generate("4f6e");
        let proof = EnrolProof {
            exporter: &[7; EXPORTER_BYTES],
            key: CaPin::of_public_key(b"key"),
            fleet: "4f6e",
        };
        let signature = token.sign(&proof);
        let key = JoinTokenKey::read(&token.public_key().to_bytes()).expect("a key");
        assert!(key.has_signed(&proof, &signature));
        let others = [
            EnrolProof {
                exporter: &[8; EXPORTER_BYTES],
                ..proof
            },
            EnrolProof {
                key: CaPin::of_public_key(b"other"),
                ..proof
            },
            EnrolProof {
                fleet: "4f6f",
                ..proof
            },
        ];
        assert!(!others.iter().any(|proof| key.has_signed(proof, &signature)));
        assert!(!key.has_signed(&proof, &signature[1..]));
        let other = JoinToken::generate("4f6e").public_key();
        assert!(!other.has_signed(&proof, &signature));
    }
}
