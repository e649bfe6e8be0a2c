//! Reads events back from files, one block at a time.
//!
//! A block is the part between two marks of a segment. The blocks that were read last are kept for a while and
//! shared, so several slow readers read and decode each block only once.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::segment::{self, Segment, io};
use super::sink::History;
use super::{JournalError, ReadError};
use crate::wire::Record;

/// How many blocks are kept: a few megabytes.
const KEPT_BLOCKS: usize = 32;

/// The segments that exist, for far readers and for the writer.
#[derive(Debug)]
pub(super) struct Archive {
    segments: RwLock<Vec<Segment>>,
    /// The blocks read last, newest in front.
    blocks: Mutex<VecDeque<Arc<[Record]>>>,
}

/// Where a block's lines are.
struct Extent {
    first: u64,
    path: PathBuf,
    file: File,
    from: u64,
    to: u64,
}

// === impl Archive: reading ===

impl Archive {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        Self {
            segments: RwLock::new(segments),
            blocks: Mutex::default(),
        }
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

impl History for Archive {
    fn read(&self, seq: u64) -> Result<Arc<[Record]>, ReadError> {
        if let Some(block) = self.at_hand(seq) {
            return Ok(block);
        }
        let block: Arc<[Record]> = self.locate(seq)?.read()?.into();
        if !holds(&block, seq) {
            return Err(self.damage(seq));
        }
        let mut blocks = self.blocks.lock();
        // The newest block grows; what was kept of it is replaced.
        let first = |block: &[Record]| block.first().map(|first| first.seq);
        blocks.retain(|kept| first(kept) != first(&block));
        blocks.push_front(Arc::clone(&block));
        blocks.truncate(KEPT_BLOCKS);
        Ok(block)
    }

    fn at_hand(&self, seq: u64) -> Option<Arc<[Record]>> {
        let blocks = self.blocks.lock();
        let found = blocks.iter().find(|block| holds(block, seq));
        found.cloned()
    }
}

/// Whether consecutive records have one with this number.
fn holds(block: &[Record], seq: u64) -> bool {
    let ends = block.first().zip(block.last());
    ends.is_some_and(|(first, last)| (first.seq..=last.seq).contains(&seq))
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
    fn read(mut self) -> Result<Vec<Record>, JournalError> {
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
        let records = lines.map_while(|(seq, line)| segment::decode(line, seq));
        Ok(records.collect())
    }
}
