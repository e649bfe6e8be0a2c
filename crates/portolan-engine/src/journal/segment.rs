//! Events on file: segments of checksummed lines, named by the first number they hold.
//!
//! ```text
//! 00000000000000000001.journal    8c736521 {"seq":1,"at":0,"key":"a","event":"queued"}
//!                                 └ CRC-32 of the JSON, in hexadecimal
//! 00000000000000041234.journal    the segment in use; only its end can be torn
//! lock                            held by the one process that writes
//! ```
//!
//! JSON escapes line ends, so a line is a record, and `cut -c10-` makes an event stream of any segment.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::{Durability, JournalError, JournalOptions};
use crate::state::State;
use crate::wire::Record;

/// How far apart the remembered places in a segment are: what a far reader scans at most to find its number.
const MARK_BYTES: u64 = 64 << 10;

/// How many bytes a far reader takes at a time.
const READ_BYTES: u64 = 64 << 10;

/// The longest line that is believed: the log budget keeps real ones far below.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The largest number a segment's name may claim, so that counting on cannot overflow.
const MAX_SEQ: u64 = u64::MAX / 2;

/// Eight digits of checksum and a space.
const PREFIX_BYTES: usize = 9;

/// The segments that exist, oldest first; shared by the writer and far readers.
#[derive(Debug, Clone, Default)]
pub(super) struct Segments(Arc<RwLock<Vec<Segment>>>);

#[derive(Debug)]
struct Segment {
    first: u64,
    path: PathBuf,
    bytes: u64,
    /// Numbers and the offsets of their lines, some [`MARK_BYTES`] apart; the first is the segment's beginning.
    marks: Vec<(u64, u64)>,
}

/// The one writer: the open end of the newest segment.
#[derive(Debug)]
pub(super) struct Writer {
    directory: PathBuf,
    segments: Segments,
    file: Option<File>,
    segment_bytes: u64,
    keep_bytes: u64,
    /// Held for as long as the writer lives, so that nobody else writes here.
    _lock: File,
}

/// A far reader's place.
#[derive(Debug)]
pub(super) struct Place {
    file: BufReader<File>,
    path: PathBuf,
    offset: u64,
    next: u64,
}

/// What a far read gave.
pub(super) enum Found {
    Records(Vec<Record>),
    /// The number is older than the oldest segment, which begins here.
    Forgotten {
        oldest: u64,
    },
}

/// Opens or makes a journal's directory, cuts a torn end and folds what is there.
pub(super) fn open(
    directory: &Path,
    options: &JournalOptions,
) -> Result<(Segments, Writer, State), JournalError> {
    fs::create_dir_all(directory).map_err(io("make the directory", directory))?;
    let lock = take_lock(directory)?;
    let mut state = State::default();
    let mut segments = Vec::new();
    let found = list(directory)?;
    let newest = found.len().saturating_sub(1);
    for (position, (first, path)) in found.into_iter().enumerate() {
        if position == 0 {
            state = State::starting_at(first);
        }
        segments.push(recover(first, path, &mut state, position == newest)?);
    }
    let segments = Segments(Arc::new(RwLock::new(segments)));
    let writer = Writer {
        directory: directory.to_owned(),
        file: segments.open_newest()?,
        segments: segments.clone(),
        segment_bytes: options.segment_bytes,
        keep_bytes: options.keep_bytes,
        _lock: lock,
    };
    Ok((segments, writer, state))
}

fn take_lock(directory: &Path) -> Result<File, JournalError> {
    let path = directory.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse(directory.to_owned())),
        Err(TryLockError::Error(error)) => Err(io("lock", &path)(error)),
    }
}

/// The segment files of a directory with their first numbers, oldest first.
fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
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

/// Reads a segment from its beginning. A bad line ends the newest segment and damns every other.
fn recover(
    first: u64,
    path: PathBuf,
    state: &mut State,
    is_newest: bool,
) -> Result<Segment, JournalError> {
    if first != state.seq() + 1 {
        return Err(JournalError::Damaged { path, offset: 0 });
    }
    let file = File::open(&path).map_err(io("open", &path))?;
    let length = file.metadata().map_err(io("read", &path))?.len();
    let mut lines = BufReader::with_capacity(1 << 20, file);
    let mut segment = Segment {
        first,
        path,
        bytes: 0,
        marks: vec![(first, 0)],
    };
    while segment.bytes < length {
        let Some((record, size)) =
            read_line(&mut lines, state.seq() + 1).map_err(io("read", &segment.path))?
        else {
            break;
        };
        segment.mark(record.seq);
        segment.bytes += size;
        state.apply(&record);
    }
    if segment.bytes < length && !is_newest {
        return Err(JournalError::Damaged {
            path: segment.path,
            offset: segment.bytes,
        });
    }
    if segment.bytes < length {
        cut(&segment)?;
    }
    Ok(segment)
}

/// Shortens a segment to the part that was read well.
fn cut(segment: &Segment) -> Result<(), JournalError> {
    let file = OpenOptions::new().write(true).open(&segment.path);
    let file = file.map_err(io("open", &segment.path))?;
    file.set_len(segment.bytes)
        .map_err(io("shorten", &segment.path))?;
    file.sync_all().map_err(io("sync", &segment.path))
}

/// The next record and the size of its line, or nothing if it is torn, damaged or not the one with the given number.
fn read_line(from: &mut impl BufRead, seq: u64) -> std::io::Result<Option<(Record, u64)>> {
    let mut line = Vec::new();
    let size = from.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    let record = decode(&line).filter(|record| record.seq == seq);
    Ok(record.map(|record| (record, size as u64)))
}

fn decode(line: &[u8]) -> Option<Record> {
    let line = line.strip_suffix(b"\n")?;
    let (prefix, json) = line.split_at_checked(PREFIX_BYTES)?;
    let digits = std::str::from_utf8(prefix.strip_suffix(b" ")?).ok()?;
    let checksum = u32::from_str_radix(digits, 16).ok()?;
    if crc32fast::hash(json) != checksum {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// Appends the record's line to a buffer.
pub(super) fn encode(record: &Record, buffer: &mut Vec<u8>) {
    let start = buffer.len();
    buffer.extend_from_slice(b"00000000 ");
    serde_json::to_writer(&mut *buffer, record).expect("strings and numbers always serialise");
    let checksum = crc32fast::hash(&buffer[start + PREFIX_BYTES..]);
    for (position, digit) in buffer[start..start + PREFIX_BYTES - 1]
        .iter_mut()
        .enumerate()
    {
        let nibble = (checksum >> (28 - 4 * position)) & 0xf;
        *digit = b"0123456789abcdef"[nibble as usize];
    }
    buffer.push(b'\n');
}

fn io<'a>(act: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> JournalError + 'a {
    move |error| JournalError::Io {
        act,
        path: path.to_owned(),
        source: Arc::new(error),
    }
}

// === impl Writer ===

impl Writer {
    /// Appends lines whose first record has the given number; returns when they are as safe as asked for.
    pub(super) fn write(
        &mut self,
        first: u64,
        lines: &[u8],
        durability: Durability,
    ) -> Result<(), JournalError> {
        self.rotate_if_full(first, durability)?;
        let (Some(file), Some(path)) = (&mut self.file, self.segments.newest_path()) else {
            return Ok(());
        };
        file.write_all(lines).map_err(io("write", &path))?;
        if durability == Durability::Synced {
            file.sync_data().map_err(io("sync", &path))?;
        }
        self.segments.grow(first, lines.len() as u64);
        Ok(())
    }

    /// Begins the segment whose first number is `first` when there is none or the newest is full.
    fn rotate_if_full(&mut self, first: u64, durability: Durability) -> Result<(), JournalError> {
        if self.file.is_some() && self.segments.newest_bytes() < self.segment_bytes {
            return Ok(());
        }
        let path = self.directory.join(format!("{first:020}.journal"));
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        self.file = Some(file.map_err(io("make", &path))?);
        if durability == Durability::Synced {
            // The new name must outlive a crash of the machine, not only the content.
            let directory = File::open(&self.directory).map_err(io("open", &self.directory))?;
            directory.sync_all().map_err(io("sync", &self.directory))?;
        }
        let segment = Segment {
            first,
            path,
            bytes: 0,
            marks: vec![(first, 0)],
        };
        self.segments.0.write().push(segment);
        self.forget_oldest()
    }

    fn forget_oldest(&self) -> Result<(), JournalError> {
        let mut segments = self.segments.0.write();
        let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        while bytes > self.keep_bytes && segments.len() > 1 {
            let oldest = segments.remove(0);
            bytes -= oldest.bytes;
            fs::remove_file(&oldest.path).map_err(io("remove", &oldest.path))?;
        }
        Ok(())
    }
}

// === impl Segments ===

impl Segments {
    fn open_newest(&self) -> Result<Option<File>, JournalError> {
        let Some(path) = self.newest_path() else {
            return Ok(None);
        };
        let file = OpenOptions::new().append(true).open(&path);
        file.map(Some).map_err(io("open", &path))
    }

    fn newest_path(&self) -> Option<PathBuf> {
        self.0.read().last().map(|segment| segment.path.clone())
    }

    fn newest_bytes(&self) -> u64 {
        self.0.read().last().map_or(0, |segment| segment.bytes)
    }

    fn grow(&self, first: u64, bytes: u64) {
        if let Some(newest) = self.0.write().last_mut() {
            newest.mark(first);
            newest.bytes += bytes;
        }
    }

    /// Reads some records from number `from` to at most `to`, continuing at `place` if it is the right one.
    ///
    /// Everything up to `to` has been written.
    pub(super) fn read(
        &self,
        place: &mut Option<Place>,
        from: u64,
        to: u64,
    ) -> Result<Found, JournalError> {
        let mut at = match place.take().filter(|place| place.next == from) {
            Some(at) => at,
            None => match self.seek(from)? {
                Ok(at) => at,
                Err(oldest) => return Ok(Found::Forgotten { oldest }),
            },
        };
        let mut records = at.read(to)?;
        if records.is_empty() {
            // The segment ended; the number begins the next one.
            match self.seek(from)? {
                Ok(next) => at = next,
                Err(oldest) => return Ok(Found::Forgotten { oldest }),
            }
            records = at.read(to)?;
        }
        if records.is_empty() {
            return Err(JournalError::Damaged {
                path: at.path,
                offset: at.offset,
            });
        }
        *place = Some(at);
        Ok(Found::Records(records))
    }

    /// The place of a number, or the oldest number if it is older than that.
    fn seek(&self, seq: u64) -> Result<Result<Place, u64>, JournalError> {
        let (path, marked, offset, file) = {
            let segments = self.0.read();
            let after = segments.partition_point(|segment| segment.first <= seq);
            let Some(segment) = after.checked_sub(1).and_then(|index| segments.get(index)) else {
                return Ok(Err(segments.first().map_or(seq, |oldest| oldest.first)));
            };
            let after = segment.marks.partition_point(|(marked, _)| *marked <= seq);
            let (marked, offset) = segment.marks[after.saturating_sub(1)];
            // Opened under the lock: afterwards the segment may be removed.
            (
                segment.path.clone(),
                marked,
                offset,
                File::open(&segment.path),
            )
        };
        let mut file = file.map_err(io("open", &path))?;
        file.seek(SeekFrom::Start(offset))
            .map_err(io("read", &path))?;
        let mut place = Place {
            file: BufReader::new(file),
            path,
            offset,
            next: marked,
        };
        place.skip_to(seq)?;
        Ok(Ok(place))
    }
}

// === impl Segment ===

impl Segment {
    /// Remembers that the line of `seq` begins at the present end, if the last such place is far enough away.
    fn mark(&mut self, seq: u64) {
        if self
            .marks
            .last()
            .is_none_or(|(_, offset)| self.bytes >= offset + MARK_BYTES)
        {
            self.marks.push((seq, self.bytes));
        }
    }
}

// === impl Place ===

impl Place {
    fn read(&mut self, to: u64) -> Result<Vec<Record>, JournalError> {
        let mut records = Vec::new();
        let end = self.offset + READ_BYTES;
        while self.next <= to && self.offset < end {
            match read_line(&mut self.file, self.next) {
                Ok(Some((record, size))) => {
                    self.offset += size;
                    self.next += 1;
                    records.push(record);
                }
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(io("read", &self.path)(error)),
            }
        }
        Ok(records)
    }

    fn skip_to(&mut self, seq: u64) -> Result<(), JournalError> {
        let mut line = Vec::new();
        while self.next < seq {
            line.clear();
            let size = self
                .file
                .read_until(b'\n', &mut line)
                .map_err(io("read", &self.path))?;
            if size == 0 {
                break;
            }
            self.offset += size as u64;
            self.next += 1;
        }
        Ok(())
    }
}
