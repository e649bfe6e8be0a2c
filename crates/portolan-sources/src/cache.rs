//! The content-addressed cache: files named by the digest of their content.
//!
//! ```text
//!   CACHE/blobs/ab/abcdef…   contents, by SHA-256
//!   CACHE/pins/…             what a request was last resolved to
//!   CACHE/git/….git          mirrors of git remotes
//!   CACHE/incoming/…         downloads under way
//! ```
//!
//! A download becomes an entry by a rename after its digest is known and its bytes are on disk, so an entry is
//! complete or absent, also after a crash. Two processes that fetch the same content write the same entry. Entries
//! are checked when they are read; a damaged one is removed and fetched again. A process holds a lock on the file
//! that it downloads. If it dies, the next process that downloads something removes the file.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::sync::{Arc, Once};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_oci::{Digest, Hasher};
use tempfile::NamedTempFile;

use crate::{Pin, SourceError};

/// A cache directory.
#[derive(Debug, Clone)]
pub struct Cache {
    root: Utf8PathBuf,
    /// Done when leftovers of earlier runs were removed.
    swept: Arc<Once>,
}

/// How old a download without an owner must be to count as left over: its owner may not have locked it yet.
const LEFTOVER_AGE: Duration = Duration::from_mins(1);

/// How exactly the last use of an entry is written down.
const USE_PRECISION: Duration = Duration::from_mins(10);

/// A content on its way into the cache; dropped before [`Incoming::finish`], it leaves nothing.
#[derive(Debug)]
pub(crate) struct Incoming {
    cache: Cache,
    file: NamedTempFile,
    hasher: Hasher,
}

// === impl Cache ===

impl Cache {
    /// Names a cache; directories are made when something is written.
    pub fn new(root: impl Into<Utf8PathBuf>) -> Self {
        Self {
            root: root.into(),
            swept: Arc::new(Once::new()),
        }
    }

    /// The cache's directory.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Whether a content is here.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.blob_path(digest).is_file()
    }

    /// Reads a content and checks it.
    pub fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, SourceError> {
        let path = self.blob_path(digest);
        let Some(content) = read(&path)? else {
            return Ok(None);
        };
        if Digest::of(&content) == *digest {
            note_use(&path);
            return Ok(Some(content));
        }
        tracing::warn!(%path, "removing a broken cache entry");
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(cache_error(path, source)),
            _ => Ok(None),
        }
    }

    /// Reads a content without counting that as a use.
    pub(crate) fn peek(&self, digest: &Digest) -> Option<Vec<u8>> {
        read(&self.blob_path(digest)).ok()?
    }

    /// Puts a content into the cache.
    pub fn put(&self, content: &[u8]) -> Result<Digest, SourceError> {
        let mut incoming = self.incoming()?;
        incoming
            .write(content)
            .map_err(|source| cache_error(self.root.clone(), source))?;
        incoming.finish()
    }

    /// Begins a download.
    pub(crate) fn incoming(&self) -> Result<Incoming, SourceError> {
        let directory = self.root.join("incoming");
        let begin = || {
            make_directory(&directory)?;
            self.swept.call_once(|| remove_leftovers(&directory));
            let file = NamedTempFile::new_in(&directory)?;
            // Some file systems have no locks; what is left over there is found by nobody.
            let _ = file.as_file().try_lock();
            Ok(file)
        };
        let file = begin();
        Ok(Incoming {
            cache: self.clone(),
            file: file.map_err(|source| cache_error(directory, source))?,
            hasher: Hasher::default(),
        })
    }

    /// What a request was last resolved to.
    pub(crate) fn remembered(&self, key: &str) -> Option<Pin> {
        let text = read(&self.pin_path(key)).ok()??;
        serde_json::from_slice(&text).ok()
    }

    /// Remembers what a request was resolved to.
    pub(crate) fn remember(&self, key: &str, pin: &Pin) -> Result<(), SourceError> {
        let text = serde_json::to_vec(pin).expect("strings become JSON");
        let mut incoming = self.incoming()?;
        incoming
            .write(&text)
            .map_err(|source| cache_error(self.root.clone(), source))?;
        incoming.place(&self.pin_path(key))
    }

    /// The directory of a git mirror.
    pub(crate) fn git_directory(&self, url: &str) -> Utf8PathBuf {
        let name = Digest::of(url.as_bytes());
        self.root.join(format!("git/{}.git", name.hex()))
    }

    fn blob_path(&self, digest: &Digest) -> Utf8PathBuf {
        let hex = digest.hex();
        let (shelf, _) = hex.split_at(2);
        self.root.join("blobs").join(shelf).join(&hex)
    }

    fn pin_path(&self, key: &str) -> Utf8PathBuf {
        let name = Digest::of(key.as_bytes());
        self.root.join("pins").join(name.hex())
    }
}

// === impl Incoming ===

impl Incoming {
    pub(crate) fn write(&mut self, piece: &[u8]) -> std::io::Result<()> {
        self.hasher.update(piece);
        self.file.write_all(piece)
    }

    /// Makes the download an entry under its digest.
    pub(crate) fn finish(self) -> Result<Digest, SourceError> {
        let digest = self.hasher.clone().finish();
        let path = self.cache.blob_path(&digest);
        if !self.cache.contains(&digest) {
            self.place(&path)?;
        }
        Ok(digest)
    }

    /// Makes the download an entry, but only under the digest it must have.
    pub(crate) fn finish_as(self, expected: &Digest) -> Result<Result<(), Digest>, SourceError> {
        let actual = self.hasher.clone().finish();
        if actual != *expected {
            return Ok(Err(actual));
        }
        self.finish().map(|_| Ok(()))
    }

    fn place(self, path: &Utf8Path) -> Result<(), SourceError> {
        let place = || {
            make_directory(path.parent().unwrap_or(path))?;
            self.file.as_file().sync_all()?;
            self.file.persist(path)?;
            Ok(())
        };
        place().map_err(|source| cache_error(path.to_owned(), source))
    }
}

/// Removes downloads whose process has gone.
fn remove_leftovers(directory: &Utf8Path) {
    let now = SystemTime::now();
    let entries = directory.read_dir_utf8().into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        let Ok(file) = File::open(path) else { continue };
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let age = modified.map_or(Duration::ZERO, |then| {
            now.duration_since(then).unwrap_or_default()
        });
        if age >= LEFTOVER_AGE && file.try_lock().is_ok() {
            tracing::info!(%path, "removing an interrupted download");
            // Another process may have been quicker.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes down that an entry was used: the time it was changed, which nothing else changes.
pub(crate) fn note_use(path: &Utf8Path) {
    let now = SystemTime::now();
    let Ok(file) = File::open(path) else { return };
    let known = file.metadata().and_then(|metadata| metadata.modified());
    let is_recent = known.is_ok_and(|then| {
        now.duration_since(then)
            .is_ok_and(|age| age < USE_PRECISION)
    });
    if !is_recent {
        // A cache that cannot be written still gives what it has.
        let _ = file.set_modified(now);
    }
}

fn read(path: &Utf8Path) -> Result<Option<Vec<u8>>, SourceError> {
    match std::fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(cache_error(path.to_owned(), source)),
    }
}

fn make_directory(path: &Utf8Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path)
}

pub(crate) fn cache_error(path: Utf8PathBuf, source: std::io::Error) -> SourceError {
    SourceError::Cache { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("cache");
        (directory, Cache::new(path))
    }

    fn files(cache: &Cache) -> usize {
        let blobs = walk(&cache.root().join("blobs"));
        blobs + walk(&cache.root().join("incoming"))
    }

    fn walk(directory: &Utf8Path) -> usize {
        let Ok(entries) = directory.read_dir_utf8() else {
            return 0;
        };
        let entries = entries.map(|entry| entry.unwrap().path().to_owned());
        entries
            .map(|path| if path.is_dir() { walk(&path) } else { 1 })
            .sum()
    }

    #[test]
    fn what_is_put_is_got_back_by_its_digest() {
        let (_directory, cache) = cache();
        let digest = cache.put(b"content").unwrap();
        assert_eq!(cache.get(&digest).unwrap().unwrap(), b"content");
        assert_eq!(cache.get(&Digest::of(b"other")).unwrap(), None);
        cache.put(b"content").unwrap();
        assert_eq!(files(&cache), 1);
    }

    #[test]
    fn a_download_that_is_given_up_leaves_nothing() {
        let (_directory, cache) = cache();
        let mut incoming = cache.incoming().unwrap();
        incoming.write(b"half of").unwrap();
        drop(incoming);
        assert_eq!(files(&cache), 0);
    }

    #[test]
    fn a_download_with_another_digest_leaves_nothing() {
        let (_directory, cache) = cache();
        let mut incoming = cache.incoming().unwrap();
        incoming.write(b"evil").unwrap();
        let refused = incoming.finish_as(&Digest::of(b"good")).unwrap();
        assert_eq!(refused, Err(Digest::of(b"evil")));
        assert_eq!(files(&cache), 0);
    }

    #[test]
    fn an_entry_that_rotted_is_removed() {
        let (_directory, cache) = cache();
        let digest = cache.put(b"content").unwrap();
        std::fs::write(cache.blob_path(&digest), "rotten").unwrap();
        assert_eq!(cache.get(&digest).unwrap(), None);
        assert_eq!(files(&cache), 0);
    }

    /// Makes a file look as if it had been written some time ago.
    fn age(path: &Utf8Path, age: Duration) {
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn downloads_that_were_interrupted_are_removed_by_the_next_run() {
        let (_directory, cache) = cache();
        let mut under_way = cache.incoming().unwrap();
        under_way.write(b"half of").unwrap();
        age(
            Utf8Path::from_path(under_way.file.path()).unwrap(),
            Duration::from_hours(1),
        );
        let incoming = cache.root().join("incoming");
        std::fs::write(incoming.join("left-over"), "x").unwrap();
        age(&incoming.join("left-over"), Duration::from_hours(1));
        std::fs::write(incoming.join("just-begun"), "x").unwrap();
        Cache::new(cache.root()).put(b"next").unwrap();
        assert!(!incoming.join("left-over").exists());
        assert!(incoming.join("just-begun").exists());
        assert!(under_way.file.path().exists(), "its process still runs");
    }

    #[test]
    fn the_last_use_of_an_entry_is_written_down() {
        let (_directory, cache) = cache();
        let digest = cache.put(b"content").unwrap();
        let path = cache.blob_path(&digest);
        age(&path, Duration::from_hours(48));
        cache.get(&digest).unwrap().unwrap();
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert!(modified.elapsed().unwrap() < Duration::from_hours(1));
    }

    #[test]
    fn many_threads_put_the_same_content_at_once() {
        let (_directory, cache) = cache();
        let content = vec![7; 100_000];
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| cache.put(&content).unwrap());
            }
        });
        assert_eq!(files(&cache), 1);
    }
}
