//! What differs between two trees.

use camino::Utf8PathBuf;
use gix::bstr::BStr;
use gix::object::tree::diff::ChangeDetached;

use crate::GitError;

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Its path from the root of the tree, without a leading slash.
    pub path: Utf8PathBuf,
    /// How it differs.
    pub kind: ChangeKind,
}

/// How a file differs; a rename is a removal and an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Only the newer tree has it.
    Added,
    /// Both have it, with other content or mode.
    Modified,
    /// Only the older tree has it.
    Removed,
}

impl Change {
    /// The change of a file; directories are no changes of their own.
    pub(crate) fn from_gix(change: &ChangeDetached) -> Result<Option<Self>, GitError> {
        let (location, mode, kind) = match change {
            ChangeDetached::Addition {
                location,
                entry_mode,
                ..
            } => (location, entry_mode, ChangeKind::Added),
            ChangeDetached::Deletion {
                location,
                entry_mode,
                ..
            } => (location, entry_mode, ChangeKind::Removed),
            ChangeDetached::Modification {
                location,
                entry_mode,
                ..
            }
            | ChangeDetached::Rewrite {
                location,
                entry_mode,
                ..
            } => (location, entry_mode, ChangeKind::Modified),
        };
        if mode.is_tree() {
            return Ok(None);
        }
        let path = utf8(location.as_ref())?.into();
        Ok(Some(Self { path, kind }))
    }
}

pub(crate) fn utf8(name: &BStr) -> Result<&str, GitError> {
    std::str::from_utf8(name).map_err(|_| GitError::NameNotUtf8(name.to_string()))
}
