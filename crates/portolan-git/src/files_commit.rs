//! Which commit some files of a work tree come from.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::Vfs as _;

use crate::error::GitError;
use crate::repository::{CommitId, Repository};

/// The commit that is checked out, and the files that are not as it has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesCommit {
    /// The commit.
    pub commit: CommitId,
    /// Files that differ from it, or that it does not have.
    pub changed: Vec<Utf8PathBuf>,
}

impl Repository {
    /// Compares files with the commit that is checked out; paths are absolute. `None` without a work tree or a commit.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn commit_of_files<'f>(
        &self,
        files: impl IntoIterator<Item = (&'f Utf8Path, &'f [u8])>,
    ) -> Result<Option<FilesCommit>, GitError> {
        let (Some(work_tree), Ok(commit)) = (self.work_tree(), self.resolve("HEAD")) else {
            return Ok(None);
        };
        let tree = self.tree(commit)?;
        let is_same = |path: &Utf8Path, content: &[u8]| {
            let Ok(inside) = path.strip_prefix(work_tree) else {
                return false;
            };
            let committed = tree.read(&Utf8Path::new("/").join(inside));
            committed.is_ok_and(|committed| committed == content)
        };
        let changed = files
            .into_iter()
            .filter(|(path, content)| !is_same(path, content));
        let changed = changed.map(|(path, _)| path.to_owned()).collect();
        Ok(Some(FilesCommit { commit, changed }))
    }
}
