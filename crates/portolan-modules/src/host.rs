//! The machine that a step works on: its root directory, its programs, and the files that came with the book.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio_util::sync::CancellationToken;

use crate::book_repository::BookRepository;
use crate::boot::BootMode;
use crate::local_processes::LocalProcesses;
use crate::process::{Command, Processes, Program};
use crate::root::Root;
use crate::shares::{NoShares, Shares};

/// The machine that a step works on.
#[derive(Clone)]
pub struct Host {
    /// The directory that stands for `/`; `/` itself unless the agent has another root.
    pub root: Arc<Root>,
    /// Whether programs are confined to another root directory; they only start there otherwise.
    pub is_confined: bool,
    /// Starts programs.
    pub processes: Arc<dyn Processes>,
    /// Files of the book's own commit.
    pub book_files: Arc<dyn BookFiles>,
    /// What nodes give to each other.
    pub shares: Arc<dyn Shares>,
    /// Who programs run as; the agent's own user without one.
    pub account: Option<Account>,
    /// The name of the book, as markers in files name it.
    pub book: String,
    /// The name of the step, as markers in files name it.
    pub step: String,
    /// How long the step may take; each program gets as long.
    pub timeout: Duration,
    /// What a `reboot` step does.
    pub boot: BootMode,
    /// Ended when the step should end: cancelled, or out of time.
    pub stop: CancellationToken,
}

/// How long a step may take unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

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
    /// When it is missing, too large, or outside the repository.
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError>;

    /// The paths of all files below a directory, relative to it, sorted.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError>;

    /// The commit that a repository is pinned to. Its files can be read below [`BookRepository::directory`] then. Files that were
    /// recorded know the commit of that time; nothing is fetched for them.
    ///
    /// # Errors
    /// When the repository or the ref cannot be had.
    fn pin(&self, source: &BookRepository) -> Result<String, BookFileError> {
        let Ok(commit) = self.read(&source.commit_file()) else {
            return Err(BookFileError::NotPinned(source.url.clone()));
        };
        Ok(String::from_utf8_lossy(&commit).into_owned())
    }
}

/// Why a file of a book cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BookFileError {
    /// It is not there.
    #[error("there is no file `{0}` beside the book")]
    Missing(Utf8PathBuf),
    /// The book came without any files.
    #[error("the book came without `{0}`")]
    NoFiles(Utf8PathBuf),
    /// It is a directory, a pipe or something else.
    #[error("`{0}` is not a file")]
    NotAFile(Utf8PathBuf),
    /// It is larger than so many bytes.
    #[error("`{0}` is larger than {1} bytes")]
    TooLarge(Utf8PathBuf, u64),
    /// It is named from the root of the machine.
    #[error("`{0}` must be relative to the book, inside its repository")]
    Absolute(Utf8PathBuf),
    /// It lies elsewhere, or a link leads there.
    #[error("`{0}` is outside the repository of the book")]
    Outside(Utf8PathBuf),
    /// The book came without the files of a repository that it includes from.
    #[error("the book came without what it includes from `{0}`")]
    NotPinned(String),
    /// A repository cannot be fetched, for this reason.
    #[error("cannot include from `{0}`: {1}")]
    NotFetched(String, String),
    /// The system says why.
    #[error("cannot read `{0}`: {1}")]
    Unreadable(Utf8PathBuf, std::io::Error),
}

/// A book that came without files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBookFiles;

impl Host {
    /// This machine, or a directory of it, with programs started as children and no files of a book.
    pub fn local(root: Arc<Root>) -> Self {
        Self {
            processes: Arc::new(LocalProcesses::new(Arc::clone(&root))),
            root,
            is_confined: false,
            book_files: Arc::new(NoBookFiles),
            shares: Arc::new(NoShares),
            account: None,
            book: String::new(),
            step: String::new(),
            timeout: DEFAULT_TIMEOUT,
            boot: BootMode::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Whether the host has another root directory than the machine's.
    pub fn is_rooted(&self) -> bool {
        !self.root.is_machine()
    }

    /// A program as steps of this host start it: below another root directory it starts there and gets
    /// `PORTOLAN_ROOT`, and if programs are confined, that directory is its root.
    pub fn command(&self, program: Program) -> Command {
        let mut environment = BTreeMap::new();
        if self.is_rooted() {
            let shown = if self.is_confined {
                "/"
            } else {
                self.root.path().as_str()
            };
            environment.insert("PORTOLAN_ROOT".to_owned(), shown.to_owned());
        }
        let chroot = (self.is_rooted() && self.is_confined).then(|| self.root.path().to_owned());
        Command {
            program,
            directory: self.program_path("/".into()),
            environment,
            input: Vec::new(),
            account: self.account.clone(),
            chroot,
            timeout: self.timeout,
            leaves_nothing: false,
        }
    }

    /// Where a path below the root is for programs of [`command`](Self::command).
    pub fn program_path(&self, path: &Utf8Path) -> Utf8PathBuf {
        if self.is_confined {
            path.to_owned()
        } else {
            self.root.machine_path(path)
        }
    }
}

impl BookFiles for NoBookFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        Err(BookFileError::NoFiles(path.to_owned()))
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        Err(BookFileError::NoFiles(directory.to_owned()))
    }
}
