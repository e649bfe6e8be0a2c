//! Pulling events by number: from the ring when near, from the files when far.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ring::Chunk;
use super::segment::{Found, Place};
use super::{JournalError, Shared};
use crate::wire::Record;

/// A place in the journal. Dropping one and making another at the same number continues the same stream.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    after: u64,
    near: Option<Arc<Chunk>>,
    far: Option<Place>,
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
    File(Vec<Record>),
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
}

/// Where the next records are.
enum Next {
    Here(Batch),
    OnFile { to: u64 },
    NotYet,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(shared: Arc<Shared>, after: u64) -> Self {
        Self {
            shared,
            after,
            near: None,
            far: None,
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
        let ended = self
            .shared
            .until(|shared| {
                let closed = shared.closed.load(Ordering::SeqCst);
                let news = shared.visible.load(Ordering::SeqCst) > after;
                (news || closed).then_some(!news)
            })
            .await;
        if ended {
            return Ok(None);
        }
        match self.locate()? {
            Next::OnFile { to } => self.next_from_file(to).await.map(Some),
            Next::Here(batch) => Ok(Some(self.hand_out(batch))),
            Next::NotYet => Ok(None),
        }
    }

    /// The next records if there are any now; blocks for the disk when they are far.
    pub fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        match self.locate()? {
            Next::Here(batch) => Ok(Some(self.hand_out(batch))),
            Next::NotYet => Ok(None),
            Next::OnFile { to } => {
                let batch = read_file(&self.shared, &mut self.far, self.after + 1, to)?;
                Ok(Some(self.hand_out(batch)))
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
        if self
            .near
            .as_ref()
            .is_none_or(|chunk| chunk.get(next).is_none())
        {
            let tail = self.shared.tail.lock();
            self.near = tail.ring.find(next);
            if self.near.is_none() {
                return match self.shared.segments {
                    Some(_) if next <= tail.committed => Ok(Next::OnFile { to: tail.committed }),
                    _ => Err(ReadError::Forgotten {
                        next,
                        oldest: tail.ring.oldest(),
                    }),
                };
            }
        }
        let Some(chunk) = self.near.clone() else {
            return Ok(Next::NotYet);
        };
        self.far = None;
        let to = chunk
            .range(next, visible)
            .last()
            .map_or(next, |record| record.seq);
        Ok(Next::Here(Batch {
            from: next,
            to,
            source: Source::Ring(chunk),
        }))
    }

    async fn next_from_file(&mut self, to: u64) -> Result<Batch, ReadError> {
        let shared = Arc::clone(&self.shared);
        let mut far = self.far.take();
        let from = self.after + 1;
        let reading = tokio::task::spawn_blocking(move || {
            let batch = read_file(&shared, &mut far, from, to);
            (batch, far)
        });
        match reading.await {
            Ok((batch, far)) => {
                self.far = far;
                batch.map(|batch| self.hand_out(batch))
            }
            Err(error) => Err(ReadError::Journal(JournalError::Io {
                act: "read",
                path: "journal".into(),
                source: Arc::new(std::io::Error::other(error)),
            })),
        }
    }
}

fn read_file(
    shared: &Shared,
    far: &mut Option<Place>,
    from: u64,
    to: u64,
) -> Result<Batch, ReadError> {
    let Some(segments) = &shared.segments else {
        return Err(ReadError::Forgotten {
            next: from,
            oldest: to + 1,
        });
    };
    match segments.read(far, from, to)? {
        Found::Forgotten { oldest } => Err(ReadError::Forgotten { next: from, oldest }),
        Found::Records(records) => {
            let to = records.last().map_or(from, |record| record.seq);
            Ok(Batch {
                from,
                to,
                source: Source::File(records),
            })
        }
    }
}

// === impl Batch ===

impl Batch {
    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        let (chunk, records) = match &self.source {
            Source::Ring(chunk) => (Some(chunk), &[][..]),
            Source::File(records) => (None, &records[..]),
        };
        let near = chunk
            .into_iter()
            .flat_map(|chunk| chunk.range(self.from, self.to));
        near.chain(records)
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
