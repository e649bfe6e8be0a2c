//! Where blobs are written to and read from.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::sync::Mutex;

use portolan_digest::Digest;

/// Takes blobs whose digest is known when they are written.
pub trait BlobSink {
    /// Begins a blob. Nothing of it can be seen before [`BlobWriter::commit`]; a writer that is dropped leaves nothing.
    fn begin(&self) -> io::Result<Box<dyn BlobWriter + '_>>;
}

/// A blob that is being written.
pub trait BlobWriter: Write {
    /// Keeps the blob under its digest.
    fn commit(self: Box<Self>, digest: &Digest) -> io::Result<()>;
}

/// Gives blobs by their digest.
pub trait BlobSource {
    /// Opens a blob.
    fn open(&self, digest: &Digest) -> io::Result<Box<dyn Read + '_>>;
}

/// Blobs in memory: for tests.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<BTreeMap<Digest, Vec<u8>>>,
}

impl MemoryBlobs {
    /// Returns a blob, `None` if there is none of that digest.
    pub fn get(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.lock().get(digest).cloned()
    }

    /// The digests of all blobs.
    pub fn digests(&self) -> Vec<Digest> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Digest, Vec<u8>>> {
        self.blobs
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl BlobSink for MemoryBlobs {
    fn begin(&self) -> io::Result<Box<dyn BlobWriter + '_>> {
        Ok(Box::new(MemoryWriter {
            blobs: self,
            content: Vec::new(),
        }))
    }
}

impl BlobSource for MemoryBlobs {
    fn open(&self, digest: &Digest) -> io::Result<Box<dyn Read + '_>> {
        let content = self
            .get(digest)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Box::new(Cursor::new(content)))
    }
}

struct MemoryWriter<'a> {
    blobs: &'a MemoryBlobs,
    content: Vec<u8>,
}

impl Write for MemoryWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for MemoryWriter<'_> {
    fn commit(self: Box<Self>, digest: &Digest) -> io::Result<()> {
        self.blobs.lock().insert(*digest, self.content);
        Ok(())
    }
}

/// Writes a whole blob and returns its digest.
pub(crate) fn put(sink: &dyn BlobSink, content: &[u8]) -> io::Result<Digest> {
    let digest = Digest::of(content);
    let mut writer = sink.begin()?;
    writer.write_all(content)?;
    writer.commit(&digest)?;
    Ok(digest)
}
