//! A file of records that are added at its end: length, CRC, bytes. Half a record at the end, as a crash leaves it, is cut.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use crate::disk;

/// The longest record.
const MAX_RECORD: usize = 1 << 20;

const HEAD_BYTES: usize = 8;

/// A file of records.
pub(super) struct RecordLog {
    path: Utf8PathBuf,
    file: File,
    bytes: u64,
    /// Whether an addition failed and could not be taken back: nothing may follow it.
    is_broken: bool,
}

/// What an opened file held.
pub(super) struct ReadRecords {
    pub(super) records: Vec<Vec<u8>>,
    /// Bytes at its end that were no records, and were cut.
    pub(super) cut: u64,
}

impl RecordLog {
    /// Opens a file, which is made for its owner alone if it does not exist.
    pub(super) fn open(path: &Utf8Path) -> io::Result<(Self, ReadRecords)> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(path)?;
        disk::sync_directory(path.parent().unwrap_or(Utf8Path::new(".")))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let (records, whole) = split(&content);
        let cut = content.len() as u64 - whole;
        if cut > 0 {
            file.set_len(whole)?;
            file.sync_all()?;
        }
        file.seek(SeekFrom::Start(whole))?;
        let log = Self {
            path: path.to_owned(),
            file,
            bytes: whole,
            is_broken: false,
        };
        Ok((log, ReadRecords { records, cut }))
    }

    /// How many bytes the file has.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds records, which are on the disk when this returns.
    pub(super) fn append(&mut self, records: &[Vec<u8>]) -> io::Result<()> {
        self.append_unsynced(records)?;
        self.file.sync_data()
    }

    /// Adds records that may get lost when the machine crashes.
    pub(super) fn append_unsynced(&mut self, records: &[Vec<u8>]) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("an earlier record could not be written"));
        }
        let content = framed(records);
        match self.file.write_all(&content) {
            Ok(()) => {
                self.bytes += content.len() as u64;
                Ok(())
            }
            Err(error) => {
                let cut = self.file.set_len(self.bytes);
                let back = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)));
                self.is_broken = back.is_err();
                Err(error)
            }
        }
    }

    /// Replaces all records in one step.
    pub(super) fn replace(&mut self, records: &[Vec<u8>]) -> io::Result<()> {
        let content = framed(records);
        disk::write_durable(&self.path, &content)?;
        let mut file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        file.seek(SeekFrom::End(0))?;
        self.file = file;
        self.bytes = content.len() as u64;
        self.is_broken = false;
        Ok(())
    }
}

fn framed(records: &[Vec<u8>]) -> Vec<u8> {
    let mut content = Vec::new();
    for record in records {
        let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
        content.extend_from_slice(&length.to_le_bytes());
        content.extend_from_slice(&crc32fast::hash(record).to_le_bytes());
        content.extend_from_slice(record);
    }
    content
}

/// The records at the beginning of a content, and how many bytes they take.
fn split(content: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let mut records = Vec::new();
    let mut whole = 0;
    while let Some(record) = content.get(whole..).and_then(first) {
        whole += HEAD_BYTES + record.len();
        records.push(record.to_vec());
    }
    (records, whole as u64)
}

fn first(content: &[u8]) -> Option<&[u8]> {
    let (length, rest) = content.split_first_chunk()?;
    let (crc, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let record = rest.get(..length).filter(|_| length <= MAX_RECORD)?;
    (crc32fast::hash(record) == u32::from_le_bytes(*crc)).then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_crash_leaves_at_the_end_is_cut_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("log")).expect("UTF-8");
        let records = [b"one".to_vec(), b"second".to_vec(), Vec::new()];
        let whole = framed(&records);
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).expect("written");
            let (mut log, read) = RecordLog::open(&path).expect("opened");
            assert!(records.starts_with(&read.records), "{length}");
            assert_eq!(log.bytes() + read.cut, length as u64);
            log.append(&[b"more".to_vec()]).expect("added");
            let (_, again) = RecordLog::open(&path).expect("opened again");
            assert_eq!(again.cut, 0);
            assert_eq!(again.records.len(), read.records.len() + 1);
            assert_eq!(again.records.last().map(Vec::as_slice), Some(&b"more"[..]));
        }
    }

    #[test]
    fn a_record_that_changed_on_the_disk_is_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().join("log")).expect("UTF-8");
        let mut content = framed(&[b"one".to_vec(), b"second".to_vec()]);
        let last = content.len() - 1;
        content[last] ^= 1;
        std::fs::write(&path, content).expect("written");
        let (_, read) = RecordLog::open(&path).expect("opened");
        assert_eq!(read.records, [b"one".to_vec()]);
    }
}
