//! The files of a commit, in a directory of their own.

use std::io;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::git_facts::GitFacts;

/// The files of a commit. They are there as long as this is.
#[derive(Debug)]
pub struct CommitFiles {
    tree: Utf8PathBuf,
    facts: GitFacts,
    _directory: TempDir,
}

/// Why the files of a commit cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// There is no place for them.
    #[error("cannot make a temporary directory")]
    Directory(#[source] io::Error),
    /// The place for them has a name that cannot be used.
    #[error("the directory for temporary files is not UTF-8")]
    NotUtf8,
    /// git said no.
    #[error("cannot read the commit: {0}")]
    Git(String),
}

impl CommitFiles {
    /// Writes the files of a commit as a clone would have them: line ends and filters that git is told of count. `top` is the
    /// top directory of the work tree, which stays as it is.
    pub fn check_out(top: &Utf8Path, commit: &str) -> Result<Self, CommitError> {
        let directory = tempfile::tempdir().map_err(CommitError::Directory)?;
        let path = Utf8Path::from_path(directory.path()).and_then(|it| it.canonicalize_utf8().ok());
        let path = path.ok_or(CommitError::NotUtf8)?;
        let tree = path.join("tree");
        let index = path.join("index");
        git(top, &index, &["read-tree", commit])?;
        let prefix = format!("--prefix={tree}/");
        git(top, &index, &["checkout-index", "--all", &prefix])?;
        let committed = git(top, &index, &["show", "-s", "--format=%ct", commit])?;
        Ok(Self {
            tree,
            facts: GitFacts {
                address: None,
                revision: commit.to_owned(),
                committed: committed.trim().parse().unwrap_or(0),
                is_clean: true,
            },
            _directory: directory,
        })
    }

    /// The directory of the files.
    pub fn tree(&self) -> &Utf8Path {
        &self.tree
    }

    /// What git knows of the commit.
    pub fn facts(&self) -> &GitFacts {
        &self.facts
    }
}

/// Asks git, with an index of its own: that of the repository is not touched.
fn git(top: &Utf8Path, index: &Utf8Path, args: &[&str]) -> Result<String, CommitError> {
    let answer = Command::new("git")
        .args(args)
        .current_dir(top)
        .env("GIT_INDEX_FILE", index)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| CommitError::Git(format!("`git` cannot be started: {error}")))?;
    if !answer.status.success() {
        let words = String::from_utf8_lossy(&answer.stderr);
        return Err(CommitError::Git(words.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}
