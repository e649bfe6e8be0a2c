//! Reading events back from file, a block at a time.
//!
//! A block is what lies between two marks of a segment. Blocks read last are kept for a while and shared: readers that
//! fell behind together read and decode each block once.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;

use super::segment::{self, Segment, io};
use super::{JournalError, ReadError};
use crate::wire::Record;

/// How many blocks are kept: a few megabytes.
const KEPT_BLOCKS: usize = 32;

/// The segments that exist, for far readers and for the writer.
#[derive(Debug)]
pub(super) struct Archive {
    segments: RwLock<Vec<Segment>>,
    /// The blocks read last, newest in front.
    blocks: Mutex<VecDeque<Arc<Block>>>,
    /// One reader at a time loads a block; the others then find it kept.
    turn: Semaphore,
}

/// Consecutive records, at least one.
#[derive(Debug)]
pub(super) struct Block {
    first: u64,
    records: Vec<Record>,
}

/// Where a block's lines are.
struct Extent {
    first: u64,
    path: PathBuf,
    file: File,
    from: u64,
    to: u64,
}

// === impl Block ===

impl Block {
    pub(super) fn last(&self) -> u64 {
        self.first + self.records.len() as u64 - 1
    }

    fn holds(&self, seq: u64) -> bool {
        (self.first..=self.last()).contains(&seq)
    }

    pub(super) fn range(&self, from: u64, to: u64) -> &[Record] {
        let index = |seq: u64| seq.saturating_sub(self.first) as usize;
        self.records
            .get(index(from)..index(to + 1))
            .unwrap_or_default()
    }
}

// === impl Archive: reading ===

impl Archive {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        Self {
            segments: RwLock::new(segments),
            blocks: Mutex::default(),
            turn: Semaphore::new(1),
        }
    }

    /// The block that holds a number that was written; the disk is read on another thread.
    pub(super) async fn block(self: &Arc<Self>, seq: u64) -> Result<Arc<Block>, ReadError> {
        if let Some(block) = self.kept(seq) {
            return Ok(block);
        }
        let _turn = self.turn.acquire().await;
        if let Some(block) = self.kept(seq) {
            return Ok(block);
        }
        let archive = Arc::clone(self);
        let load = tokio::task::spawn_blocking(move || archive.load(seq));
        load.await.unwrap_or(Err(ReadError::Interrupted))
    }

    /// The block that holds a number that was written; waits for the disk.
    pub(super) fn block_now(&self, seq: u64) -> Result<Arc<Block>, ReadError> {
        self.kept(seq).map_or_else(|| self.load(seq), Ok)
    }

    fn kept(&self, seq: u64) -> Option<Arc<Block>> {
        self.blocks
            .lock()
            .iter()
            .find(|block| block.holds(seq))
            .cloned()
    }

    fn load(&self, seq: u64) -> Result<Arc<Block>, ReadError> {
        let block = Arc::new(self.locate(seq)?.read()?);
        if !block.holds(seq) {
            return Err(self.damage(seq));
        }
        let mut blocks = self.blocks.lock();
        // The newest block grows; what was kept of it is replaced.
        blocks.retain(|kept| kept.first != block.first);
        blocks.push_front(Arc::clone(&block));
        blocks.truncate(KEPT_BLOCKS);
        Ok(block)
    }

    fn locate(&self, seq: u64) -> Result<Extent, ReadError> {
        let segments = self.segments.read();
        let after = segments.partition_point(|segment| segment.first <= seq);
        let Some(segment) = after.checked_sub(1).and_then(|index| segments.get(index)) else {
            let oldest = segments.first().map_or(seq + 1, |oldest| oldest.first);
            return Err(ReadError::Forgotten { next: seq, oldest });
        };
        let after = segment.marks.partition_point(|(marked, _)| *marked <= seq);
        let (first, from) = *segment
            .marks
            .get(after.saturating_sub(1))
            .unwrap_or(&(seq, 0));
        let to = segment
            .marks
            .get(after)
            .map_or(segment.bytes, |(_, offset)| *offset);
        // Opened while the segment cannot be removed.
        let file = File::open(&segment.path).map_err(io("open", &segment.path))?;
        Ok(Extent {
            first,
            path: segment.path.clone(),
            file,
            from,
            to,
        })
    }

    fn damage(&self, seq: u64) -> ReadError {
        match self.locate(seq) {
            Ok(Extent { path, from, .. }) => JournalError::Damaged { path, offset: from }.into(),
            Err(error) => error,
        }
    }
}

// === impl Archive: growing ===

impl Archive {
    pub(super) fn newest_bytes(&self) -> u64 {
        self.segments
            .read()
            .last()
            .map_or(0, |segment| segment.bytes)
    }

    /// Takes note of lines that were written.
    pub(super) fn grow(&self, starts: &[(u64, u64)], bytes: u64) {
        if let Some(newest) = self.segments.write().last_mut() {
            let end = newest.bytes;
            for (seq, offset) in starts {
                newest.mark(*seq, end + offset);
            }
            newest.bytes += bytes;
        }
    }

    /// Adds a segment; returns the oldest ones if there are too many bytes without them.
    pub(super) fn begin(&self, segment: Segment, keep_bytes: u64) -> Vec<Segment> {
        let mut segments = self.segments.write();
        let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let mut forgotten = 0;
        for segment in segments.iter() {
            if bytes <= keep_bytes {
                break;
            }
            bytes -= segment.bytes;
            forgotten += 1;
        }
        segments.push(segment);
        segments.drain(..forgotten).collect()
    }
}

// === impl Extent ===

impl Extent {
    fn read(mut self) -> Result<Block, JournalError> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.from))
            .map_err(io("read", &self.path))?;
        let length = self.to.saturating_sub(self.from);
        self.file
            .take(length)
            .read_to_end(&mut bytes)
            .map_err(io("read", &self.path))?;
        let lines = (self.first..).zip(bytes.split_inclusive(|byte| *byte == b'\n'));
        let records = lines
            .map_while(|(seq, line)| segment::decode(line, seq))
            .collect();
        Ok(Block {
            first: self.first,
            records,
        })
    }
}
