//! The machine that a step works on: its root directory, its programs, and the files that came with the book.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use tokio_util::sync::CancellationToken;

use crate::ahead::Ahead;
use crate::process::Processes;

/// The machine that a step works on.
#[derive(Clone)]
pub struct Host {
    /// The directory that stands for `/`; `/` itself unless the agent has another root.
    pub root: Utf8PathBuf,
    /// Starts programs.
    pub processes: Arc<dyn Processes>,
    /// Files of the book's own commit.
    pub book_files: Arc<dyn BookFiles>,
    /// Who programs run as; the agent's own user without one.
    pub account: Option<Account>,
    /// The TaskBook, as markers in files name it.
    pub book: String,
    /// Ended when the step should end: cancelled, or out of time.
    pub stop: CancellationToken,
}

/// A user, and a group other than its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name.
    pub user: String,
    /// The group's name.
    pub group: Option<String>,
}

/// Files of the commit that a book comes from: templates, sources and scripts.
pub trait BookFiles: Send + Sync {
    /// The content of a file; paths are relative to the book's file.
    ///
    /// # Errors
    /// What is wrong, as a sentence without a full stop: it is missing, too large, or outside the repository.
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, String>;

    /// The paths of all files below a directory, relative to it, sorted.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, String>;
}

/// The host as a step sees it while it plans: what is there now, and what earlier steps of a check will change.
pub struct View<'a> {
    /// The host.
    pub host: &'a Host,
    /// What earlier steps will have changed; empty when steps are applied.
    pub ahead: Ahead,
}

impl Host {
    /// Whether the host has another root directory than the machine's.
    pub fn is_rooted(&self) -> bool {
        self.root != "/"
    }
}

impl<'a> View<'a> {
    /// The host as it is.
    pub fn of(host: &'a Host) -> Self {
        Self {
            host,
            ahead: Ahead::default(),
        }
    }
}
