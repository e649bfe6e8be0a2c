//! Compressed blocks of the layers that an artifact had when it was last built.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use portolan_digest::Digest;
use portolan_image::{BlockCache, BlockIndex, BlockPlace, PackedBlock};

use crate::run::Run;
use crate::store::Store;

/// Longer ones are none of ours.
const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// The compressed blocks of one artifact: those that the store has, and those of layers that are written now.
#[derive(Debug)]
pub struct KnownBlocks<'a> {
    store: &'a Store,
    name: String,
    known: BlockIndex,
    written: Mutex<BlockIndex>,
}

impl<'a> Run<'a> {
    /// The compressed blocks of the artifact of this name; none if it was never built here.
    pub fn blocks(&self, name: &str) -> KnownBlocks<'a> {
        let store = self.store();
        let content = store.read_document(&blocks(name)).ok().flatten();
        KnownBlocks {
            store,
            name: name.to_owned(),
            known: content
                .and_then(|content| BlockIndex::from_bytes(&content))
                .unwrap_or_default(),
            written: Mutex::default(),
        }
    }
}

impl KnownBlocks<'_> {
    /// Remembers the blocks of these layers, and no others, for the next build of the artifact.
    pub fn keep<'d>(&self, layers: impl Iterator<Item = &'d Digest> + Clone) {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.known.of_layers(layers.clone());
        kept.extend(written.of_layers(layers));
        let path = blocks(&self.name);
        // Without it, all blocks of a changed layer are compressed again.
        let _ = self
            .store
            .output
            .write(path.as_str().into(), &kept.to_bytes());
    }

    fn read(&self, place: &BlockPlace, output: &mut Vec<u8>) -> Option<u32> {
        let block = place.block;
        if block.length > MAX_BLOCK_BYTES {
            return None;
        }
        // A blob that was collected is no loss.
        let file = File::open(self.store.blob_path(&place.blob)).ok()?;
        output.clear();
        output.resize(block.length as usize, 0);
        file.read_exact_at(output, place.offset).ok()?;
        block.is(output).then_some(block.checksum)
    }
}

impl BlockCache for KnownBlocks<'_> {
    fn get(&self, key: &[u8; 32], output: &mut Vec<u8>) -> Option<u32> {
        self.read(self.known.get(key)?, output)
    }

    fn put(&self, blob: &Digest, start: u64, blocks: Vec<PackedBlock>) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.insert(*blob, start, blocks);
    }
}

/// Where the blocks of an artifact are listed; names may be anything.
fn blocks(name: &str) -> String {
    format!("portolan/blocks/{}", Digest::of(name.as_bytes()).hex())
}
