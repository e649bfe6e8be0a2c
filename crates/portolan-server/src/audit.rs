//! The audit log: one line for every change, every reading of a secret and every refusal.
//!
//! Each line has the digest of the line before it, so that a changed or removed line is noticed; the newest digest is
//! also written to the store now and then, so that a log that was cut off is noticed too. A line is on the disk
//! before the request is answered.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use portolan_digest::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot};

/// Entries that may wait for the disk; more wait to be put in.
const QUEUE: usize = 1024;
/// Entries that share a sync.
const BATCH: usize = 256;
/// The size at which a new file is begun.
const MAX_BYTES: u64 = 64 << 20;

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
    entries: mpsc::Sender<(Value, oneshot::Sender<bool>)>,
    head: tokio::sync::watch::Receiver<AuditHead>,
}

impl AuditLog {
    /// Opens a log, or begins one, after all of it was checked.
    pub(crate) fn open(directory: &Path) -> Result<Self, AuditError> {
        let path = directory.join("audit.log");
        let head = if path.exists() {
            read_chain(&path)?
        } else {
            AuditHead::default()
        };
        let failed = |source| AuditError::File {
            path: path.clone(),
            source,
        };
        let file = open_file(&path).map_err(failed)?;
        let (entries, receiver) = mpsc::channel(QUEUE);
        let (sender, watched) = tokio::sync::watch::channel(head.clone());
        let writer = LogWriter {
            path: path.clone(),
            file,
            head,
            told: sender,
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
}

struct LogWriter {
    path: PathBuf,
    file: File,
    head: AuditHead,
    told: tokio::sync::watch::Sender<AuditHead>,
}

impl LogWriter {
    fn run(mut self, mut entries: mpsc::Receiver<(Value, oneshot::Sender<bool>)>) {
        let mut batch = Vec::with_capacity(BATCH);
        while entries.blocking_recv_many(&mut batch, BATCH) > 0 {
            let (lines, head) = self.chain(&batch);
            let written = self
                .file
                .write_all(&lines)
                .and_then(|()| self.file.sync_data());
            if let Err(error) = &written {
                tracing::error!(%error, "the audit log cannot be written");
            } else {
                self.head = head;
                self.told.send_replace(self.head.clone());
            }
            for (_, reply) in batch.drain(..) {
                let _ = reply.send(written.is_ok());
            }
            if let Err(error) = self.rotate() {
                tracing::error!(%error, "the audit log cannot be rotated");
            }
        }
    }

    fn chain(&self, batch: &[(Value, oneshot::Sender<bool>)]) -> (Vec<u8>, AuditHead) {
        let (mut lines, mut head) = (Vec::new(), self.head.clone());
        for (entry, _) in batch {
            let mut entry = entry.clone();
            entry["number"] = (head.number + 1).into();
            entry["before"] = head.digest.as_str().into();
            let text = entry.to_string();
            head = AuditHead {
                number: head.number + 1,
                digest: hex(&Sha256::digest(text.as_bytes())),
            };
            lines.extend_from_slice(text.as_bytes());
            lines.push(b'\n');
        }
        (lines, head)
    }

    /// Begins a new file when this one is large. The first line of the new one goes on with the chain.
    fn rotate(&mut self) -> std::io::Result<()> {
        if self.file.metadata()?.len() < MAX_BYTES {
            return Ok(());
        }
        let old = self
            .path
            .with_file_name(format!("audit-{}.log", self.head.number));
        std::fs::rename(&self.path, old)?;
        self.file = open_file(&self.path)?;
        let entry = json!({"action": "rotate"});
        let (reply, _) = oneshot::channel();
        let (line, head) = self.chain(&[(entry, reply)]);
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.head = head;
        Ok(())
    }
}

fn open_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    let file = options.open(path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(file)
}

/// Checks a log from its first line to its last. A last line that is cut off was never answered, and is removed.
fn read_chain(path: &Path) -> Result<AuditHead, AuditError> {
    let failed = |source| AuditError::File {
        path: path.to_owned(),
        source,
    };
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let (mut head, mut text, mut whole, mut count) =
        (AuditHead::default(), String::new(), 0_u64, 0_u64);
    loop {
        text.clear();
        let length = reader.read_line(&mut text).map_err(failed)?;
        let Some(line) = text.strip_suffix('\n') else {
            break;
        };
        count += 1;
        let broken = || AuditError::Broken {
            path: path.to_owned(),
            line: count,
        };
        let entry: Value = serde_json::from_str(line).map_err(|_| broken())?;
        let number = entry["number"].as_u64().ok_or_else(broken)?;
        let before = entry["before"].as_str().ok_or_else(broken)?;
        // The first line of a file goes on with the file before it.
        if count > 1 && (before != head.digest || number != head.number + 1) {
            return Err(broken());
        }
        head = AuditHead {
            number,
            digest: hex(&Sha256::digest(line.as_bytes())),
        };
        whole += length as u64;
    }
    if !text.is_empty() {
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        file.set_len(whole)
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
    }
    Ok(head)
}

/// Checks the audit log of a data directory; returns the number of its last entry.
///
/// # Errors
/// When a line was changed or removed, or the log ends before `known`, the newest entry that the store knows of.
pub fn verify_audit(directory: &Path, known: u64) -> Result<u64, AuditError> {
    let head = read_chain(&directory.join("audit.log"))?;
    if head.number < known {
        return Err(AuditError::Short {
            found: head.number,
            known,
        });
    }
    Ok(head.number)
}
