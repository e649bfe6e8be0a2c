//! Reads the files of layers into blocks of tar.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender};

use portolan_digest::Hasher;

use super::{Block, LayerError};
use crate::entry::{Entry, Node};
use crate::key::Key;
use crate::memo::Memo;
use crate::plan::LayerOptions;
use crate::source::{OpenFile, Source};
use crate::tar;

/// Why reading ended early.
pub(super) enum Stop {
    Failed(LayerError),
    /// The writer is gone; it says why.
    NoReader,
}

/// Fills blocks with tar.
pub(super) struct Reader<'a> {
    source: &'a dyn Source,
    memo: &'a Memo,
    options: &'a LayerOptions,
    empty: Receiver<Block>,
    filled: Sender<Block>,
    block: Option<Block>,
    /// Everything that is in the block that is being filled.
    key: Key,
    number: usize,
    hasher: Hasher,
}

/// One file on its way.
struct Content<'a> {
    file: Box<dyn OpenFile>,
    path: &'a str,
    digest: &'a [u8; 32],
    /// Counts if what the file looks like does not tell that its content is the one.
    hasher: Option<Hasher>,
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn new(
        (source, memo): (&'a dyn Source, &'a Memo),
        options: &'a LayerOptions,
        empty: Receiver<Block>,
        filled: Sender<Block>,
    ) -> Self {
        Self {
            source,
            memo,
            options,
            empty,
            filled,
            block: None,
            key: new_key(options),
            number: 0,
            hasher: Hasher::default(),
        }
    }

    pub(super) fn layer(&mut self, entries: &[Entry], members: &[usize]) -> Result<(), Stop> {
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
    fn file(&mut self, path: &str, size: u64, digest: &[u8; 32]) -> Result<(), Stop> {
        let file = self
            .source
            .open(path)
            .map_err(|error| failed(path, error))?;
        let mut content = Content {
            hasher: None,
            file,
            path,
            digest,
        };
        if !self.is_known(&content)? {
            content.hasher = Some(Hasher::default());
        }
        let mut left = size;
        while left > 0 {
            left -= self.part(&mut content, size - left, left)?;
        }
        let mut more = [0];
        let is_longer = content
            .file
            .read(&mut more)
            .map_err(|error| failed(path, error))?
            > 0;
        let is_same = match content.hasher.take() {
            Some(hasher) => hasher.finish_bytes() == *digest,
            // Whoever wrote to it meanwhile changed its stamp.
            None => self.is_known(&content)?,
        };
        if is_longer || !is_same {
            return Err(changed(path));
        }
        self.bytes(&[0; tar::BLOCK][..tar::padding(size)])
    }

    /// Whether the file is in a state in which it had this content.
    fn is_known(&self, content: &Content<'_>) -> Result<bool, Stop> {
        let stamp = content.file.stamp();
        let stamp = stamp.map_err(|error| failed(content.path, error))?;
        Ok(self.memo.get(&stamp).as_ref() == Some(content.digest))
    }

    /// Copies what fits into a block, and returns how much that was.
    fn part(&mut self, content: &mut Content<'_>, at: u64, left: u64) -> Result<u64, Stop> {
        let mut block = self.take_block()?;
        let start = block.plain.len();
        let wanted = left.min((self.block_bytes() - start) as u64);
        let read = (&mut content.file)
            .take(wanted)
            .read_to_end(&mut block.plain);
        let read = read.map_err(|error| failed(content.path, error))? as u64;
        if let Some(hasher) = &mut content.hasher {
            hasher.update(&block.plain[start..]);
        }
        self.key.bytes(b'f', content.digest).number(at).number(read);
        self.give_back(block)?;
        if read == 0 {
            return Err(changed(content.path));
        }
        Ok(read)
    }

    fn bytes(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        while !bytes.is_empty() {
            let mut block = self.take_block()?;
            let room = self.block_bytes() - block.plain.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            block.plain.extend_from_slice(now);
            self.key.bytes(b'h', now);
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

    fn send(&mut self, mut block: Block) -> Result<(), Stop> {
        let key = std::mem::replace(&mut self.key, new_key(self.options));
        block.record.key = *key.finish().as_bytes();
        self.filled.send(block).map_err(|_| Stop::NoReader)
    }
}

/// Begins the key of a block.
fn new_key(options: &LayerOptions) -> Key {
    let mut key = Key::new("block");
    key.text(&options.compression.version());
    key
}

fn failed(path: &str, source: io::Error) -> Stop {
    Stop::Failed(LayerError::Read {
        path: path.to_owned(),
        source,
    })
}

fn changed(path: &str) -> Stop {
    Stop::Failed(LayerError::Changed {
        path: path.to_owned(),
    })
}
