//! Reads events by number: recent ones from the ring, older ones from the sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ring::Chunk;
use super::sink::range;
use super::{JournalError, Shared};
use crate::wire::Record;

/// A place in the journal. Dropping one and making another at the same number continues the same stream.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    after: u64,
    near: Option<Arc<Chunk>>,
}

/// Some consecutive records, at least one.
#[derive(Debug)]
pub struct Batch {
    from: u64,
    to: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Ring(Arc<Chunk>),
    Kept(Arc<[Record]>),
}

/// Why a reader cannot go on from where it is.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The next events are no longer kept. [`super::Journal::state`] and [`Reader::seek`] lead on.
    #[error("events {next} to {} are no longer kept", oldest - 1)]
    Forgotten {
        /// The number the reader wanted.
        next: u64,
        /// The oldest number that can be had.
        oldest: u64,
    },
    /// The journal's files cannot be read.
    #[error("cannot read the journal back")]
    Journal(#[from] JournalError),
    /// The runtime is shutting down.
    #[error("reading the journal back was interrupted")]
    Interrupted,
}

/// Where the next records are.
enum Next {
    Near(Batch),
    Far { to: u64 },
    NotYet,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(shared: Arc<Shared>, after: u64) -> Self {
        Self {
            shared,
            after,
            near: None,
        }
    }

    /// The number of the last record that was handed out.
    pub fn position(&self) -> u64 {
        self.after
    }

    /// Goes on after the given number instead.
    pub fn seek(&mut self, after: u64) {
        self.after = after;
    }

    /// Waits for the next records; nothing when the journal is closed and all was read.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Batch>, ReadError> {
        let after = self.after;
        self.shared
            .until(|shared| shared.has_after(after).then_some(()))
            .await;
        // Readers that always find something must still let others run.
        tokio::task::consume_budget().await;
        match self.locate()? {
            Next::NotYet => Ok(None),
            Next::Near(batch) => Ok(Some(self.hand_out(batch))),
            Next::Far { to } => {
                let next = self.after + 1;
                let block = self.shared.read_history(next).await?;
                Ok(Some(self.hand_out(Batch::far(next, to, block))))
            }
        }
    }

    /// The next records if there are any now; waits for the disk when they are far.
    pub fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        match self.locate()? {
            Next::NotYet => Ok(None),
            Next::Near(batch) => Ok(Some(self.hand_out(batch))),
            Next::Far { to } => {
                let next = self.after + 1;
                let history = self.shared.history.as_ref();
                let block = history.ok_or(ReadError::Interrupted)?.read(next)?;
                Ok(Some(self.hand_out(Batch::far(next, to, block))))
            }
        }
    }

    fn hand_out(&mut self, batch: Batch) -> Batch {
        self.after = batch.to;
        batch
    }

    fn locate(&mut self) -> Result<Next, ReadError> {
        let next = self.after + 1;
        let visible = self.shared.visible.load(Ordering::SeqCst);
        if next > visible {
            return Ok(Next::NotYet);
        }
        let kept = self.near.take().filter(|chunk| chunk.get(next).is_some());
        let Some(chunk) = kept.or_else(|| self.shared.tail.lock().ring.find(next)) else {
            return self.locate_far(next);
        };
        let to = chunk
            .range(next, visible)
            .last()
            .map_or(next, |record| record.seq);
        self.near = Some(Arc::clone(&chunk));
        Ok(Next::Near(Batch {
            from: next,
            to,
            source: Source::Ring(chunk),
        }))
    }

    fn locate_far(&self, next: u64) -> Result<Next, ReadError> {
        let tail = self.shared.tail.lock();
        match self.shared.history {
            Some(_) if next <= tail.committed => Ok(Next::Far { to: tail.committed }),
            _ => Err(ReadError::Forgotten {
                next,
                oldest: tail.ring.oldest(),
            }),
        }
    }
}

// === impl Batch ===

impl Batch {
    fn far(from: u64, to: u64, block: Arc<[Record]>) -> Self {
        Self {
            from,
            to: block.last().map_or(from, |last| to.min(last.seq)),
            source: Source::Kept(block),
        }
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        let (chunk, records) = match &self.source {
            Source::Ring(chunk) => (Some(chunk), &[][..]),
            Source::Kept(block) => (None, range(block, self.from, self.to)),
        };
        let near = chunk
            .into_iter()
            .flat_map(|chunk| chunk.range(self.from, self.to));
        near.chain(records)
    }

    /// Gives each record with its JSON, in order. Records that are in memory are encoded once for all readers.
    pub fn each_json(&self, mut give: impl FnMut(u64, &str)) {
        match &self.source {
            Source::Ring(chunk) => {
                let numbers = self.from..=self.to;
                let lines = numbers.map_while(|seq| Some((seq, chunk.line(seq)?)));
                lines.for_each(|(seq, line)| give(seq, line));
            }
            Source::Kept(_) => {
                for record in self.iter() {
                    give(record.seq, &record.to_json());
                }
            }
        }
    }

    /// The number of the first record.
    pub fn first(&self) -> u64 {
        self.from
    }

    /// The number of the last record.
    pub fn last(&self) -> u64 {
        self.to
    }
}
