//! The journal of another process, read from its files while they grow.
//!
//! Nothing is locked and nothing is written: any number of processes read what one writes.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::segment::{self, MAX_LINE_BYTES, io};
use super::{JournalError, ReadError};
use crate::wire::Record;

/// How many records are handed out at once.
const MOST_AT_ONCE: usize = 4096;

/// A place in the journal of a directory.
#[derive(Debug)]
pub struct JournalFiles {
    directory: PathBuf,
    /// The number of the next record.
    next: u64,
    segment: Option<OpenSegment>,
}

/// The segment that is being read.
#[derive(Debug)]
struct OpenSegment {
    first: u64,
    path: PathBuf,
    lines: BufReader<File>,
    /// The number of the next line.
    at: u64,
    /// The bytes of a line whose end was not written yet.
    begun: Vec<u8>,
}

impl JournalFiles {
    /// Reads the events after a number.
    pub fn after(directory: &Path, seq: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            next: seq.saturating_add(1),
            segment: None,
        }
    }

    /// Returns records that were not returned before, in order; none if there are no more by now.
    ///
    /// # Errors
    /// [`ReadError::Forgotten`] if the next ones are no longer kept; [`JournalFiles::seek`] leads on.
    pub fn read(&mut self) -> Result<Vec<Record>, ReadError> {
        let mut records = Vec::new();
        while records.len() < MOST_AT_ONCE {
            let Some(segment) = &mut self.segment else {
                if !self.open()? {
                    break;
                }
                continue;
            };
            match segment.next()? {
                Some(record) if record.seq >= self.next => {
                    self.next = record.seq + 1;
                    records.push(record);
                }
                Some(_) => {}
                None if self.has_follower()? => self.segment = None,
                None => break,
            }
        }
        Ok(records)
    }

    /// The number of the last record that was handed out.
    pub fn position(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// Goes on after the given number instead.
    pub fn seek(&mut self, after: u64) {
        *self = Self::after(&self.directory, after);
    }

    /// Whether a process still writes here. To be asked once there are records: a writer that is about to begin must not
    /// find its lock taken.
    pub fn is_live(&self) -> Result<bool, JournalError> {
        let path = self.directory.join("lock");
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(io("open", &path))?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(io("lock", &path)(error)),
        }
    }

    /// Opens the segment with the next record; returns whether there is one.
    fn open(&mut self) -> Result<bool, ReadError> {
        let segments = segment::list(&self.directory)?;
        let after = segments.partition_point(|(first, _)| *first <= self.next);
        let Some((first, path)) = after.checked_sub(1).and_then(|at| segments.get(at)) else {
            let Some((oldest, _)) = segments.first() else {
                return Ok(false);
            };
            return Err(ReadError::Forgotten {
                next: self.next,
                oldest: *oldest,
            });
        };
        let file = File::open(path).map_err(io("open", path))?;
        self.segment = Some(OpenSegment {
            first: *first,
            path: path.clone(),
            lines: BufReader::new(file),
            at: *first,
            begun: Vec::new(),
        });
        Ok(true)
    }

    /// Whether the open segment is read to its end and another one follows.
    fn has_follower(&self) -> Result<bool, JournalError> {
        let Some(open) = &self.segment else {
            return Ok(false);
        };
        let segments = segment::list(&self.directory)?;
        let mut firsts = segments.iter().map(|(first, _)| *first);
        Ok(open.at != open.first && firsts.any(|first| first == open.at))
    }
}

impl OpenSegment {
    /// The next record; none if its line is not whole yet.
    fn next(&mut self) -> Result<Option<Record>, JournalError> {
        let failed = io("read", &self.path);
        let room = MAX_LINE_BYTES.saturating_sub(self.begun.len() as u64);
        let read = (&mut self.lines)
            .take(room)
            .read_until(b'\n', &mut self.begun);
        read.map_err(failed)?;
        if self.begun.last() != Some(&b'\n') && (self.begun.len() as u64) < MAX_LINE_BYTES {
            return Ok(None);
        }
        let record = segment::decode(&self.begun, self.at);
        let record = record.ok_or_else(|| JournalError::Damaged {
            path: self.path.clone(),
            offset: 0,
        })?;
        self.at += 1;
        self.begun.clear();
        Ok(Some(record))
    }
}
