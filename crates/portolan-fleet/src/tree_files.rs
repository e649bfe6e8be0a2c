//! Files of a commit, read without a checkout.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::{BookFileError, BookFiles};
use portolan_vfs::{Vfs, VfsError};

use crate::book_files::MAX_FILE_BYTES;

/// The most files of one directory that a book names.
const MAX_FILES: usize = 2_000;

/// Files of a commit. Paths are relative to a directory in it; none leads out of the repository.
pub struct TreeFiles {
    tree: Box<dyn Vfs>,
    directory: Utf8PathBuf,
}

impl TreeFiles {
    /// Files beside a book, which is named from the root of the repository.
    pub fn beside(tree: Box<dyn Vfs>, book: &Utf8Path) -> Self {
        let book = Utf8Path::new("/").join(book);
        let directory = book.parent().unwrap_or(Utf8Path::new("/")).to_owned();
        Self { tree, directory }
    }

    fn resolve(&self, path: &Utf8Path) -> Result<Utf8PathBuf, BookFileError> {
        if path.is_absolute() {
            return Err(BookFileError::Absolute(path.to_owned()));
        }
        let mut found = self.directory.clone();
        for part in path.as_str().split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if !found.pop() {
                        return Err(BookFileError::Outside(path.to_owned()));
                    }
                }
                part => found.push(part),
            }
        }
        Ok(found)
    }

    fn failed(path: &Utf8Path, error: VfsError) -> BookFileError {
        match error {
            VfsError::NotFound(_) => BookFileError::Missing(path.to_owned()),
            VfsError::IsDirectory(_) => BookFileError::NotAFile(path.to_owned()),
            error => BookFileError::Unreadable(path.to_owned(), std::io::Error::other(error)),
        }
    }
}

impl BookFiles for TreeFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let found = self.resolve(path)?;
        let content = self.tree.read(&found);
        let content = content.map_err(|error| Self::failed(path, error))?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(BookFileError::TooLarge(path.to_owned(), MAX_FILE_BYTES));
        }
        Ok(content.into())
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let found = self.resolve(directory)?;
        let mut files = Vec::new();
        let mut waiting = vec![found.clone()];
        while let Some(next) = waiting.pop() {
            let entries = self.tree.list(&next);
            for entry in entries.map_err(|error| Self::failed(directory, error))? {
                let path = next.join(&entry.name);
                if entry.is_directory && !entry.is_symlink {
                    waiting.push(path);
                } else if let Ok(below) = path.strip_prefix(&found) {
                    files.push(below.to_owned());
                }
            }
            if files.len() > MAX_FILES {
                return Err(BookFileError::TooLarge(
                    directory.to_owned(),
                    MAX_FILE_BYTES,
                ));
            }
        }
        files.sort();
        Ok(files)
    }
}
