//! Packets are sealed with the key of their cell.
//!
//! ```text
//! version │ id of the key │ nonce │ AES-256-GCM ciphertext │ tag        bound to version and id
//!    1    │       4       │  12   │          …             │  16
//! ```
//!
//! Nonces are random. A cell of 500 members sends some 60 million packets in a day, so with a key a day two packets have
//! the same nonce once in 40 trillion days.

use std::sync::Arc;

use aes_gcm::aead::AeadInPlace;
use aes_gcm::{Aes256Gcm, KeyInit, Nonce, Tag};
use rand::Rng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 4;
const CLEAR_BYTES: usize = 1 + KEY_ID_BYTES;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// What sealing adds to a packet.
pub(crate) const SEAL_BYTES: usize = CLEAR_BYTES + NONCE_BYTES + TAG_BYTES;

/// The largest packet: what every network carries in one piece (1,280 bytes) without the headers of IPv6 and UDP.
pub const MAX_PACKET_BYTES: usize = 1_232;

/// The key of a cell, which the server hands out over its authenticated streams. It prints as `[redacted]`.
#[derive(Clone)]
pub struct CellKey {
    id: [u8; KEY_ID_BYTES],
    cipher: Arc<Aes256Gcm>,
}

impl CellKey {
    /// The key of these bytes.
    pub fn new(bytes: &Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let digest = Sha256::new()
            .chain_update(b"portolan cell key id")
            .chain_update(bytes.as_slice())
            .finalize();
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        Self {
            id,
            cipher: Arc::new(Aes256Gcm::new(bytes.as_slice().into())),
        }
    }

    /// A new random key, for whoever hands out keys.
    pub fn generate() -> Zeroizing<[u8; KEY_BYTES]> {
        Zeroizing::new(rand::random())
    }
}

impl std::fmt::Debug for CellKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("CellKey([redacted])")
    }
}

/// The keys that a member has. While a key is replaced, members have two: packets of both are opened.
#[derive(Debug, Clone)]
pub struct CellKeys {
    current: CellKey,
    other: Option<CellKey>,
}

/// Why a packet was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// Too short, too long or of another version.
    Malformed,
    /// Sealed with a key that is not known here.
    OtherCell,
    /// Says a key of ours, and was not sealed with it as it is.
    Forged,
}

impl CellKeys {
    /// Seals with one key and opens with it alone.
    pub fn one(current: CellKey) -> Self {
        Self {
            current,
            other: None,
        }
    }

    /// Seals with one key and opens with both: the next key before all members have it, the last one after that.
    pub fn two(current: CellKey, other: CellKey) -> Self {
        let other = Some(other);
        Self { current, other }
    }

    /// Writes the packet of some bytes.
    pub(crate) fn seal(&self, rng: &mut impl Rng, plain: &[u8], packet: &mut Vec<u8>) {
        packet.clear();
        packet.push(VERSION);
        packet.extend_from_slice(&self.current.id);
        let mut nonce = [0; NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        packet.extend_from_slice(&nonce);
        packet.extend_from_slice(plain);
        let (clear, rest) = packet.split_at_mut(CLEAR_BYTES);
        let (nonce, text) = rest.split_at_mut(NONCE_BYTES);
        let nonce = Nonce::from_slice(nonce);
        match self
            .current
            .cipher
            .encrypt_in_place_detached(nonce, clear, text)
        {
            Ok(tag) => packet.extend_from_slice(&tag),
            // Only texts of many gigabytes cannot be sealed. An empty packet is dropped by whoever gets it.
            Err(_) => packet.clear(),
        }
    }

    /// Opens a packet into `plain`.
    pub(crate) fn open(&self, packet: &[u8], plain: &mut Vec<u8>) -> Result<(), OpenError> {
        if packet.len() > MAX_PACKET_BYTES {
            return Err(OpenError::Malformed);
        }
        let (clear, rest) = packet
            .split_at_checked(CLEAR_BYTES)
            .ok_or(OpenError::Malformed)?;
        let (nonce, rest) = rest
            .split_at_checked(NONCE_BYTES)
            .ok_or(OpenError::Malformed)?;
        let length = rest
            .len()
            .checked_sub(TAG_BYTES)
            .ok_or(OpenError::Malformed)?;
        let (text, tag) = rest.split_at(length);
        let (version, id) = clear.split_at(1);
        if version != [VERSION] {
            return Err(OpenError::Malformed);
        }
        let keys = std::iter::once(&self.current).chain(&self.other);
        let key = keys.into_iter().find(|key| key.id == id);
        let key = key.ok_or(OpenError::OtherCell)?;
        plain.clear();
        plain.extend_from_slice(text);
        key.cipher
            .decrypt_in_place_detached(Nonce::from_slice(nonce), clear, plain, Tag::from_slice(tag))
            .map_err(|_| OpenError::Forged)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn key(byte: u8) -> CellKey {
        CellKey::new(&Zeroizing::new([byte; KEY_BYTES]))
    }

    fn sealed(keys: &CellKeys, text: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        keys.seal(&mut StdRng::seed_from_u64(1), text, &mut packet);
        packet
    }

    fn opened(keys: &CellKeys, packet: &[u8]) -> Result<Vec<u8>, OpenError> {
        let mut plain = Vec::new();
        keys.open(packet, &mut plain).map(|()| plain)
    }

    #[test]
    fn a_packet_is_opened_as_it_was_sealed_and_its_text_is_not_in_it() {
        let keys = CellKeys::one(key(1));
        let packet = sealed(&keys, b"who is alive");
        assert_eq!(packet.len(), b"who is alive".len() + SEAL_BYTES);
        assert!(!packet.windows(5).any(|part| part == b"alive"));
        assert_eq!(opened(&keys, &packet), Ok(b"who is alive".to_vec()));
    }

    #[test]
    fn packets_of_another_cell_are_told_from_forged_ones() {
        let packet = sealed(&CellKeys::one(key(1)), b"x");
        let other = opened(&CellKeys::one(key(2)), &packet);
        assert_eq!(other, Err(OpenError::OtherCell));
    }

    #[test]
    fn no_bit_of_a_packet_can_be_changed_and_no_byte_cut_off_or_added() {
        let keys = CellKeys::one(key(1));
        let packet = sealed(&keys, b"who is alive");
        for at in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(opened(&keys, &changed).is_err(), "bit {at}");
        }
        for length in 0..packet.len() {
            assert!(opened(&keys, &packet[..length]).is_err(), "{length} bytes");
        }
        let longer = [packet.as_slice(), b"x"].concat();
        assert_eq!(opened(&keys, &longer), Err(OpenError::Forged));
        let huge = vec![VERSION; MAX_PACKET_BYTES + 1];
        assert_eq!(opened(&keys, &huge), Err(OpenError::Malformed));
    }

    #[test]
    fn while_a_key_is_replaced_packets_of_both_are_opened() {
        let both = CellKeys::two(key(2), key(1));
        let old = sealed(&CellKeys::one(key(1)), b"old");
        let new = sealed(&both, b"new");
        assert_eq!(opened(&both, &old), Ok(b"old".to_vec()));
        assert_eq!(opened(&CellKeys::one(key(2)), &new), Ok(b"new".to_vec()));
        assert_eq!(
            opened(&CellKeys::one(key(2)), &old),
            Err(OpenError::OtherCell)
        );
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", key(7)), "CellKey([redacted])");
    }
}
