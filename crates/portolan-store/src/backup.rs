//! Copies a store to one file, and restores it.
//!
//! ```text
//! "portolan-store 1\n" incarnation:u64 revision:u64 { key-length:u32 key value-length:u32 value }… end:u32 records:u64 sha256
//! ```
//!
//! All numbers are big-endian; the digest is over everything before it. A backup is one revision of all keys below
//! [`ROOT`], without operation slots and without keys that have a lease: both belong to processes that ran at that
//! time. A restored store is a new [`Incarnation`], so its revisions are not confused with those of the old one.

use std::io::{self, Read, Write};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::keys::{META, OPERATIONS, ROOT};
use crate::limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::{Compare, Incarnation, Position, Revision, Span, Store, StoreError, Transaction};

const MAGIC: &[u8] = b"portolan-store 1\n";
/// Where the next key's length would be.
const END: u32 = u32::MAX;
/// Records and bytes of one transaction of a restore.
const BATCH: usize = 100;
const BATCH_BYTES: usize = 256 << 10;

/// Why a backup could not be written, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file cannot be read or written.
    #[error("cannot read or write the backup")]
    Io(#[from] io::Error),
    /// The file is not what was written.
    #[error("the backup is damaged or cut off: {0}")]
    Damaged(&'static str),
    /// A restore needs an empty store.
    #[error("the store is not empty: it holds `{0}`; restore into a new one")]
    NotEmpty(String),
    /// A restored store does not hold what the backup holds.
    #[error("the store does not hold what the backup holds")]
    Differs,
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupSummary {
    /// The incarnation that it was made of.
    pub incarnation: u64,
    /// The revision that it was made of.
    pub revision: Revision,
    /// How many records.
    pub records: u64,
    /// The digest of the file.
    pub sha256: [u8; 32],
}

/// Writes all of a store as it is at one revision.
pub async fn backup(
    store: &Store,
    out: &mut (dyn Write + Send),
) -> Result<BackupSummary, BackupError> {
    let incarnation = Incarnation::open(store).await?.number;
    let revision = store.status().await?.revision;
    let mut out = Hashing {
        inner: out,
        hash: Sha256::new(),
    };
    out.write_all(MAGIC)?;
    out.write_all(&incarnation.to_be_bytes())?;
    out.write_all(&revision.to_be_bytes())?;
    let (mut records, mut failed) = (0_u64, None);
    let span = Span::prefix(ROOT);
    let scanned = store.scan(&span, Some(revision), |record| {
        if !belongs(&record.key) || record.lease.is_some() {
            return Ok(());
        }
        records += 1;
        let written =
            write_part(&mut out, &record.key).and_then(|()| write_part(&mut out, &record.value));
        written.map_err(|error| {
            let detail = error.to_string();
            failed = Some(error);
            StoreError::Stopped { detail }
        })
    });
    let scanned = scanned.await;
    if let Some(error) = failed {
        return Err(error.into());
    }
    scanned?;
    out.write_all(&END.to_be_bytes())?;
    out.write_all(&records.to_be_bytes())?;
    let sha256: [u8; 32] = out.hash.clone().finalize().into();
    out.inner.write_all(&sha256)?;
    out.inner.flush()?;
    Ok(BackupSummary {
        incarnation,
        revision,
        records,
        sha256,
    })
}

/// Reads a backup to its end and gives each record to `visit`. What was visited counts only when this returns `Ok`.
pub fn read_backup(
    input: &mut dyn Read,
    mut visit: impl FnMut(Bytes, Bytes) -> Result<(), BackupError>,
) -> Result<BackupSummary, BackupError> {
    let mut input = Reading {
        inner: input,
        hash: Sha256::new(),
    };
    let mut magic = [0; MAGIC.len()];
    input.fill(&mut magic)?;
    if magic != MAGIC {
        return Err(BackupError::Damaged("it does not begin as one"));
    }
    let (incarnation, revision) = (input.number()?, input.number()?);
    let mut records = 0;
    let mut last = Bytes::new();
    loop {
        let length = input.length()?;
        if length == END {
            break;
        }
        let key = input.part(length, MAX_KEY_BYTES)?;
        if key <= last || !belongs(&key) {
            return Err(BackupError::Damaged("a key is not where it belongs"));
        }
        let length = input.length()?;
        let value = input.part(length, MAX_VALUE_BYTES)?;
        last = key.clone();
        records += 1;
        visit(key, value)?;
    }
    if input.number()? != records {
        return Err(BackupError::Damaged("records are missing"));
    }
    let sha256: [u8; 32] = input.hash.clone().finalize().into();
    let mut stored = [0; 32];
    input.fill(&mut stored)?;
    if stored != sha256 || input.inner.read(&mut [0])? > 0 {
        return Err(BackupError::Damaged("its digest is another"));
    }
    Ok(BackupSummary {
        incarnation,
        revision,
        records,
        sha256,
    })
}

/// Fills an empty store from a backup that was read whole before, and begins a new incarnation.
pub async fn restore(
    store: &Store,
    open: impl Fn() -> io::Result<Box<dyn Read + Send>>,
) -> Result<BackupSummary, BackupError> {
    let summary = read_backup(&mut open()?, |_, _| Ok(()))?;
    let first = store
        .range(crate::Range::new(Span::prefix(ROOT)).limit(1))
        .await?;
    if let Some(record) = first.records.iter().find(|record| belongs(&record.key)) {
        return Err(BackupError::NotEmpty(record.key.escape_ascii().to_string()));
    }
    // The file is read in the background of the writes: a batch at a time, never all of it.
    let (sender, mut batches) = tokio::sync::mpsc::channel::<Vec<(Bytes, Bytes)>>(2);
    let mut input = open()?;
    let reader = tokio::task::spawn_blocking(move || {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let read = read_backup(&mut input, |key, value| {
            bytes += key.len() * 2 + value.len();
            batch.push((key, value));
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                bytes = 0;
                let full = std::mem::take(&mut batch);
                sender
                    .blocking_send(full)
                    .map_err(|_| BackupError::Damaged("nobody takes it"))?;
            }
            Ok(())
        });
        let _ = sender.blocking_send(batch);
        read
    });
    while let Some(batch) = batches.recv().await {
        write_batch(store, batch).await?;
    }
    let again = reader
        .await
        .map_err(|_| BackupError::Damaged("reading it failed"))??;
    if again != summary {
        return Err(BackupError::Damaged("it changed while it was read"));
    }
    let origin = Position {
        incarnation: summary.incarnation,
        revision: summary.revision,
    };
    Incarnation::raise(store, origin).await?;
    Ok(summary)
}

/// Compares a store with a backup: the same keys with the same values.
pub async fn compare_backup(
    store: &Store,
    mut input: Box<dyn Read + Send>,
) -> Result<BackupSummary, BackupError> {
    let mut digest = Sha256::new();
    let summary = read_backup(&mut input, |key, value| {
        if !is_incarnation(&key) {
            hash_record(&mut digest, &key, &value);
        }
        Ok(())
    })?;
    let mut own = Sha256::new();
    let span = Span::prefix(ROOT);
    store
        .scan(&span, None, |record| {
            let is_compared =
                belongs(&record.key) && record.lease.is_none() && !is_incarnation(&record.key);
            if is_compared {
                hash_record(&mut own, &record.key, &record.value);
            }
            Ok(())
        })
        .await?;
    if digest.finalize() != own.finalize() {
        return Err(BackupError::Differs);
    }
    Ok(summary)
}

async fn write_batch(store: &Store, batch: Vec<(Bytes, Bytes)>) -> Result<(), BackupError> {
    if batch.is_empty() {
        return Ok(());
    }
    let first = batch[0].0.clone();
    let create = batch
        .into_iter()
        .fold(Transaction::new(), |transaction, (key, value)| {
            transaction
                .when(Compare::absent(key.clone()))
                .put(key, value)
        });
    if !store.commit(create).await?.succeeded {
        return Err(BackupError::NotEmpty(first.escape_ascii().to_string()));
    }
    Ok(())
}

/// Whether a key is part of a backup.
fn belongs(key: &[u8]) -> bool {
    key.starts_with(ROOT.as_bytes()) && !key.starts_with(OPERATIONS.as_bytes())
}

fn is_incarnation(key: &[u8]) -> bool {
    key.strip_prefix(META.as_bytes()) == Some(b"incarnation")
}

fn hash_record(hash: &mut Sha256, key: &[u8], value: &[u8]) {
    for part in [key, value] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
}

fn write_part(out: &mut impl Write, part: &[u8]) -> io::Result<()> {
    out.write_all(&(part.len() as u32).to_be_bytes())?;
    out.write_all(part)
}

/// Hashes what is written.
struct Hashing<'a> {
    inner: &'a mut (dyn Write + Send),
    hash: Sha256,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Hashes what is read.
struct Reading<'a> {
    inner: &'a mut dyn Read,
    hash: Sha256,
}

impl Reading<'_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), BackupError> {
        match self.inner.read_exact(bytes) {
            Ok(()) => self.hash.update(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(BackupError::Damaged("it ends early"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<u64, BackupError> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn length(&mut self) -> Result<u32, BackupError> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn part(&mut self, length: u32, limit: usize) -> Result<Bytes, BackupError> {
        if length as usize > limit {
            return Err(BackupError::Damaged("a part is longer than it can be"));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(bytes.into())
    }
}
