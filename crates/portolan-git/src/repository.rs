//! A repository on disk: finding it, naming commits, comparing them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use gix::bstr::{BString, ByteSlice as _};

use crate::nearest::nearest;
use crate::work_tree::Child;
use crate::{Change, GitError, Tree};

/// A commit's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(crate) gix::ObjectId);

/// A repository, opened for reading; cheap to clone and shared between threads.
#[derive(Clone)]
pub struct Repository {
    inner: gix::ThreadSafeRepository,
    work_tree: Option<Utf8PathBuf>,
}

// === impl CommitId ===

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitId({})", self.0)
    }
}

impl FromStr for CommitId {
    type Err = GitError;

    fn from_str(hex: &str) -> Result<Self, GitError> {
        let id = gix::ObjectId::from_hex(hex.as_bytes());
        id.map(Self).map_err(|_| GitError::UnknownRevision {
            revision: hex.to_owned(),
            nearest: Vec::new(),
            shallow: false,
        })
    }
}

// === impl Repository ===

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.inner.refs.git_dir();
        f.debug_tuple("Repository").field(&directory).finish()
    }
}

impl Repository {
    /// Finds the repository that a directory lies in.
    pub fn discover(directory: &Utf8Path) -> Result<Self, GitError> {
        let found = gix::ThreadSafeRepository::discover_opts(
            directory,
            gix::discover::upwards::Options::default(),
            gix::sec::trust::Mapping {
                full: gix::open::Options::isolated(),
                reduced: gix::open::Options::isolated(),
            },
        );
        Self::new(found.map_err(|source| GitError::NotARepository {
            path: directory.to_owned(),
            source: Box::new(source),
        })?)
    }

    /// Opens a repository at its own directory, bare or with a work tree.
    pub fn open(directory: &Utf8Path) -> Result<Self, GitError> {
        let opened = gix::open::Options::isolated().open(directory.as_std_path());
        Self::new(opened.map_err(|source| GitError::NotARepository {
            path: directory.to_owned(),
            source: Box::new(source),
        })?)
    }

    fn new(inner: gix::ThreadSafeRepository) -> Result<Self, GitError> {
        let work_tree = inner
            .to_thread_local()
            .workdir()
            .map(utf8_path)
            .transpose()?;
        Ok(Self { inner, work_tree })
    }

    /// The root of the work tree; bare repositories have none.
    pub fn work_tree(&self) -> Option<&Utf8Path> {
        self.work_tree.as_deref()
    }

    /// The addresses of its remotes, as they are written in its configuration.
    pub fn remote_urls(&self) -> Vec<String> {
        let repository = self.inner.to_thread_local();
        let config = repository.config_snapshot();
        let sections = config.sections_by_name("remote").into_iter().flatten();
        let urls = sections.flat_map(|section| section.values("url"));
        urls.map(|url| url.to_string()).collect()
    }

    /// Finds the commit that a branch, tag, id or expression (`HEAD~2`, `main@{1}`) leads to.
    ///
    /// A name that only exists at the remote `origin` is found there: in CI the base branch is often not checked out.
    pub fn resolve(&self, revision: &str) -> Result<CommitId, GitError> {
        let repository = self.local();
        let found = repository
            .rev_parse_single(revision)
            .or_else(|_| repository.rev_parse_single(format!("origin/{revision}").as_str()));
        let Ok(id) = found else {
            return Err(self.unknown(revision));
        };
        let commit = id.object().and_then(gix::Object::peel_to_commit);
        commit
            .map(|commit| CommitId(commit.id))
            .map_err(|source| GitError::NotACommit {
                revision: revision.to_owned(),
                source: Box::new(source),
            })
    }

    /// The newest commit that both have in their history.
    pub fn merge_base(&self, one: CommitId, two: CommitId) -> Result<CommitId, GitError> {
        let repository = self.local();
        let base = repository.merge_base(one.0, two.0);
        let base = base.map_err(|source| self.read_error("the history", source))?;
        base.map(|id| CommitId(id.detach()))
            .ok_or_else(|| GitError::NoMergeBase {
                one: one.to_string(),
                two: two.to_string(),
                shallow: self.is_shallow(),
            })
    }

    /// The files that differ between two commits, sorted by path.
    pub fn changed_paths(&self, old: CommitId, new: CommitId) -> Result<Vec<Change>, GitError> {
        let repository = self.local();
        let tree = |commit: CommitId| {
            let tree = repository
                .find_commit(commit.0)
                .and_then(|found| found.tree());
            tree.map_err(|source| self.read_error(&format!("the commit `{commit}`"), source))
        };
        let mut options = gix::diff::Options::default();
        options.track_path().track_rewrites(None);
        let changes = repository
            .diff_tree_to_tree(Some(&tree(old)?), Some(&tree(new)?), options)
            .map_err(|source| self.read_error("the difference", source))?;
        let changes = changes.iter().map(Change::from_gix);
        let mut changes: Vec<Change> = changes
            .filter_map(Result::transpose)
            .collect::<Result<_, _>>()?;
        changes.sort();
        Ok(changes)
    }

    /// The files of a commit, read from the object database.
    pub fn tree(&self, commit: CommitId) -> Result<Tree, GitError> {
        let repository = self.local();
        let found = repository
            .find_commit(commit.0)
            .and_then(|commit| commit.tree_id().map(gix::Id::detach));
        let root =
            found.map_err(|source| self.read_error(&format!("the commit `{commit}`"), source))?;
        Ok(Tree::new(self.inner.clone(), root))
    }

    /// The names in a tree object; none where there is no tree.
    pub(crate) fn children(
        &self,
        tree: Option<gix::ObjectId>,
    ) -> Result<BTreeMap<BString, Child>, GitError> {
        let Some(id) = tree else {
            return Ok(BTreeMap::new());
        };
        let repository = self.local();
        let failed = |source| self.read_error(&format!("the tree `{id}`"), source);
        let tree = repository.find_tree(id).map_err(failed)?;
        let decoded = tree.decode().map_err(failed)?;
        let entries = decoded.entries.iter();
        Ok(entries
            .map(|entry| {
                let child = Child::new(entry.mode, entry.oid.to_owned());
                (entry.filename.to_owned(), child)
            })
            .collect())
    }

    /// Whether the clone lacks history, as CI's usually do.
    pub fn is_shallow(&self) -> bool {
        self.local().is_shallow().unwrap_or(false)
    }

    pub(crate) fn local(&self) -> gix::Repository {
        self.inner.to_thread_local()
    }

    fn unknown(&self, revision: &str) -> GitError {
        GitError::UnknownRevision {
            revision: revision.to_owned(),
            nearest: nearest(revision, self.names()),
            shallow: self.is_shallow(),
        }
    }

    /// The short names of all refs.
    fn names(&self) -> Vec<String> {
        let repository = self.local();
        let Ok(references) = repository.references() else {
            return Vec::new();
        };
        let Ok(all) = references.all() else {
            return Vec::new();
        };
        all.filter_map(Result::ok)
            .map(|reference| reference.name().shorten().to_str_lossy().into_owned())
            .collect()
    }

    fn read_error(&self, what: &str, source: gix::Error) -> GitError {
        GitError::Read {
            what: what.to_owned(),
            shallow: self.is_shallow(),
            source: Box::new(source),
        }
    }
}

fn utf8_path(path: &Path) -> Result<Utf8PathBuf, GitError> {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Utf8PathBuf::from_path_buf(absolute)
        .map_err(|path| GitError::PathNotUtf8(path.display().to_string()))
}
