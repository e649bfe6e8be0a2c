//! Repositories that books include from: fetched once, pinned to a commit, and read without a checkout.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Digest;
use portolan_git::{CommitId, FetchOptions, GitError, Mirror, Wanted};
use portolan_modules::{BookFileError, BookFiles, BookRepository};

use crate::tree_files::TreeFiles;

/// The most repositories that a book and what it includes may include from.
pub const MAX_REPOSITORIES: usize = 16;

/// How long one repository may take. Whoever lints a book waits for it.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The most bytes of one repository: what all files of a book may have.
const MAX_BYTES: u64 = 64 << 20;

/// How a machine fetches repositories that books include from.
pub trait IncludePolicy: Send + Sync {
    /// How an address is fetched from.
    ///
    /// # Errors
    /// When nothing may be fetched from it, with the reason.
    fn options(&self, url: &str) -> Result<FetchOptions, String>;
}

/// The files of a book, and those of repositories that it includes from.
pub struct GitIncludes {
    inner: Arc<dyn BookFiles>,
    /// The directory of mirrors.
    mirrors: Utf8PathBuf,
    policy: Box<dyn IncludePolicy>,
    /// By their directories.
    pinned: Mutex<BTreeMap<Utf8PathBuf, Arc<Pinned>>>,
}

struct Pinned {
    commit: String,
    files: TreeFiles,
}

impl GitIncludes {
    /// Adds repositories to the files of a book; their mirrors are kept below a directory.
    pub fn new(
        inner: Arc<dyn BookFiles>,
        mirrors: Utf8PathBuf,
        policy: impl IncludePolicy + 'static,
    ) -> Self {
        Self {
            inner,
            mirrors,
            policy: Box::new(policy),
            pinned: Mutex::default(),
        }
    }

    fn fetch(&self, source: &BookRepository) -> Result<Pinned, String> {
        let options = FetchOptions {
            timeout: TIMEOUT,
            max_bytes: MAX_BYTES,
            ..self.policy.options(&source.url)?
        };
        let digest = Digest::of(source.url.as_bytes()).hex();
        let directory = self.mirrors.join(digest.get(..32).unwrap_or(&digest));
        let mirror = Mirror::new(&directory, &source.url, options);
        let mirror = mirror.map_err(|error| with_causes(&error))?;
        let commit = fetch_ref(&mirror, &source.reference).map_err(|error| with_causes(&error))?;
        let tree = mirror
            .repository()
            .and_then(|repository| repository.tree(commit))
            .map_err(|error| with_causes(&error))?;
        Ok(Pinned {
            commit: commit.to_string(),
            files: TreeFiles::beside(Box::new(tree), Utf8Path::new("book")),
        })
    }

    fn found(&self, directory: &Utf8Path) -> Option<Arc<Pinned>> {
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        pinned.get(directory).cloned()
    }
}

impl BookFiles for GitIncludes {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let Some((directory, inside)) = BookRepository::split(path) else {
            return self.inner.read(path);
        };
        let missing = || BookFileError::Missing(path.to_owned());
        let pinned = self.found(&directory).ok_or_else(missing)?;
        if BookRepository::is_commit_file(&inside) {
            return Ok(pinned.commit.as_bytes().into());
        }
        pinned.files.read(&inside)
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let Some((repository, inside)) = BookRepository::split(directory) else {
            return self.inner.list(directory);
        };
        let missing = || BookFileError::Missing(directory.to_owned());
        let pinned = self.found(&repository).ok_or_else(missing)?;
        pinned.files.list(&inside)
    }

    fn pin(&self, source: &BookRepository) -> Result<String, BookFileError> {
        let directory = source.directory();
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pinned.get(&directory) {
            return Ok(known.commit.clone());
        }
        let failed = |why: String| BookFileError::NotFetched(source.url.clone(), why);
        if pinned.len() >= MAX_REPOSITORIES {
            let why = format!("a book includes from at most {MAX_REPOSITORIES} repositories");
            return Err(failed(why));
        }
        let fetched = self.fetch(source).map_err(failed)?;
        let commit = fetched.commit.clone();
        pinned.insert(directory, Arc::new(fetched));
        Ok(commit)
    }
}

/// The commit of a ref. A commit that was fetched before is not asked for again; a tag comes before a branch.
fn fetch_ref(mirror: &Mirror, reference: &str) -> Result<CommitId, GitError> {
    if let Ok(commit) = reference.parse::<CommitId>() {
        return if mirror.has(commit) {
            Ok(commit)
        } else {
            mirror.fetch(&Wanted::Commit(commit))
        };
    }
    if reference.starts_with("refs/") {
        return mirror.fetch(&Wanted::Name(reference.to_owned()));
    }
    match mirror.fetch(&Wanted::Tag(reference.to_owned())) {
        Err(GitError::UnknownRemoteRef { url, nearest, .. }) => {
            match mirror.fetch(&Wanted::Branch(reference.to_owned())) {
                Err(GitError::UnknownRemoteRef { .. }) => Err(GitError::UnknownRemoteRef {
                    url,
                    wanted: format!("tag or branch `{reference}`"),
                    nearest,
                }),
                fetched => fetched,
            }
        }
        fetched => fetched,
    }
}

/// An error and its causes in a line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
