//! The content-addressed cache: files named by the digest of what is in them.
//!
//! ```text
//!   CACHE/blobs/ab/abcdef…   contents, by SHA-256
//!   CACHE/pins/…             what a request was last resolved to
//!   CACHE/git/….git          mirrors of git remotes
//!   CACHE/incoming/…         downloads under way
//! ```
//!
//! A download becomes an entry by a rename after its digest is known and its bytes are on disk, so an entry is whole
//! or not there, whatever dies when. Two processes that fetch the same content write the same entry. Entries are
//! checked when they are read; one that rotted is removed and fetched again.

use std::io::{ErrorKind, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_oci::{Digest, Hasher};
use tempfile::NamedTempFile;

use crate::{Pin, SourceError};

/// A cache directory.
#[derive(Debug, Clone)]
pub struct Cache {
    root: Utf8PathBuf,
}

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
        Self { root: root.into() }
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
            return Ok(Some(content));
        }
        tracing::warn!(%path, "removing a broken cache entry");
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(cache_error(path, source)),
            _ => Ok(None),
        }
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
        let file = make_directory(&directory).and_then(|()| NamedTempFile::new_in(&directory));
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
        self.root.join("blobs").join(shelf).join(hex)
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
