//! Git repositories: refs and trees read without a checkout, changed paths, and mirrors fetched over HTTP.
//!
//! ```text
//!   directory ──▶ Repository ──resolve──▶ CommitId ──tree──▶ Tree (a Vfs)
//!                     ▲                      ├──changed_paths──▶ [Change]
//!                     │                      └──touched_since──▶ paths of the work tree
//!   URL ──▶ Mirror ───┘ (bare, fetched ref by ref, shallow)
//! ```
//!
//! Only this crate uses gix, because gix breaks its interface every few weeks. Nothing here needs a `git` program,
//! except mirrors of `file://` addresses, which gix serves by starting `git upload-pack`.
//!
//! This crate knows nothing about Flux, and writes only to its own mirrors.

#![warn(missing_docs)]

mod base_tree;
mod bounded;
mod change;
mod error;
mod files_commit;
mod mirror;
mod nearest;
mod repository;
mod tree;
mod watched;
mod work_tree;
mod work_tree_files;

pub use base_tree::BaseTree;
pub use change::{Change, ChangeKind};
pub use error::GitError;
pub use files_commit::FilesCommit;
pub use mirror::{FetchOptions, Mirror, RemoteRef, Wanted};
pub use repository::{CommitId, Repository};
pub use tree::Tree;
pub use watched::REMOTE_THREAD;
pub use work_tree_files::WorkTreeFiles;
