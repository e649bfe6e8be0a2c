//! The thread that writes events to their sink, in groups.
//!
//! All events that were appended while the last group was written form the next group, with one write and one sync.
//! So a busy journal needs few syncs, and a quiet one acknowledges immediately.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::ring::Chunk;
use super::sink::Sink;
use super::{Filing, JournalError, Shared};
use crate::wire::Record;

/// The most records in a group; bounds the buffer and how long readers wait for the first of a burst.
const GROUP_RECORDS: u64 = 4096;

pub(super) fn start(
    shared: Arc<Shared>,
    mut sink: impl Sink,
) -> Result<JoinHandle<()>, JournalError> {
    thread::Builder::new()
        .name("journal".into())
        .spawn(move || {
            while let Some(group) = next_group(&shared) {
                match sink.append(&mut group.records()) {
                    Ok(()) => shared.release(shared.tail.lock(), Some(group.to)),
                    Err(error) => return give_up(&shared, error),
                }
            }
        })
        .map_err(|error| JournalError::Io {
            act: "start the writer of",
            path: "journal".into(),
            source: Arc::new(error),
        })
}

/// Consecutive unwritten records.
struct Group {
    from: u64,
    to: u64,
    chunks: Vec<Arc<Chunk>>,
}

impl Group {
    fn records(&self) -> impl Iterator<Item = &Record> {
        self.chunks
            .iter()
            .flat_map(|chunk| chunk.range(self.from.max(chunk.first()), self.to))
    }
}

/// Waits for unwritten records; nothing when the journal ends and all is written.
fn next_group(shared: &Shared) -> Option<Group> {
    let mut tail = shared.tail.lock();
    while tail.last == tail.committed {
        if matches!(tail.filing, Filing::Ending) {
            return None;
        }
        shared.work.wait(&mut tail);
    }
    let from = tail.committed + 1;
    let to = tail.last.min(tail.committed + GROUP_RECORDS);
    Some(Group {
        from,
        to,
        chunks: tail.ring.since(from),
    })
}

/// A full disk must not stop the run: events stay visible in memory, and `flush` tells.
fn give_up(shared: &Shared, error: JournalError) {
    let mut tail = shared.tail.lock();
    tail.filing = Filing::Failed(error);
    shared.release(tail, None);
}
