//! Events in files: segments of lines with checksums, named by the number of their first event.
//!
//! ```text
//! 00000000000000000001.journal    8c736521 {"seq":1,"at":0,"run":1,"key":"run","event":"began"}
//!                                 └ CRC-32 of the JSON, in hexadecimal
//! 00000000000000041234.journal    the segment in use; only its end can be torn
//! lock                            held by the one process that writes
//! ```
//!
//! JSON escapes line breaks, so each line is one record, and `cut -c10-` turns any segment into an event stream.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive::Archive;
use super::sink::{History, Sink};
use super::{Durability, JournalError, JournalOptions};
use crate::state::State;
use crate::wire::Record;

/// How far apart the remembered places in a segment are: what a far reader takes at a time.
const MARK_BYTES: u64 = 64 << 10;

/// The longest line that is believed: the log budget keeps real ones far below.
pub(super) const MAX_LINE_BYTES: u64 = 64 << 20;

/// The largest number a segment's name may claim, so that counting on cannot overflow.
const MAX_SEQ: u64 = u64::MAX / 2;

/// Eight digits of checksum and a space.
const PREFIX_BYTES: usize = 9;

/// What is known of one segment file.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) first: u64,
    pub(super) path: PathBuf,
    /// How many bytes of it are complete lines.
    pub(super) bytes: u64,
    /// Numbers and the offsets of their lines, some [`MARK_BYTES`] apart; the first is the segment's beginning.
    pub(super) marks: Vec<(u64, u64)>,
}

/// The one writer: the open end of the newest segment.
#[derive(Debug)]
pub(super) struct Writer {
    directory: PathBuf,
    durability: Durability,
    lines: Lines,
    archive: Arc<Archive>,
    file: Option<(File, PathBuf)>,
    segment_bytes: u64,
    keep_bytes: u64,
    _lock: Lock,
}

/// Lines that are written together.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The number and offset of every line.
    starts: Vec<(u64, u64)>,
}

/// The lock on a directory.
#[derive(Debug)]
struct Lock(File);

/// Opens or makes a journal's directory, cuts a torn end and folds what is there.
pub(super) fn open(
    directory: &Path,
    durability: Durability,
    options: &JournalOptions,
) -> Result<(Writer, State), JournalError> {
    fs::create_dir_all(directory).map_err(io("make the directory", directory))?;
    let lock = Lock::take(directory)?;
    let (segments, state) = recover(directory, options.keep_runs)?;
    let newest = segments.last().map(|segment| segment.path.clone());
    let archive = Arc::new(Archive::new(segments));
    let writer = Writer {
        directory: directory.to_owned(),
        durability,
        lines: Lines::default(),
        archive,
        file: newest.map(reopen).transpose()?,
        segment_bytes: options.segment_bytes,
        keep_bytes: options.keep_bytes,
        _lock: lock,
    };
    Ok((writer, state))
}

fn reopen(path: PathBuf) -> Result<(File, PathBuf), JournalError> {
    let file = OpenOptions::new()
        .append(true)
        .open(&path)
        .map_err(io("open", &path))?;
    Ok((file, path))
}

/// Reads all segments, oldest first.
fn recover(directory: &Path, keep_runs: usize) -> Result<(Vec<Segment>, State), JournalError> {
    let mut found = list(directory)?;
    let newest = found.pop();
    let oldest = found
        .first()
        .or(newest.as_ref())
        .map_or(1, |(first, _)| *first);
    let mut state = State::starting_at(oldest, keep_runs);
    let mut segments = Vec::new();
    for (first, path) in found {
        let (segment, length) = recover_segment(first, path, &mut state)?;
        if segment.bytes < length {
            return Err(JournalError::Damaged {
                path: segment.path,
                offset: segment.bytes,
            });
        }
        segments.push(segment);
    }
    if let Some((first, path)) = newest {
        let (segment, length) = recover_segment(first, path, &mut state)?;
        if segment.bytes < length {
            cut(&segment)?;
        }
        segments.push(segment);
    }
    Ok((segments, state))
}

/// The segment files of a directory with their first numbers, oldest first.
pub(super) fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(io("list", directory))? {
        let path = entry.map_err(io("list", directory))?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if path
            .extension()
            .is_some_and(|extension| extension == "journal")
            && let Some(first) = stem.and_then(|stem| stem.parse().ok())
            && (1..=MAX_SEQ).contains(&first)
        {
            found.push((first, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a segment from its beginning to its first bad line, if any; returns the length of the file as well.
fn recover_segment(
    first: u64,
    path: PathBuf,
    state: &mut State,
) -> Result<(Segment, u64), JournalError> {
    if first != state.seq() + 1 {
        return Err(JournalError::Damaged { path, offset: 0 });
    }
    let file = File::open(&path).map_err(io("open", &path))?;
    let length = file.metadata().map_err(io("read", &path))?.len();
    let mut lines = BufReader::with_capacity(1 << 20, file);
    let mut segment = Segment::new(first, path);
    let mut line = Vec::new();
    while segment.bytes < length {
        line.clear();
        let size = (&mut lines)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        let size = size.map_err(io("read", &segment.path))? as u64;
        let Some(record) = decode(&line, state.seq() + 1) else {
            break;
        };
        segment.mark(record.seq, segment.bytes);
        segment.bytes += size;
        state.apply(&record);
    }
    Ok((segment, length))
}

/// Shortens a segment to the part that was read well.
fn cut(segment: &Segment) -> Result<(), JournalError> {
    let file = OpenOptions::new().write(true).open(&segment.path);
    let file = file.map_err(io("open", &segment.path))?;
    file.set_len(segment.bytes)
        .map_err(io("shorten", &segment.path))?;
    file.sync_all().map_err(io("sync", &segment.path))
}

/// The record of a line, or nothing if it is torn, damaged or not the one with the given number.
pub(super) fn decode(line: &[u8], seq: u64) -> Option<Record> {
    let line = line.strip_suffix(b"\n")?;
    let (prefix, json) = line.split_at_checked(PREFIX_BYTES)?;
    let digits = std::str::from_utf8(prefix.strip_suffix(b" ")?).ok()?;
    let checksum = u32::from_str_radix(digits, 16).ok()?;
    if crc32fast::hash(json) != checksum {
        return None;
    }
    let record: Record = serde_json::from_slice(json).ok()?;
    (record.seq == seq).then_some(record)
}

pub(super) fn io<'a>(
    act: &'static str,
    path: &'a Path,
) -> impl Fn(std::io::Error) -> JournalError + 'a {
    move |error| JournalError::Io {
        act,
        path: path.to_owned(),
        source: Arc::new(error),
    }
}

// === impl Lines ===

impl Lines {
    fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    fn push(&mut self, record: &Record) {
        let start = self.bytes.len();
        self.starts.push((record.seq, start as u64));
        self.bytes.extend_from_slice(b"00000000 ");
        serde_json::to_writer(&mut self.bytes, record)
            .expect("strings and numbers always serialise");
        let checksum = crc32fast::hash(&self.bytes[start + PREFIX_BYTES..]);
        let digits = &mut self.bytes[start..start + PREFIX_BYTES - 1];
        for (position, digit) in digits.iter_mut().enumerate() {
            let nibble = (checksum >> (28 - 4 * position)) & 0xf;
            *digit = b"0123456789abcdef"[nibble as usize];
        }
        self.bytes.push(b'\n');
    }
}

// === impl Writer ===

impl Sink for Writer {
    fn append(&mut self, records: &mut dyn Iterator<Item = &Record>) -> Result<(), JournalError> {
        self.lines.clear();
        records.for_each(|record| self.lines.push(record));
        let Some((first, _)) = self.lines.starts.first() else {
            return Ok(());
        };
        let (mut file, path) = match self.file.take() {
            Some(open) if self.archive.newest_bytes() < self.segment_bytes => open,
            _ => self.begin(*first)?,
        };
        file.write_all(&self.lines.bytes)
            .map_err(io("write", &path))?;
        if self.durability == Durability::Synced {
            file.sync_data().map_err(io("sync", &path))?;
        }
        self.file = Some((file, path));
        let bytes = self.lines.bytes.len() as u64;
        self.archive.grow(&self.lines.starts, bytes);
        Ok(())
    }

    fn history(&self) -> Arc<dyn History> {
        Arc::clone(&self.archive) as Arc<dyn History>
    }
}

impl Writer {
    /// Begins a segment and forgets the oldest ones.
    fn begin(&self, first: u64) -> Result<(File, PathBuf), JournalError> {
        let path = self.directory.join(format!("{first:020}.journal"));
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = file.map_err(io("make", &path))?;
        if self.durability == Durability::Synced {
            // The new name must outlive a crash of the machine, not only the content.
            let directory = File::open(&self.directory).map_err(io("open", &self.directory))?;
            directory.sync_all().map_err(io("sync", &self.directory))?;
        }
        for forgotten in self
            .archive
            .begin(Segment::new(first, path.clone()), self.keep_bytes)
        {
            fs::remove_file(&forgotten.path).map_err(io("remove", &forgotten.path))?;
        }
        Ok((file, path))
    }
}

// === impl Segment ===

impl Segment {
    fn new(first: u64, path: PathBuf) -> Self {
        Self {
            first,
            path,
            bytes: 0,
            marks: vec![(first, 0)],
        }
    }

    /// Remembers where the line of `seq` begins, if the last such place is far enough away.
    pub(super) fn mark(&mut self, seq: u64, at: u64) {
        if self
            .marks
            .last()
            .is_none_or(|(_, offset)| at >= offset + MARK_BYTES)
        {
            self.marks.push((seq, at));
        }
    }
}

// === impl Lock ===

impl Lock {
    fn take(directory: &Path) -> Result<Self, JournalError> {
        let path = directory.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.map_err(io("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(JournalError::InUse(directory.to_owned())),
            Err(TryLockError::Error(error)) => Err(io("lock", &path)(error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started still has the file open.
        let _ = self.0.unlock();
    }
}
