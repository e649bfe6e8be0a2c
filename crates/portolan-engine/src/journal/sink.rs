//! Where a journal stores its events outside the memory of the process: files, or another implementation of [`Sink`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{JournalError, ReadError};
use crate::wire::Record;

/// Keeps events. One thread appends to it; [`History`] is read from many.
pub trait Sink: Send + 'static {
    /// Appends records, which follow those that were appended before without a gap. Returns when they are as safe as
    /// the sink makes them. After an error nothing more is appended.
    fn append(&mut self, records: &mut dyn Iterator<Item = &Record>) -> Result<(), JournalError>;

    /// What was appended.
    fn history(&self) -> Arc<dyn History>;
}

/// Gives events back that a sink keeps.
pub trait History: Send + Sync + fmt::Debug + 'static {
    /// Consecutive records, among them the one with this number; may wait for a disk or a network.
    ///
    /// # Errors
    /// [`ReadError::Forgotten`] if it is no longer kept.
    fn read(&self, seq: u64) -> Result<Arc<[Record]>, ReadError>;

    /// The same without waiting; `None` if it is not at hand.
    fn at_hand(&self, seq: u64) -> Option<Arc<[Record]>>;
}

/// Keeps the newest events in memory, in groups as they came.
#[derive(Debug, Clone)]
pub struct MemorySink {
    kept: Arc<MemoryHistory>,
}

#[derive(Debug)]
struct MemoryHistory {
    max_records: usize,
    groups: Mutex<VecDeque<Arc<[Record]>>>,
}

// === impl MemorySink ===

impl MemorySink {
    /// Keeps this many records, and as many more as the oldest group of them has.
    pub fn new(max_records: usize) -> Self {
        Self {
            kept: Arc::new(MemoryHistory {
                max_records,
                groups: Mutex::default(),
            }),
        }
    }
}

impl Sink for MemorySink {
    fn append(&mut self, records: &mut dyn Iterator<Item = &Record>) -> Result<(), JournalError> {
        let group: Arc<[Record]> = records.cloned().collect();
        let mut groups = self.kept.groups.lock();
        let mut count: usize = groups.iter().map(|group| group.len()).sum();
        while let Some(oldest) = groups.front()
            && count + group.len() - oldest.len() >= self.kept.max_records
        {
            count -= oldest.len();
            groups.pop_front();
        }
        if !group.is_empty() {
            groups.push_back(group);
        }
        Ok(())
    }

    fn history(&self) -> Arc<dyn History> {
        Arc::clone(&self.kept) as Arc<dyn History>
    }
}

impl History for MemoryHistory {
    fn read(&self, seq: u64) -> Result<Arc<[Record]>, ReadError> {
        self.at_hand(seq).ok_or_else(|| {
            let groups = self.groups.lock();
            let oldest = groups.front().and_then(|group| group.first());
            ReadError::Forgotten {
                next: seq,
                oldest: oldest.map_or(seq + 1, |oldest| oldest.seq),
            }
        })
    }

    fn at_hand(&self, seq: u64) -> Option<Arc<[Record]>> {
        let groups = self.groups.lock();
        let after = groups.partition_point(|group| group.last().is_some_and(|last| last.seq < seq));
        let group = groups.get(after)?;
        let holds = group.first().is_some_and(|first| first.seq <= seq);
        holds.then(|| Arc::clone(group))
    }
}

/// The part of some consecutive records between two numbers.
pub(super) fn range(records: &[Record], from: u64, to: u64) -> &[Record] {
    let first = records.first().map_or(0, |first| first.seq);
    let index = |seq: u64| (seq.saturating_sub(first) as usize).min(records.len());
    records.get(index(from)..index(to + 1)).unwrap_or_default()
}
