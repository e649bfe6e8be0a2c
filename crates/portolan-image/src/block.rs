//! Compressed blocks of layers that were written before, to be copied instead of compressed again.
//!
//! ```text
//! what is in a block ──key──▶ BlockCache ──▶ packed bytes and checksum     a change of one file changes few blocks
//! ```
//!
//! The key of a block names everything that its bytes depend on: the compression, the headers in it, and of each file
//! the digest of its content and which part of it is in the block. So a block can be found before it is compressed, and
//! an image is the same bytes whether its blocks were found or not.

use std::collections::HashMap;

use portolan_digest::{Digest, Hasher};

/// Keeps compressed blocks between builds.
pub trait BlockCache: Sync {
    /// Puts the packed bytes of a block into `output` and returns the CRC-32 of what was packed; `None` if they are not
    /// known or no longer whole.
    fn get(&self, key: &[u8; 32], output: &mut Vec<u8>) -> Option<u32>;

    /// Remembers the blocks of a layer that was written, in their order; the first begins at `start` in the blob.
    fn put(&self, blob: &Digest, start: u64, blocks: Vec<PackedBlock>);
}

/// Remembers nothing.
impl BlockCache for () {
    fn get(&self, _: &[u8; 32], _: &mut Vec<u8>) -> Option<u32> {
        None
    }

    fn put(&self, _: &Digest, _: u64, _: Vec<PackedBlock>) {}
}

/// A compressed block of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackedBlock {
    /// Names everything that decides its bytes.
    pub key: [u8; 32],
    /// The length of the packed bytes.
    pub length: u32,
    /// The CRC-32 of what was packed, for the end of a gzip member; zstd needs none.
    pub checksum: u32,
    /// The CRC-32 of the packed bytes: a blob that was damaged on the disk is not copied.
    pub packed_checksum: u32,
}

/// Where a compressed block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// The layer that it is in.
    pub blob: Digest,
    /// Where in the blob it begins.
    pub offset: u64,
    /// What it is.
    pub block: PackedBlock,
}

/// The compressed blocks of an image's layers, and where they lie.
#[derive(Debug, Clone, Default)]
pub struct BlockIndex {
    layers: HashMap<Digest, (u64, Vec<PackedBlock>)>,
    places: HashMap<[u8; 32], BlockPlace>,
}

/// The first bytes of a written index: its format.
const MAGIC: &[u8; 8] = b"ptlblks1";

const BLOCK_BYTES: usize = 32 + 3 * 4;
const LAYER_BYTES: usize = 32 + 2 * 8;

// === impl PackedBlock ===

impl PackedBlock {
    /// Whether these are its bytes, and not damaged ones.
    pub fn is(&self, packed: &[u8]) -> bool {
        crc32fast::hash(packed) == self.packed_checksum
    }
}

// === impl BlockIndex ===

impl BlockIndex {
    /// Adds the blocks of a layer; the first begins at `start` in the blob.
    pub fn insert(&mut self, blob: Digest, start: u64, blocks: Vec<PackedBlock>) {
        let mut offset = start;
        for block in &blocks {
            let place = BlockPlace {
                blob,
                offset,
                block: *block,
            };
            self.places.insert(block.key, place);
            offset = offset.saturating_add(u64::from(block.length));
        }
        self.layers.insert(blob, (start, blocks));
    }

    /// Returns where a block lies.
    pub fn get(&self, key: &[u8; 32]) -> Option<&BlockPlace> {
        self.places.get(key)
    }

    /// Returns the blocks of these layers alone; layers that are not known are left out.
    #[must_use]
    pub fn of_layers<'a>(&self, layers: impl IntoIterator<Item = &'a Digest>) -> Self {
        let mut chosen = Self::default();
        for layer in layers {
            if let Some((start, blocks)) = self.layers.get(layer) {
                chosen.insert(*layer, *start, blocks.clone());
            }
        }
        chosen
    }

    /// Adds all blocks of another index.
    pub fn extend(&mut self, other: Self) {
        self.layers.extend(other.layers);
        self.places.extend(other.places);
    }

    /// Writes the index down, in a stable order and with a digest at its end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut layers: Vec<_> = self.layers.iter().collect();
        layers.sort_unstable_by_key(|(blob, _)| **blob);
        let mut bytes = MAGIC.to_vec();
        for (blob, (start, blocks)) in layers {
            bytes.extend_from_slice(blob.as_bytes());
            bytes.extend_from_slice(&start.to_le_bytes());
            bytes.extend_from_slice(&(blocks.len() as u64).to_le_bytes());
            for block in blocks {
                bytes.extend_from_slice(&block.key);
                for number in [block.length, block.checksum, block.packed_checksum] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
        }
        let digest = Digest::of(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    /// Reads what [`BlockIndex::to_bytes`] wrote; `None` for anything else, which only means that blocks are compressed
    /// again.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (content, digest) = bytes.split_last_chunk::<32>()?;
        let mut hasher = Hasher::default();
        hasher.update(content);
        if hasher.finish_bytes() != *digest {
            return None;
        }
        let mut left = content.strip_prefix(MAGIC)?;
        let mut index = Self::default();
        while !left.is_empty() {
            let (layer, rest) = left.split_first_chunk::<LAYER_BYTES>()?;
            let (blob, numbers) = layer.split_first_chunk::<32>()?;
            let (start, count) = numbers.split_first_chunk::<8>()?;
            let start = u64::from_le_bytes(*start);
            let count = u64::from_le_bytes(*count.first_chunk::<8>()?);
            let length = usize::try_from(count).ok()?.checked_mul(BLOCK_BYTES)?;
            let (blocks, rest) = rest.split_at_checked(length)?;
            let (blocks, _) = blocks.as_chunks::<BLOCK_BYTES>();
            let blocks = blocks.iter().filter_map(packed_block).collect();
            index.insert(Digest::from_bytes(blob), start, blocks);
            left = rest;
        }
        Some(index)
    }
}

fn packed_block(bytes: &[u8; BLOCK_BYTES]) -> Option<PackedBlock> {
    let (key, numbers) = bytes.split_first_chunk::<32>()?;
    let (numbers, _) = numbers.as_chunks::<4>();
    let [length, checksum, packed_checksum] = numbers else {
        return None;
    };
    Some(PackedBlock {
        key: *key,
        length: u32::from_le_bytes(*length),
        checksum: u32::from_le_bytes(*checksum),
        packed_checksum: u32::from_le_bytes(*packed_checksum),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> BlockIndex {
        let block = |number: u8| PackedBlock {
            key: [number; 32],
            length: 100 + u32::from(number),
            checksum: 1,
            packed_checksum: 2,
        };
        let mut index = BlockIndex::default();
        index.insert(Digest::of(b"one"), 10, vec![block(1), block(2)]);
        index.insert(Digest::of(b"two"), 0, vec![block(3)]);
        index
    }

    #[test]
    fn what_was_written_is_read_again_and_anything_else_is_nothing() {
        let bytes = index().to_bytes();
        let read = BlockIndex::from_bytes(&bytes).unwrap();
        let place = read.get(&[2; 32]).unwrap();
        assert_eq!((place.blob, place.offset), (Digest::of(b"one"), 111));
        assert_eq!(read.to_bytes(), bytes);
        for length in 0..bytes.len() {
            assert!(BlockIndex::from_bytes(&bytes[..length]).is_none());
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(BlockIndex::from_bytes(&damaged).is_none(), "byte {at}");
        }
    }

    #[test]
    fn blocks_of_other_layers_are_left_out() {
        let chosen = index().of_layers([&Digest::of(b"two"), &Digest::of(b"three")]);
        assert!(chosen.get(&[3; 32]).is_some());
        assert!(chosen.get(&[1; 32]).is_none());
    }
}
