//! Writes layers: entries as tar, compressed by several threads and hashed while they are written.
//!
//! ```text
//! read files, tar ──blocks──▶ compress (threads) ──blocks──▶ in order again ──▶ sink
//!    └ diff_id                                                     └ blob digest
//! ```
//!
//! A fixed number of blocks is reused, whatever the size of the image and the order of its layers; the blocks of one
//! layer follow those of the layer before without a pause. A block that was compressed before is copied.

mod reader;

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use portolan_digest::{Digest, Hasher};

use self::reader::{Reader, Stop};
use crate::blob::{BlobSink, BlobWriter};
use crate::block::{BlockCache, PackedBlock};
use crate::build_io::BuildIo;
use crate::compression::{CompressError, Compression, Compressor};
use crate::entry::Entry;
use crate::plan::{LayerOptions, LayerPlan};

/// More threads than these would only take memory: reading and hashing cannot feed them.
const MAX_THREADS: usize = 8;

/// A layer that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The media type of the blob.
    pub media_type: String,
    /// The digest of the tar.
    pub diff_id: Digest,
    /// The digest of the compressed tar.
    pub blob: Digest,
    /// The length of the compressed tar.
    pub size: u64,
}

/// Why a layer could not be written.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// A file is not what it was when it was read for the key.
    #[error("`{path}` changed while the image was built")]
    Changed {
        /// The path in the source.
        path: String,
    },
    /// A file could not be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The path in the source.
        path: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The blob could not be written.
    #[error("cannot write a layer")]
    Write(#[source] io::Error),
    /// A defect of a compressor.
    #[error(transparent)]
    Compress(#[from] CompressError),
}

/// One piece of a tar on its way. Blocks are used again.
#[derive(Default)]
struct Block {
    number: usize,
    plain: Vec<u8>,
    packed: Vec<u8>,
    /// What the packed bytes are.
    record: PackedBlock,
    /// The digest of the whole tar, with the last block of a layer.
    diff_id: Option<Digest>,
}

/// Writes layers; the answers are in the order of the plans.
pub fn write_layers(
    entries: &[Entry],
    plans: &[&LayerPlan],
    options: &LayerOptions,
    io: &BuildIo<'_>,
) -> Result<Vec<Layer>, LayerError> {
    let threads = io.threads.clamp(1, MAX_THREADS);
    // The rest of `io` stays on this thread.
    let (source, memo, known) = (io.source, io.memo, io.blocks);
    let (free, empty) = channel();
    for _ in 0..threads + 2 {
        // The other end is held below.
        let _ = free.send(Block::default());
    }
    let (filled, to_pack) = channel();
    let (packed, to_write) = channel();
    let to_pack = Mutex::new(to_pack);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut reader = Reader::new((source, memo), options, empty, filled);
            plans
                .iter()
                .try_for_each(|plan| reader.layer(entries, &plan.entries))
        });
        for _ in 0..threads {
            let packed = packed.clone();
            let to_pack = &to_pack;
            scope.spawn(move || pack(options.compression, known, to_pack, &packed));
        }
        drop(packed);
        let written = write(options.compression, plans.len(), &to_write, &free, io);
        // A writer that failed lets go of its ends, and the others stop.
        drop((to_write, free));
        let read = match reader.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        match (read, written) {
            (Err(Stop::Failed(error)), _) | (_, Err(error)) => Err(error),
            (_, Ok(layers)) => Ok(layers),
        }
    })
}

/// Compresses blocks, or copies those that are known, until there are no more.
fn pack(
    compression: Compression,
    known: &dyn BlockCache,
    to_pack: &Mutex<Receiver<Block>>,
    packed: &Sender<Result<Block, CompressError>>,
) {
    let mut compressor = match Compressor::new(compression) {
        Ok(compressor) => compressor,
        Err(error) => {
            let _ = packed.send(Err(error));
            return;
        }
    };
    loop {
        let next = match to_pack.lock() {
            Ok(blocks) => blocks.recv(),
            Err(_) => return,
        };
        let Ok(mut block) = next else {
            return;
        };
        let done = pack_block(&mut compressor, known, &mut block).map(|()| block);
        if packed.send(done).is_err() {
            return;
        }
    }
}

fn pack_block(
    compressor: &mut Compressor,
    known: &dyn BlockCache,
    block: &mut Block,
) -> Result<(), CompressError> {
    let checksum = match known.get(&block.record.key, &mut block.packed) {
        Some(checksum) => checksum,
        None => compressor.block(&block.plain, &mut block.packed)?,
    };
    block.record = PackedBlock {
        key: block.record.key,
        length: block.packed.len() as u32,
        checksum,
        packed_checksum: crc32fast::hash(&block.packed),
    };
    Ok(())
}

/// A layer that is being written.
struct Open<'a> {
    writer: Box<dyn BlobWriter + 'a>,
    hasher: Hasher,
    size: u64,
    checksum: crc32fast::Hasher,
    plain: u64,
    blocks: Vec<PackedBlock>,
}

impl<'a> Open<'a> {
    fn new(compression: Compression, sink: &'a dyn BlobSink) -> Result<Self, LayerError> {
        let mut open = Self {
            writer: sink.begin().map_err(LayerError::Write)?,
            hasher: Hasher::default(),
            size: 0,
            checksum: crc32fast::Hasher::new(),
            plain: 0,
            blocks: Vec::new(),
        };
        open.write(compression.head())?;
        Ok(open)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LayerError> {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        self.writer.write_all(bytes).map_err(LayerError::Write)
    }

    fn block(&mut self, block: &Block) -> Result<(), LayerError> {
        let length = block.plain.len() as u64;
        let checksum = crc32fast::Hasher::new_with_initial_len(block.record.checksum, length);
        self.checksum.combine(&checksum);
        self.plain += length;
        self.blocks.push(block.record);
        self.write(&block.packed)
    }

    fn finish(
        mut self,
        compression: Compression,
        diff_id: Digest,
        known: &dyn BlockCache,
    ) -> Result<Layer, LayerError> {
        let tail = compression.tail(self.checksum.clone().finalize(), self.plain);
        self.write(&tail)?;
        let blob = self.hasher.finish();
        self.writer.commit(&blob).map_err(LayerError::Write)?;
        known.put(&blob, compression.head().len() as u64, self.blocks);
        Ok(Layer {
            media_type: compression.media_type().to_owned(),
            diff_id,
            blob,
            size: self.size,
        })
    }
}

/// Writes blocks in their order and gives them back.
fn write(
    compression: Compression,
    count: usize,
    to_write: &Receiver<Result<Block, CompressError>>,
    free: &Sender<Block>,
    io: &BuildIo<'_>,
) -> Result<Vec<Layer>, LayerError> {
    let mut layers = Vec::with_capacity(count);
    let mut waiting: BTreeMap<usize, Block> = BTreeMap::new();
    let mut next = 0;
    let mut open: Option<Open<'_>> = None;
    while layers.len() < count {
        let Ok(block) = to_write.recv() else {
            // The reader failed, and says why.
            break;
        };
        let block = block?;
        waiting.insert(block.number, block);
        while let Some(mut block) = waiting.remove(&next) {
            next += 1;
            let mut layer = match open.take() {
                Some(layer) => layer,
                None => Open::new(compression, io.sink)?,
            };
            layer.block(&block)?;
            match block.diff_id.take() {
                Some(diff_id) => layers.push(layer.finish(compression, diff_id, io.blocks)?),
                None => open = Some(layer),
            }
            // Nobody takes it when all is read.
            let _ = free.send(block);
        }
    }
    Ok(layers)
}
