//! The audit log: one line for every change, every reading of a secret and every refusal.
//!
//! Each line has the digest of the line before it, so that a changed or removed line is noticed; the newest digest is
//! also written to the store now and then, so that a log that was cut off is noticed too. A line is on the disk
//! before the request is answered.

mod chain;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::chain::verify_audit;
use self::chain::{NEWEST_FILE, digest_of, full_file, read_newest};

/// Entries that may wait for the disk; more wait to be put in.
const QUEUE: usize = 1024;
/// Entries that share a sync.
const BATCH: usize = 256;
/// The size at which a new file is begun: a start reads one file.
const MAX_BYTES: u64 = 8 << 20;

/// Why an audit log cannot be used, or is not whole.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file cannot be read or written.
    #[error("cannot use the audit log `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A line is not what was written.
    #[error("line {line} of the audit log `{path}` was changed, or a line before it was removed")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// The end is missing.
    #[error("the audit log ends at entry {found}, but the store knows of entry {known}")]
    Short {
        /// The last entry.
        found: u64,
        /// The one that the store knows.
        known: u64,
    },
    /// An entry is another than the one that was told to the store.
    #[error("entry {number} of the audit log is not the one that the store knows")]
    Replaced {
        /// The entry.
        number: u64,
    },
}

/// The newest entry of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AuditHead {
    pub(crate) number: u64,
    pub(crate) digest: String,
}

/// Takes entries; clones write to the same log.
#[derive(Clone)]
pub(crate) struct AuditLog {
    entries: mpsc::Sender<Entry>,
    head: watch::Receiver<AuditHead>,
}

/// What is to be written, and who waits for it.
type Entry = (Value, oneshot::Sender<bool>);

impl AuditLog {
    /// Opens a log, or begins one, after its newest file was checked. `known` is the newest entry that the store knows of.
    pub(crate) fn open(directory: &Path, known: Option<&AuditHead>) -> Result<Self, AuditError> {
        let path = directory.join(NEWEST_FILE);
        let head = read_newest(directory, known)?;
        let failed = |source| AuditError::File {
            path: path.clone(),
            source,
        };
        let file = open_file(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let (entries, receiver) = mpsc::channel(QUEUE);
        let (told, watched) = watch::channel(head.clone());
        let writer = LogWriter {
            path: path.clone(),
            file,
            length,
            head,
            told,
        };
        let thread = std::thread::Builder::new().name("audit-writer".to_owned());
        thread.spawn(move || writer.run(receiver)).map_err(failed)?;
        Ok(Self {
            entries,
            head: watched,
        })
    }

    /// Writes an entry and waits until it is on the disk; false if that failed.
    pub(crate) async fn write(&self, entry: Value) -> bool {
        let (reply, answer) = oneshot::channel();
        self.entries.send((entry, reply)).await.is_ok() && answer.await.unwrap_or(false)
    }

    /// The newest entry.
    pub(crate) fn head(&self) -> AuditHead {
        self.head.borrow().clone()
    }

    /// Whether entries can still be written.
    pub(crate) fn is_open(&self) -> bool {
        !self.entries.is_closed()
    }
}

struct LogWriter {
    path: PathBuf,
    file: File,
    /// The bytes of the file that are on the disk for certain.
    length: u64,
    head: AuditHead,
    told: watch::Sender<AuditHead>,
}

impl LogWriter {
    /// Writes what comes. It ends when nobody can know what is in the file: then nothing is answered any more.
    fn run(mut self, mut entries: mpsc::Receiver<Entry>) {
        let mut batch = Vec::with_capacity(BATCH);
        while entries.blocking_recv_many(&mut batch, BATCH) > 0 {
            let written = self.append(batch.iter().map(|(entry, _)| entry));
            if let Err(error) = &written {
                tracing::error!(%error, "the audit log cannot be written");
            }
            for (_, reply) in batch.drain(..) {
                let _ = reply.send(written.is_ok());
            }
            // Half a line must not stand between two others.
            if written.is_err()
                && let Err(error) = self.cut()
            {
                tracing::error!(%error, "the audit log cannot be cut to what was written");
                return;
            }
            if let Err(error) = self.rotate() {
                tracing::error!(%error, "a new file of the audit log cannot be begun");
            }
        }
    }

    /// Writes lines that go on with the chain, to the disk.
    fn append<'e>(&mut self, entries: impl Iterator<Item = &'e Value>) -> std::io::Result<()> {
        let (mut lines, mut head) = (Vec::new(), self.head.clone());
        for entry in entries {
            let mut entry = entry.clone();
            entry["number"] = (head.number + 1).into();
            entry["before"] = head.digest.as_str().into();
            let text = entry.to_string();
            head = AuditHead {
                number: head.number + 1,
                digest: digest_of(&text),
            };
            lines.extend_from_slice(text.as_bytes());
            lines.push(b'\n');
        }
        self.file.write_all(&lines)?;
        self.file.sync_data()?;
        self.length += lines.len() as u64;
        self.head = head;
        self.told.send_replace(self.head.clone());
        Ok(())
    }

    /// Removes what a failed write left.
    fn cut(&self) -> std::io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.sync_all()
    }

    /// Begins a new file when this one is full. The first line of the new one goes on with the chain.
    fn rotate(&mut self) -> std::io::Result<()> {
        if self.length < MAX_BYTES {
            return Ok(());
        }
        let full = self.path.with_file_name(full_file(self.head.number));
        std::fs::rename(&self.path, full)?;
        self.file = open_file(&self.path)?;
        self.length = 0;
        self.append(std::iter::once(&json!({"action": "rotate"})))
    }
}

/// Opens a file to write at its end; its name is on the disk too.
fn open_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    let file = options.open(path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
