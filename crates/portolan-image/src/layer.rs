//! Writes layers: entries as tar, compressed by several threads and hashed while they are written.
//!
//! ```text
//! read files, tar ──blocks──▶ compress (threads) ──blocks──▶ in order again ──▶ sink
//!    └ diff_id                                                     └ blob digest
//! ```
//!
//! A fixed number of blocks is reused, whatever the size of the image and the order of its layers; the blocks of one
//! layer follow those of the layer before without a pause.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use portolan_digest::{Digest, Hasher};

use crate::blob::{BlobSink, BlobWriter};
use crate::compression::{CompressError, Compression, Compressor};
use crate::entry::{Entry, Node};
use crate::plan::{LayerOptions, LayerPlan};
use crate::source::Source;
use crate::tar;

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
    checksum: crc32fast::Hasher,
    /// The digest of the whole tar, with the last block of a layer.
    diff_id: Option<Digest>,
}

/// Writes layers to a sink; the answers are in the order of the plans.
pub fn write_layers(
    source: &dyn Source,
    entries: &[Entry],
    plans: &[&LayerPlan],
    options: &LayerOptions,
    threads: usize,
    sink: &dyn BlobSink,
) -> Result<Vec<Layer>, LayerError> {
    let threads = threads.clamp(1, MAX_THREADS);
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
            let mut reader = Reader::new(source, options, empty, filled);
            plans
                .iter()
                .try_for_each(|plan| reader.layer(entries, &plan.entries))
        });
        for _ in 0..threads {
            let packed = packed.clone();
            let to_pack = &to_pack;
            scope.spawn(move || pack(options.compression, to_pack, &packed));
        }
        drop(packed);
        let written = write(options.compression, plans.len(), &to_write, &free, sink);
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

/// Why reading ended early.
enum Stop {
    Failed(LayerError),
    /// The writer is gone; it says why.
    NoReader,
}

/// Fills blocks with tar.
struct Reader<'a> {
    source: &'a dyn Source,
    options: &'a LayerOptions,
    empty: Receiver<Block>,
    filled: Sender<Block>,
    block: Option<Block>,
    number: usize,
    hasher: Hasher,
}

impl<'a> Reader<'a> {
    fn new(
        source: &'a dyn Source,
        options: &'a LayerOptions,
        empty: Receiver<Block>,
        filled: Sender<Block>,
    ) -> Self {
        Self {
            source,
            options,
            empty,
            filled,
            block: None,
            number: 0,
            hasher: Hasher::default(),
        }
    }

    fn layer(&mut self, entries: &[Entry], members: &[usize]) -> Result<(), Stop> {
        let mut header = Vec::new();
        for member in members {
            let entry = &entries[*member];
            header.clear();
            tar::header(entry, self.options.modified, &mut header);
            self.bytes(&header)?;
            if let Node::File {
                source,
                size,
                content,
            } = &entry.node
            {
                self.file(source, *size, content)?;
            }
        }
        header.clear();
        tar::end(&mut header);
        self.bytes(&header)?;
        let mut last = self.take_block()?;
        self.hasher.update(&last.plain);
        last.diff_id = Some(std::mem::take(&mut self.hasher).finish());
        self.send(last)
    }

    /// Copies a file, which must be what it was.
    fn file(&mut self, path: &str, size: u64, content: &[u8; 32]) -> Result<(), Stop> {
        let failed = |source| {
            Stop::Failed(LayerError::Read {
                path: path.to_owned(),
                source,
            })
        };
        let changed = || {
            Stop::Failed(LayerError::Changed {
                path: path.to_owned(),
            })
        };
        let mut file = self.source.open(path).map_err(failed)?;
        let mut hasher = Hasher::default();
        let mut left = size;
        while left > 0 {
            let mut block = self.take_block()?;
            let start = block.plain.len();
            let room = (self.block_bytes() - start) as u64;
            let wanted = room.min(left);
            let read = (&mut file).take(wanted).read_to_end(&mut block.plain);
            hasher.update(&block.plain[start..]);
            self.give_back(block)?;
            left -= match read.map_err(failed)? as u64 {
                0 => return Err(changed()),
                read => read,
            };
        }
        let mut more = [0];
        let is_longer = file.read(&mut more).map_err(failed)? > 0;
        if is_longer || hasher.finish_bytes() != *content {
            return Err(changed());
        }
        self.bytes(&[0; tar::BLOCK][..tar::padding(size)])
    }

    fn bytes(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        while !bytes.is_empty() {
            let mut block = self.take_block()?;
            let room = self.block_bytes() - block.plain.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            block.plain.extend_from_slice(now);
            bytes = later;
            self.give_back(block)?;
        }
        Ok(())
    }

    fn block_bytes(&self) -> usize {
        self.options.compression.block_bytes()
    }

    /// The block that is being filled, or the next empty one.
    fn take_block(&mut self) -> Result<Block, Stop> {
        if let Some(block) = self.block.take() {
            return Ok(block);
        }
        let mut block = self.empty.recv().map_err(|_| Stop::NoReader)?;
        block.plain.clear();
        block.diff_id = None;
        block.number = self.number;
        self.number += 1;
        Ok(block)
    }

    /// Goes on with a block, or sends it if it is full.
    fn give_back(&mut self, block: Block) -> Result<(), Stop> {
        if block.plain.len() < self.block_bytes() {
            self.block = Some(block);
            return Ok(());
        }
        self.hasher.update(&block.plain);
        self.send(block)
    }

    fn send(&mut self, block: Block) -> Result<(), Stop> {
        self.filled.send(block).map_err(|_| Stop::NoReader)
    }
}

/// Compresses blocks until there are no more.
fn pack(
    compression: Compression,
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
        let done = compressor
            .block(&block.plain, &mut block.packed)
            .map(|checksum| {
                block.checksum = checksum;
                block
            });
        if packed.send(done).is_err() {
            return;
        }
    }
}

/// A layer that is being written.
struct Open<'a> {
    writer: Box<dyn BlobWriter + 'a>,
    hasher: Hasher,
    size: u64,
    checksum: crc32fast::Hasher,
    plain: u64,
}

impl<'a> Open<'a> {
    fn new(compression: Compression, sink: &'a dyn BlobSink) -> Result<Self, LayerError> {
        let mut open = Self {
            writer: sink.begin().map_err(LayerError::Write)?,
            hasher: Hasher::default(),
            size: 0,
            checksum: crc32fast::Hasher::new(),
            plain: 0,
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
        self.checksum.combine(&block.checksum);
        self.plain += block.plain.len() as u64;
        self.write(&block.packed)
    }

    fn finish(mut self, compression: Compression, diff_id: Digest) -> Result<Layer, LayerError> {
        let tail = compression.tail(self.checksum.clone().finalize(), self.plain);
        self.write(&tail)?;
        let blob = self.hasher.finish();
        self.writer.commit(&blob).map_err(LayerError::Write)?;
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
    sink: &dyn BlobSink,
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
                None => Open::new(compression, sink)?,
            };
            layer.block(&block)?;
            match block.diff_id.take() {
                Some(diff_id) => layers.push(layer.finish(compression, diff_id)?),
                None => open = Some(layer),
            }
            // Nobody takes it when all is read.
            let _ = free.send(block);
        }
    }
    Ok(layers)
}
