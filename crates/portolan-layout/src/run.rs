//! A run: one user of the store, whose blobs are not collected while it lives.
//!
//! Its file below `portolan/holds` names every blob that it uses or made, and is locked while the run lives. A blob
//! is added to the file before the run relies on it, under a lock that a collection waits for.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use portolan_digest::Digest;
use portolan_files::{Staged, WriteError};
use portolan_image::{
    BlobSink, BlobSource, BlobWriter, Descriptor, Layer, LayerCache, LayerFiles, LayerFilesCache,
    Memo,
};

use crate::action::{ActionResult, LayerRecord};
use crate::error::{At, StoreError};
use crate::gc::reachable;
use crate::store::{Store, blob, record};

/// One user of the store.
#[derive(Debug)]
pub struct Run<'a> {
    store: &'a Store,
    name: String,
    path: Utf8PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    file: File,
    digests: HashSet<Digest>,
}

impl<'a> Run<'a> {
    pub(crate) fn begin(store: &'a Store) -> Result<Self, StoreError> {
        // Under this lock a collection cannot take a file that is not locked yet for one of a dead run.
        let _lock = store.use_lock()?;
        loop {
            let name = format!("{:016x}", RandomState::new().hash_one(0));
            let path = store.path(&format!("portolan/holds/{name}"));
            let mut options = OpenOptions::new();
            let file = match options.append(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other.at(&path)?,
            };
            file.lock().at(&path)?;
            return Ok(Self {
                store,
                name,
                path,
                held: Mutex::new(Held {
                    file,
                    digests: HashSet::new(),
                }),
            });
        }
    }

    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// Holds a blob; returns whether it is there.
    pub fn hold(&self, digest: &Digest) -> Result<bool, StoreError> {
        let _lock = self.store.use_lock()?;
        self.hold_locked(digest)
    }

    fn hold_locked(&self, digest: &Digest) -> Result<bool, StoreError> {
        let mut held = self.held();
        if held.digests.insert(*digest) {
            let line = format!("{}\n", digest.hex());
            held.file.write_all(line.as_bytes()).at(&self.path)?;
        }
        let path = self.store.blob_path(digest);
        path.try_exists().at(&path)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what came of a key if all of it is still there; then it stays as long as the run lives.
    pub fn cached(&self, key: &Digest) -> Result<Option<ActionResult>, StoreError> {
        let _lock = self.store.use_lock()?;
        let path = record("actions", key);
        let Some(content) = self.store.read_document(&path)? else {
            return Ok(None);
        };
        // A record that cannot be read is as good as none.
        let Ok(result) = serde_json::from_slice::<ActionResult>(&content) else {
            return Ok(None);
        };
        for digest in reachable(self.store, [&result.image])? {
            if !self.hold_locked(&digest)? {
                return Ok(None);
            }
        }
        self.touch(&path);
        Ok(Some(result))
    }

    /// Records what came of a key.
    pub fn record(&self, key: &Digest, result: &ActionResult) -> Result<(), StoreError> {
        let _lock = self.store.use_lock()?;
        self.store.write_json(&record("actions", key), result)
    }

    /// Gives an image a name in the layout.
    pub fn tag(&self, name: &str, image: &Descriptor) -> Result<(), StoreError> {
        if !self.hold(&image.digest)? {
            return Err(StoreError::Missing(image.digest));
        }
        self.store.set_ref(name, image)
    }

    /// The digests of files that a scan of this name remembered; none if there was no such scan.
    pub fn memo(&self, name: &str) -> Memo {
        let content = self.store.read_document(&memo(name)).ok().flatten();
        content
            .and_then(|content| Memo::from_bytes(&content))
            .unwrap_or_default()
    }

    /// Remembers digests of files for the next scan of this name.
    pub fn keep_memo(&self, name: &str, digests: &Memo) {
        let (path, content) = (memo(name), digests.to_bytes());
        // A write is synced, and most builds change nothing.
        let is_kept = self.store.read_document(&path).ok().flatten();
        if is_kept.as_ref() != Some(&content) {
            // Without it, files are read again.
            let _ = self.store.output.write(path.as_str().into(), &content);
        }
    }

    /// The lines that say what an artifact of this name was last made of; none if it was never built here.
    pub fn inputs(&self, name: &str) -> Option<String> {
        let content = self.store.read_document(&inputs(name)).ok().flatten()?;
        String::from_utf8(content).ok()
    }

    /// Remembers what an artifact of this name is made of.
    pub fn keep_inputs(&self, name: &str, lines: &str) {
        // Without it, nobody can be told what changed.
        let _ = self
            .store
            .output
            .write(inputs(name).as_str().into(), lines.as_bytes());
    }

    /// Notes that a record was used: records are collected by the time of their last use.
    fn touch(&self, relative: &str) {
        let file = OpenOptions::new()
            .append(true)
            .open(self.store.path(relative));
        // Where that cannot be noted, the record is collected earlier, and its image built again.
        let _ = file.and_then(|file| file.set_modified(std::time::SystemTime::now()));
    }

    fn staging(&self) -> String {
        format!("portolan/staging/{}", self.name)
    }
}

/// Where the digests of a scan lie; names may be anything.
fn memo(name: &str) -> String {
    format!("portolan/memo/{}", Digest::of(name.as_bytes()).hex())
}

/// Where the lines lie that say what an artifact was made of.
fn inputs(name: &str) -> String {
    format!("portolan/inputs/{}", Digest::of(name.as_bytes()).hex())
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next collection.
        let _ = std::fs::remove_dir_all(self.store.path(&self.staging()));
        let _ = std::fs::remove_file(&self.path);
    }
}

impl BlobSource for Run<'_> {
    fn open(&self, digest: &Digest) -> io::Result<Box<dyn Read + '_>> {
        self.hold(digest).map_err(io::Error::other)?;
        self.store.open(digest)
    }
}

impl BlobSink for Run<'_> {
    fn begin(&self) -> io::Result<Box<dyn BlobWriter + '_>> {
        let staging = self.staging();
        let staged = self.store.output.stage(staging.as_str().into());
        Ok(Box::new(Writer {
            run: self,
            staged: staged.map_err(plain)?,
        }))
    }
}

/// A blob on its way.
struct Writer<'a> {
    run: &'a Run<'a>,
    staged: Staged<'a>,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.staged.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for Writer<'_> {
    fn commit(self: Box<Self>, digest: &Digest) -> io::Result<()> {
        let _lock = self.run.store.use_lock().map_err(io::Error::other)?;
        // The same content under the same name: nothing to do.
        if self.run.hold_locked(digest).map_err(io::Error::other)? {
            return Ok(());
        }
        self.staged
            .commit(blob(digest).as_str().into())
            .map_err(plain)?;
        Ok(())
    }
}

/// The error of the operating system in an error of writing, so that a full disk is still seen as one.
fn plain(error: WriteError) -> io::Error {
    match error {
        WriteError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

impl LayerCache for Run<'_> {
    fn get(&self, key: &Digest) -> Option<Layer> {
        let path = record("layers", key);
        let content = self.store.read_document(&path).ok()??;
        let record: LayerRecord = serde_json::from_slice(&content).ok()?;
        let layer = record.layer()?;
        if !self.hold(&layer.blob).ok()? {
            return None;
        }
        self.touch(&path);
        Some(layer)
    }

    fn put(&self, key: &Digest, layer: &Layer) {
        // Without the record the layer is written again.
        let _ = self.store.use_lock().and_then(|_lock| {
            let record_of = LayerRecord::new(layer);
            self.store.write_json(&record("layers", key), &record_of)
        });
    }
}

impl LayerFilesCache for Run<'_> {
    fn get(&self, diff_id: &Digest) -> Option<LayerFiles> {
        let path = record("files", diff_id);
        let content = self.store.read_document(&path).ok()??;
        self.touch(&path);
        LayerFiles::from_bytes(&content)
    }

    fn put(&self, diff_id: &Digest, files: &LayerFiles) {
        let path = record("files", diff_id);
        let _ = self.store.use_lock().and_then(|_lock| {
            let content = files.to_bytes();
            Ok(self.store.output.write(path.as_str().into(), &content)?)
        });
    }
}
