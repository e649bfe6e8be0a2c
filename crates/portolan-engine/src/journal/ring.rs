//! The newest events in memory: a queue of chunks that readers share instead of copying.
//!
//! The appender writes each slot of a chunk once, in order; a reader that holds the chunk reads without a lock. Whole
//! chunks are freed; a reader that still holds a chunk keeps only that one in memory.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use crate::wire::Record;

/// How many records a chunk takes: enough to make a reader's lock rare, small enough to forget in small steps.
const CHUNK_RECORDS: usize = 256;

/// After how many bytes of text a chunk is full even with free slots.
const CHUNK_BYTES: usize = 64 << 10;

/// A run of records with consecutive numbers.
#[derive(Debug)]
pub(super) struct Chunk {
    first: u64,
    slots: Box<[OnceLock<Record>]>,
    /// Records as JSON, made when the first reader wants them so and shared by all others.
    lines: Box<[OnceLock<Box<str>>]>,
}

/// The newest chunks, oldest first.
#[derive(Debug)]
pub(super) struct Ring {
    chunks: VecDeque<Held>,
    next: u64,
    bytes: usize,
    /// The newest number that the ring is free to forget.
    written: u64,
}

#[derive(Debug)]
struct Held {
    chunk: Arc<Chunk>,
    bytes: usize,
    used: usize,
}

// === impl Chunk ===

impl Chunk {
    fn new(first: u64) -> Self {
        Self {
            first,
            slots: (0..CHUNK_RECORDS).map(|_| OnceLock::new()).collect(),
            lines: (0..CHUNK_RECORDS).map(|_| OnceLock::new()).collect(),
        }
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn get(&self, seq: u64) -> Option<&Record> {
        let slot = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.slots.get(slot)?.get()
    }

    /// The record with this number as JSON.
    pub(super) fn line(&self, seq: u64) -> Option<&str> {
        let record = self.get(seq)?;
        let slot = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        let line = self.lines.get(slot)?;
        Some(line.get_or_init(|| record.to_json().into_boxed_str()))
    }

    /// The records from one number to another, as far as this chunk has them.
    pub(super) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Record> {
        (from..=to).map_while(|seq| self.get(seq))
    }
}

// === impl Ring ===

impl Ring {
    pub(super) fn after(last: u64) -> Self {
        Self {
            chunks: VecDeque::new(),
            next: last + 1,
            bytes: 0,
            written: last,
        }
    }

    /// Takes the record with the next number.
    pub(super) fn push(&mut self, record: Record) {
        let next = self.next;
        debug_assert_eq!(record.seq, next);
        if self.chunks.back().is_none_or(Held::is_full) {
            let held = Held::new(Chunk::new(next));
            self.bytes += held.bytes;
            self.chunks.push_back(held);
        }
        let held = self
            .chunks
            .back_mut()
            .expect("a chunk was just made sure of");
        let size = record.event.heap_bytes();
        if let Some(slot) = held.chunk.slots.get(held.used) {
            // The slot is free: slots are used in order and only here, under the tail's lock.
            let _ = slot.set(record);
        }
        held.used += 1;
        held.bytes += size;
        self.bytes += size;
        self.next += 1;
    }

    /// The chunk that holds a number, unless it is forgotten or still to come.
    pub(super) fn find(&self, seq: u64) -> Option<Arc<Chunk>> {
        let after = self.chunks.partition_point(|held| held.chunk.first <= seq);
        let held = self.chunks.get(after.checked_sub(1)?)?;
        (seq < held.next()).then(|| Arc::clone(&held.chunk))
    }

    /// The chunks that hold the numbers from `from` on.
    pub(super) fn since(&self, from: u64) -> Vec<Arc<Chunk>> {
        let after = self.chunks.partition_point(|held| held.next() <= from);
        self.chunks
            .range(after..)
            .map(|held| Arc::clone(&held.chunk))
            .collect()
    }

    /// The oldest number that is still here, or the next one if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.chunks
            .front()
            .map_or(self.next, |held| held.chunk.first)
    }

    /// Whether so much is unwritten that the appender has to wait for the disk.
    ///
    /// The ring shrinks to its limit whenever something is written, so that twice the limit means unwritten events.
    pub(super) fn is_stuffed(&self, limit: usize) -> bool {
        self.chunks.len() > 1 && self.bytes > limit.saturating_mul(2)
    }

    /// Declares everything up to a number safe to forget.
    pub(super) fn written(&mut self, upto: u64) {
        self.written = upto;
    }

    /// Takes the oldest chunks out until the rest fits, to be dropped by the caller outside of any lock.
    pub(super) fn shrink(&mut self, limit: usize) -> Vec<Arc<Chunk>> {
        let mut forgotten = Vec::new();
        while self.bytes > limit && self.chunks.len() > 1 {
            match self
                .chunks
                .pop_front_if(|held| held.next() <= self.written + 1)
            {
                Some(held) => {
                    self.bytes -= held.bytes;
                    forgotten.push(held.chunk);
                }
                None => break,
            }
        }
        forgotten
    }
}

// === impl Held ===

impl Held {
    fn new(chunk: Chunk) -> Self {
        let bytes = size_of::<OnceLock<Record>>() * CHUNK_RECORDS;
        Self {
            chunk: Arc::new(chunk),
            bytes,
            used: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.used == CHUNK_RECORDS || self.bytes > CHUNK_BYTES
    }

    /// The first number after this chunk's records.
    fn next(&self) -> u64 {
        self.chunk.first + self.used as u64
    }
}
