//! The step journal of a node: what was begun and what was done, so that a run that was killed goes on where it was.
//!
//! A record is a mark, its length, its number, a checksum, and JSON. It is on the disk before the work that it announces
//! begins, and before anybody is told of the work that it reports. A torn last record was never acted on and is cut; a
//! damaged record with others behind it means that the disk or somebody changed the file, and nothing in it is trusted.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outcome::{NodeState, StepState};

/// How every record begins.
const MARK: [u8; 4] = *b"PSJ1";

/// Mark, length, number, checksum.
const HEADER_BYTES: usize = 4 + 4 + 8 + 4;

/// The largest record, in bytes. Results above this are kept without their content.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// The space that is reserved before work is begun, in bytes.
const RESERVED_BYTES: u64 = 64 << 10;

/// The largest journal, in bytes.
pub const MAX_JOURNAL_BYTES: u64 = 256 << 20;

/// Something that happened in a run on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "camelCase", deny_unknown_fields)]
pub enum JournalEntry {
    /// A run began.
    Received {
        /// The run.
        run: String,
        /// The book.
        book: String,
        /// What the run was made from: book, inputs and selected steps.
        digest: String,
        /// Handlers that an earlier run notified and did not run.
        owed: Vec<String>,
    },
    /// The work of a step begins.
    Started {
        /// The step, item and attempt.
        key: StepKey,
        /// The id of the machine's start, if the work restarts it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
    },
    /// The work of a step ended.
    Finished {
        /// The step, item and attempt.
        key: StepKey,
        /// How it ended.
        state: StepState,
        /// What later steps see; null if it is secret.
        result: Value,
        /// The handlers that it notified.
        notified: Vec<String>,
    },
    /// Nobody knows whether the work of a step was done.
    Unknown {
        /// The step, item and attempt.
        key: StepKey,
    },
    /// The run ended.
    Ended {
        /// How.
        state: NodeState,
        /// Handlers that were notified and not run.
        owed: Vec<String>,
        /// Every step as it was reported, for whom the reports have not reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<Value>,
    },
}

/// One attempt of a step for one item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepKey {
    /// The step's path of names.
    pub step: String,
    /// The items of the loops around it and of its own, as in `2` or `web/0`; empty without a loop.
    pub item: String,
    /// The attempt, from 0.
    pub attempt: u32,
}

/// What a journal says of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Its work was begun, and nothing says that it ended.
    Started,
    /// Its work ended.
    Finished {
        /// How.
        state: StepState,
        /// What later steps see.
        result: Value,
        /// The handlers that it notified.
        notified: Vec<String>,
    },
    /// It was found begun, and nobody knows whether it ended.
    Unknown,
}

/// What a journal says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JournalState {
    /// The run, if one began.
    pub run: Option<String>,
    /// What the run was made from.
    pub digest: String,
    /// Every attempt.
    pub steps: BTreeMap<StepKey, Progress>,
    /// The ids of the machine's start before attempts that restart it.
    pub boots: BTreeMap<StepKey, String>,
    /// Handlers that are still to run: those of an earlier run, what this one notified, or what it left when it ended.
    pub owed: Vec<String>,
    /// Those of earlier runs, as they were when this one began.
    pub owed_before: Vec<String>,
    /// How the run ended, if it did.
    pub ended: Option<NodeState>,
    /// Every step as it was reported when the run ended.
    pub reports: Vec<Value>,
    /// Bytes of a torn last record that were cut.
    pub torn_bytes: usize,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("cannot {act} the journal `{path}`")]
    Io {
        /// What was tried.
        act: &'static str,
        /// The file.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A record in the middle is damaged.
    #[error("the journal `{path}` is damaged at byte {offset}: its steps are unknown")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// Where the damaged record begins.
        offset: usize,
    },
}

/// A journal that is written to.
#[derive(Debug)]
pub struct StepJournal {
    path: Utf8PathBuf,
    file: File,
    next: u64,
    /// The first record of a run that has written nothing yet.
    begun: Option<Vec<u8>>,
    /// What the last run still owes; `None` if it has not ended.
    left: Option<Vec<String>>,
}

impl StepJournal {
    /// Opens a journal, or begins an empty one, and says what it holds.
    ///
    /// # Errors
    /// When it cannot be read, or a record in the middle is damaged.
    pub fn open(path: &Utf8Path) -> Result<(Self, JournalState), JournalError> {
        let failed = |act: &'static str| {
            move |source: io::Error| JournalError::Io {
                act,
                path: path.to_owned(),
                source,
            }
        };
        let bytes = match std::fs::metadata(path) {
            Ok(about) if about.len() > MAX_JOURNAL_BYTES => {
                let why = format!("it is larger than {MAX_JOURNAL_BYTES} bytes");
                return Err(failed("read")(io::Error::other(why)));
            }
            Ok(_) => std::fs::read(path).map_err(failed("read"))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read")(error)),
        };
        let read = read_journal(&bytes).map_err(|offset| JournalError::Damaged {
            path: path.to_owned(),
            offset,
        })?;
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(failed("open"))?;
        if read.state.torn_bytes > 0 {
            let kept = (bytes.len() - read.state.torn_bytes) as u64;
            file.set_len(kept).map_err(failed("cut"))?;
            file.sync_data().map_err(failed("cut"))?;
        }
        let has_ended = read.state.run.is_none() || read.state.ended.is_some();
        let journal = Self {
            path: path.to_owned(),
            file,
            next: read.next,
            begun: None,
            left: has_ended.then(|| read.state.owed.clone()),
        };
        Ok((journal, read.state))
    }

    /// Begins a new run: with its next entry, the journal is replaced by one that has only this entry and that one. Until
    /// then nothing is written: a run that does nothing costs nothing, and after a crash it is begun again. Returns what
    /// the new journal says.
    ///
    /// # Errors
    /// When the entry cannot be written at all.
    pub fn begin(&mut self, received: JournalEntry) -> Result<JournalState, JournalError> {
        let first = record(0, &received).map_err(|source| self.failed("begin", source))?;
        self.begun = Some(first);
        self.next = 1;
        let mut state = JournalState::default();
        state.take(received);
        Ok(state)
    }

    /// Adds an entry, on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written; the work that it announces must not begin then.
    pub fn append(&mut self, entry: &JournalEntry) -> Result<(), JournalError> {
        self.add(entry, true)
    }

    /// Adds the end of a run. That of a run that did nothing is not written: the journal goes on saying what the run before
    /// it did. If the process is killed before the end was told, the run is begun again and finds nothing to do again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(&mut self, entry: &JournalEntry) -> Result<(), JournalError> {
        let did_nothing = self.begun.is_some();
        if let JournalEntry::Ended { owed, .. } = entry
            && did_nothing
            && self.left.as_ref() == Some(owed)
        {
            return Ok(());
        }
        self.add(entry, !did_nothing)
    }

    fn add(&mut self, entry: &JournalEntry, is_durable: bool) -> Result<(), JournalError> {
        let added = self.try_add(entry, is_durable);
        added.map_err(|source| self.failed("write", source))?;
        self.begun = None;
        self.next += 1;
        Ok(())
    }

    fn try_add(&mut self, entry: &JournalEntry, is_durable: bool) -> io::Result<()> {
        let bytes = record(self.next, entry)?;
        // Work that is begun must be able to write down its end.
        let needs_room = matches!(entry, JournalEntry::Started { .. });
        if let Some(first) = &self.begun {
            let content = [first.as_slice(), &bytes].concat();
            self.file = self.replace(&content, needs_room, is_durable)?;
            return Ok(());
        }
        if needs_room {
            reserve(&self.file, self.file.metadata()?.len())?;
        }
        self.file.write_all(&bytes)?;
        if is_durable {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Puts a new journal in the place of the old one. There is one of the two after a crash, and never half a one; with
    /// `is_durable`, it is the new one.
    fn replace(&self, content: &[u8], needs_room: bool, is_durable: bool) -> io::Result<File> {
        let fresh = Utf8PathBuf::from(format!("{}.new", self.path));
        let mut file = File::create(&fresh)?;
        if needs_room {
            reserve(&file, 0)?;
        }
        file.write_all(content)?;
        file.sync_data()?;
        std::fs::rename(&fresh, &self.path)?;
        if let Some(directory) = self.path.parent().filter(|_| is_durable) {
            File::open(directory)?.sync_all()?;
        }
        OpenOptions::new().append(true).open(&self.path)
    }

    fn failed(&self, act: &'static str, source: io::Error) -> JournalError {
        JournalError::Io {
            act,
            path: self.path.clone(),
            source,
        }
    }
}

/// Reserves space behind some bytes of a journal: for the record that is written next, and for the end of what it announces
/// unless that has a long result. A file system that cannot do that is written to as far as it goes.
fn reserve(file: &File, behind: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    use rustix::io::Errno;
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, behind, RESERVED_BYTES) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn record(number: u64, entry: &JournalEntry) -> io::Result<Vec<u8>> {
    let mut json = serde_json::to_vec(entry)?;
    if json.len() > MAX_RECORD_BYTES {
        json = serde_json::to_vec(&shortened(entry))?;
    }
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + json.len());
    bytes.extend_from_slice(&MARK);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&checksum(number, &json).to_le_bytes());
    bytes.extend_from_slice(&json);
    Ok(bytes)
}

/// An entry without what may be left out.
fn shortened(entry: &JournalEntry) -> JournalEntry {
    match entry.clone() {
        JournalEntry::Finished {
            key,
            state,
            notified,
            ..
        } => JournalEntry::Finished {
            key,
            state,
            notified,
            result: Value::Null,
        },
        JournalEntry::Ended { state, owed, .. } => JournalEntry::Ended {
            state,
            owed,
            steps: Vec::new(),
        },
        entry => entry,
    }
}

fn checksum(number: u64, json: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(json);
    hasher.finalize()
}

/// A journal as it was read, and the number of its next record.
#[derive(Debug, Default)]
pub struct ReadJournal {
    /// What it says.
    pub state: JournalState,
    next: u64,
}

/// Reads a journal.
///
/// # Errors
/// Where a damaged record begins that is not the last.
pub fn read_journal(bytes: &[u8]) -> Result<ReadJournal, usize> {
    let mut read = ReadJournal::default();
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        match first_record(rest, read.next) {
            Some((entry, length)) => {
                read.state.take(entry);
                read.next += 1;
                at += length;
            }
            None if has_record(rest, read.next) => return Err(at),
            None => {
                read.state.torn_bytes = rest.len();
                break;
            }
        }
    }
    Ok(read)
}

/// The record at the beginning of some bytes, if it is whole and has this number.
fn first_record(bytes: &[u8], number: u64) -> Option<(JournalEntry, usize)> {
    let (found, json) = framed(bytes)?;
    if found != number {
        return None;
    }
    let entry = serde_json::from_slice(json).ok()?;
    Some((entry, HEADER_BYTES + json.len()))
}

/// The number and JSON of a record whose checksum is right.
fn framed(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let rest = bytes.strip_prefix(&MARK)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (expected, rest) = rest.split_first_chunk::<4>()?;
    let json = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let number = u64::from_le_bytes(*number);
    (checksum(number, json) == u32::from_le_bytes(*expected)).then_some((number, json))
}

/// Whether a whole record of a later number stands somewhere in some bytes.
fn has_record(bytes: &[u8], number: u64) -> bool {
    let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&MARK));
    starts
        .filter_map(|at| framed(&bytes[at..]))
        .any(|(found, _)| found >= number)
}

impl JournalState {
    fn take(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Received {
                run, digest, owed, ..
            } => {
                *self = Self {
                    run: Some(run),
                    digest,
                    owed_before: owed.clone(),
                    owed,
                    ..Self::default()
                };
            }
            JournalEntry::Started { key, boot } => {
                if let Some(boot) = boot {
                    self.boots.insert(key.clone(), boot);
                }
                self.steps.insert(key, Progress::Started);
            }
            JournalEntry::Finished {
                key,
                state,
                result,
                notified,
            } => {
                // A handler that ran is not owed any more.
                if state != StepState::Failed {
                    self.owed.retain(|owed| *owed != key.step);
                }
                for handler in &notified {
                    if !self.owed.contains(handler) {
                        self.owed.push(handler.clone());
                    }
                }
                let progress = Progress::Finished {
                    state,
                    result,
                    notified,
                };
                self.steps.insert(key, progress);
            }
            JournalEntry::Unknown { key } => {
                self.steps.insert(key, Progress::Unknown);
            }
            JournalEntry::Ended { state, owed, steps } => {
                self.ended = Some(state);
                self.owed = owed;
                self.reports = steps;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(step: &str) -> StepKey {
        StepKey {
            step: step.to_owned(),
            item: String::new(),
            attempt: 0,
        }
    }

    fn journal() -> Vec<u8> {
        let entries = [
            JournalEntry::Received {
                run: "r1".to_owned(),
                book: "web".to_owned(),
                digest: "d".to_owned(),
                owed: vec!["handlers/a".to_owned()],
            },
            JournalEntry::Started {
                key: key("x"),
                boot: None,
            },
            JournalEntry::Finished {
                key: key("x"),
                state: StepState::Changed,
                result: json!({"changed": true}),
                notified: vec!["handlers/b".to_owned()],
            },
            JournalEntry::Started {
                key: key("y"),
                boot: None,
            },
        ];
        let records = entries
            .iter()
            .zip(0..)
            .map(|(entry, number)| record(number, entry));
        records
            .flat_map(|record| record.expect("a record"))
            .collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let read = read_journal(&journal()).expect("whole");
        assert_eq!(read.state.run.as_deref(), Some("r1"));
        assert_eq!(read.state.owed, ["handlers/a", "handlers/b"]);
        assert_eq!(read.state.steps[&key("y")], Progress::Started);
        assert!(matches!(
            read.state.steps[&key("x")],
            Progress::Finished { .. }
        ));
        assert_eq!(
            (read.next, read.state.torn_bytes, read.state.ended),
            (4, 0, None)
        );
    }

    /// Wherever a crash cuts the file, whole records before it count and the rest is cut.
    #[test]
    fn a_torn_tail_is_cut_at_every_length() {
        let whole = journal();
        let mut numbers = Vec::new();
        for length in 0..whole.len() {
            let read = read_journal(&whole[..length]).expect("a torn tail is no damage");
            numbers.push(read.next);
            let kept = length - read.state.torn_bytes;
            assert_eq!(
                read_journal(&whole[..kept])
                    .expect("whole")
                    .state
                    .torn_bytes,
                0
            );
        }
        assert!(numbers.is_sorted());
        assert_eq!(numbers.last(), Some(&3));
    }

    /// A changed byte is found: in the last record as a torn tail, anywhere else as damage.
    #[test]
    fn a_changed_byte_is_never_believed() {
        let whole = journal();
        let last = whole.len()
            - record(
                3,
                &JournalEntry::Started {
                    key: key("y"),
                    boot: None,
                },
            )
            .expect("a record")
            .len();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x41;
            match read_journal(&bytes) {
                Ok(read) => assert!(at >= last && read.next == 3, "byte {at}"),
                Err(offset) => assert!(offset <= at && at < last, "byte {at}"),
            }
        }
    }

    #[test]
    fn a_journal_goes_on_after_a_torn_tail() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(scratch.path())
            .expect("UTF-8")
            .join("web.journal");
        let mut bytes = journal();
        bytes.extend_from_slice(b"PSJ1\x09");
        std::fs::write(&path, &bytes).expect("written");
        let (mut journal, state) = StepJournal::open(&path).expect("opened");
        assert_eq!(state.torn_bytes, 5);
        journal
            .append(&JournalEntry::Unknown { key: key("y") })
            .expect("appended");
        let (mut journal, state) = StepJournal::open(&path).expect("opened");
        assert_eq!(state.steps[&key("y")], Progress::Unknown);
        let received = JournalEntry::Received {
            run: "r2".to_owned(),
            book: "web".to_owned(),
            digest: "e".to_owned(),
            owed: state.owed,
        };
        journal.begin(received).expect("begun");
        // A run that has written nothing yet has not taken the place of the last one.
        let (_, state) = StepJournal::open(&path).expect("opened");
        assert_eq!(state.run.as_deref(), Some("r1"));
        journal
            .end(&JournalEntry::Ended {
                state: NodeState::Ok,
                owed: Vec::new(),
                steps: Vec::new(),
            })
            .expect("written");
        let (_, state) = StepJournal::open(&path).expect("opened");
        assert_eq!(
            (state.run.as_deref(), state.ended, state.steps.len()),
            (Some("r2"), Some(NodeState::Ok), 0)
        );
    }
}
