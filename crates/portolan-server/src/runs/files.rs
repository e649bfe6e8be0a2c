//! Files of books on the server: named by their digests, in parts, kept as long as a run may need them.
//!
//! A file is there when its head is: it is written last, and only if the digest is right. Every new run touches the heads of
//! its files, so that the sweep, which removes what no run names, leaves them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::{Digest, Hasher};
use portolan_fleet::MAX_FILE_BYTES;
use portolan_modules::{BookFileError, BookFiles};
use portolan_store::{Compare, Revision, Span, Store, StoreError, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::keys;
use crate::error::ApiError;
use crate::server::{ApiServer, Target};

/// Bytes of a part.
pub(super) const PART_BYTES: usize = 256 << 10;

/// The most files of a book.
pub(super) const MAX_FILES: usize = 2_000;

/// A file of a book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileHead {
    parts: u32,
    bytes: u64,
}

/// The files of a namespace.
#[derive(Clone)]
pub(super) struct FileShelf {
    pub(super) store: Store,
    pub(super) namespace: String,
}

/// A part of a file that somebody sends.
pub(crate) struct SentPart {
    digest: String,
    part: u32,
    parts: u32,
    content: Vec<u8>,
}

/// What somebody asks of the files of a namespace.
pub(crate) enum FileQuestion {
    /// Which of these are not here?
    Missing(Vec<String>),
    /// Take this.
    Part(SentPart),
}

impl FileQuestion {
    /// Reads the body of a request.
    pub(crate) fn read(body: &Value) -> Result<Self, ApiError> {
        let wrong = |key: &str| ApiError::bad_request(format!("`{key}` is missing or wrong"));
        if let Some(digests) = body.get("missing") {
            let digests = digests.as_array().ok_or_else(|| wrong("missing"))?;
            let digests = digests.iter().map(|digest| {
                let digest = digest.as_str().filter(|digest| is_digest(digest));
                digest.map(str::to_owned).ok_or_else(|| wrong("missing"))
            });
            let digests: Vec<String> = digests.collect::<Result<_, _>>()?;
            return match digests.len() {
                0..=MAX_FILES => Ok(Self::Missing(digests)),
                _ => Err(ApiError::bad_request(format!(
                    "a book has at most {MAX_FILES} files"
                ))),
            };
        }
        let number = |key: &str| {
            let number = body.get(key).and_then(Value::as_u64);
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| wrong(key))
        };
        let text = |key: &str| body.get(key).and_then(Value::as_str);
        let digest = text("digest").filter(|digest| is_digest(digest));
        let content = text("content").and_then(|content| STANDARD.decode(content).ok());
        let part = SentPart {
            digest: digest.ok_or_else(|| wrong("digest"))?.to_owned(),
            part: number("part")?,
            parts: number("parts")?,
            content: content.ok_or_else(|| wrong("content"))?,
        };
        let is_last = part.part + 1 == part.parts;
        let is_sized =
            part.content.len() == PART_BYTES || is_last && part.content.len() <= PART_BYTES;
        let most = MAX_FILE_BYTES / PART_BYTES as u64;
        if part.part >= part.parts || u64::from(part.parts) > most || !is_sized {
            let message = format!(
                "a file comes in parts of {PART_BYTES} bytes, at most {most}; the last may be smaller"
            );
            return Err(ApiError::bad_request(message));
        }
        Ok(Self::Part(part))
    }
}

impl FileShelf {
    /// Answers a request.
    pub(super) async fn answer(&self, question: FileQuestion) -> Result<Value, ApiError> {
        match question {
            FileQuestion::Missing(digests) => {
                let mut missing = Vec::new();
                for digest in digests {
                    if self.head(&digest).await?.is_none() {
                        missing.push(digest);
                    }
                }
                Ok(json!({"missing": missing}))
            }
            FileQuestion::Part(part) => {
                let is_there = self.take(part).await?;
                Ok(json!({"complete": is_there}))
            }
        }
    }

    async fn head(&self, digest: &str) -> Result<Option<(FileHead, Revision)>, StoreError> {
        let key = keys::file_head(&self.namespace, digest);
        let found = self.store.get(key).await?;
        Ok(found.and_then(|record| {
            let head = serde_json::from_slice(&record.value).ok()?;
            Some((head, record.mod_revision))
        }))
    }

    async fn put(&self, key: String, value: Vec<u8>) -> Result<(), ApiError> {
        // Somebody else may write the same bytes at the same time.
        for _ in 0..8 {
            let seen = self.store.get(key.clone()).await?;
            let seen = seen.map_or_else(Default::default, |record| record.mod_revision);
            let put = Transaction::new()
                .when(Compare::unchanged(key.clone(), seen))
                .put(key.clone(), value.clone());
            if self.store.commit(put).await?.succeeded {
                return Ok(());
            }
        }
        Err(ApiError::unavailable(
            "a file of the book changes all the time",
        ))
    }

    /// Keeps a part; with the last one, the file is there if its digest is right.
    async fn take(&self, part: SentPart) -> Result<bool, ApiError> {
        let key = keys::file_part(&self.namespace, &part.digest, part.part);
        self.put(key, part.content).await?;
        if part.part + 1 < part.parts {
            return Ok(false);
        }
        let mut hasher = Hasher::default();
        let mut bytes = 0;
        for number in 0..part.parts {
            let content = self.part(&part.digest, number).await?;
            let content = content.ok_or_else(|| {
                ApiError::bad_request(format!("part {number} of the file is missing"))
            })?;
            bytes += content.len() as u64;
            hasher.update(&content);
        }
        if hasher.finish().hex() != part.digest {
            return Err(ApiError::bad_request("the file has another digest"));
        }
        let head = FileHead {
            parts: part.parts,
            bytes,
        };
        self.put_head(&part.digest, &head).await?;
        Ok(true)
    }

    async fn put_head(&self, digest: &str, head: &FileHead) -> Result<(), ApiError> {
        let value = serde_json::to_vec(head).unwrap_or_default();
        let key = keys::file_head(&self.namespace, digest);
        self.put(key, value).await
    }

    /// Keeps a file whole; gives its digest.
    pub(super) async fn keep(&self, content: &[u8]) -> Result<String, ApiError> {
        let digest = Digest::of(content).hex();
        if self.head(&digest).await?.is_some() {
            return Ok(digest);
        }
        let pieces: Vec<&[u8]> = if content.is_empty() {
            vec![content]
        } else {
            content.chunks(PART_BYTES).collect()
        };
        let parts = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        for (part, piece) in (0u32..).zip(pieces) {
            let key = keys::file_part(&self.namespace, &digest, part);
            self.put(key, piece.to_vec()).await?;
        }
        let bytes = content.len() as u64;
        self.put_head(&digest, &FileHead { parts, bytes }).await?;
        Ok(digest)
    }

    /// Says that a new run needs these files.
    pub(super) async fn touch<'d>(
        &self,
        files: impl IntoIterator<Item = (&'d String, &'d String)>,
    ) -> Result<(), ApiError> {
        for (path, digest) in files {
            let head = if is_digest(digest) {
                self.head(digest).await?
            } else {
                None
            };
            let Some((head, _)) = head else {
                let error = ApiError::bad_request(format!("the server does not have `{path}`"));
                return Err(error.hint("send its parts before the run"));
            };
            self.put_head(digest, &head).await?;
        }
        Ok(())
    }

    async fn part(&self, digest: &str, part: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let key = keys::file_part(&self.namespace, digest, part);
        let found = self.store.get(key).await?;
        Ok(found.map(|record| record.value.to_vec()))
    }

    /// A part of a file that is there, and how many parts it has.
    pub(super) async fn read_part(
        &self,
        digest: &str,
        part: u32,
    ) -> Result<Option<(u32, Vec<u8>)>, StoreError> {
        let Some((head, _)) = self.head(digest).await? else {
            return Ok(None);
        };
        let content = self.part(digest, part).await?;
        Ok(content.map(|content| (head.parts, content)))
    }

    async fn read_all(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some((head, _)) = self.head(digest).await? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for part in 0..head.parts {
            match self.part(digest, part).await? {
                Some(content) => all.extend(content),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }
}

impl ApiServer {
    /// Takes files of books that come with a request. The caller may run the book.
    pub(crate) async fn answer_files(
        &self,
        target: &Target,
        question: FileQuestion,
    ) -> Result<Value, ApiError> {
        let shelf = FileShelf {
            store: self.objects.store.clone(),
            namespace: target.namespace.clone().unwrap_or_default(),
        };
        shelf.answer(question).await
    }
}

/// The files of one book, for the compiler; used outside of asynchronous code.
pub(super) struct ShelvedFiles {
    pub(super) shelf: FileShelf,
    /// Digests by path.
    pub(super) files: BTreeMap<Utf8PathBuf, String>,
    pub(super) handle: Handle,
}

impl BookFiles for ShelvedFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let digest = self.files.get(path);
        let digest = digest.ok_or_else(|| BookFileError::Missing(path.to_owned()))?;
        let read = self.handle.block_on(self.shelf.read_all(digest));
        let content = read.map_err(|error| {
            BookFileError::Unreadable(path.to_owned(), std::io::Error::other(error))
        })?;
        let content = content.ok_or_else(|| BookFileError::Missing(path.to_owned()))?;
        Ok(content.into())
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let below = self.files.keys();
        let below = below.filter_map(|path| path.strip_prefix(directory).ok());
        let below: Vec<Utf8PathBuf> = below.map(Utf8Path::to_owned).collect();
        if below.is_empty() {
            return Err(BookFileError::Missing(directory.to_owned()));
        }
        Ok(below)
    }
}

/// All files that are there: namespace, digest, and the revision of the head.
pub(super) async fn all_files(
    store: &Store,
) -> Result<BTreeMap<(String, String), Revision>, StoreError> {
    let mut found = BTreeMap::new();
    store
        .scan(&Span::prefix(keys::files()), None, |record| {
            if let Some(file) = keys::file_of(&record.key) {
                found.insert(file, record.mod_revision);
            }
            Ok(())
        })
        .await?;
    Ok(found)
}

/// Removes a file that no run needs, unless somebody touched it meanwhile.
pub(super) async fn remove_file(
    store: &Store,
    (namespace, digest): &(String, String),
    seen: Revision,
) -> Result<(), StoreError> {
    let mut parts = BTreeSet::new();
    let head = keys::file_head(namespace, digest);
    let span = Span::prefix(keys::file(namespace, digest));
    store
        .scan(&span, None, |record| {
            if record.key.as_ref() != head.as_bytes() {
                parts.insert((record.key, record.mod_revision));
            }
            Ok(())
        })
        .await?;
    if !store
        .commit(Transaction::remove(head, seen))
        .await?
        .succeeded
    {
        return Ok(());
    }
    for (key, revision) in parts {
        // A part that somebody sends again stays.
        store.commit(Transaction::remove(key, revision)).await?;
    }
    Ok(())
}

fn is_digest(text: &str) -> bool {
    let is_hex = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
    text.len() == 64 && text.bytes().all(is_hex)
}
