//! The files that come with a book: those of a directory, or those in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_modules::{BookFileError, BookFiles, BookRepository};

/// The largest file of a book, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// Files of a repository on this machine. Paths are relative to the book's directory and stay inside the repository.
#[derive(Debug, Clone)]
pub struct DirectoryFiles {
    repository: Utf8PathBuf,
    book: Utf8PathBuf,
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles(BTreeMap<Utf8PathBuf, Arc<[u8]>>);

/// Files of another place, remembered as they are read.
pub struct RecordedFiles {
    inner: Arc<dyn BookFiles>,
    read: Mutex<BTreeMap<Utf8PathBuf, Arc<[u8]>>>,
}

// === impl RecordedFiles ===

impl RecordedFiles {
    /// Files of another place, none of which was read.
    pub fn new(inner: Arc<dyn BookFiles>) -> Self {
        Self {
            inner,
            read: Mutex::default(),
        }
    }

    /// Everything that was read.
    pub fn take(&self) -> BTreeMap<Utf8PathBuf, Arc<[u8]>> {
        std::mem::take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl BookFiles for RecordedFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let content = self.inner.read(path)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(path.to_owned(), Arc::clone(&content));
        Ok(content)
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let listed = self.inner.list(directory)?;
        for path in &listed {
            self.read(&directory.join(path))?;
        }
        Ok(listed)
    }

    fn pin(&self, source: &BookRepository) -> Result<String, BookFileError> {
        let commit = self.inner.pin(source)?;
        self.read(&source.commit_file())?;
        Ok(commit)
    }
}

// === impl DirectoryFiles ===

impl DirectoryFiles {
    /// Files beside a book. Its repository is the nearest directory above with a `.git`, or the book's own directory.
    ///
    /// # Errors
    /// When the directory cannot be looked at.
    pub fn beside(book: &Utf8Path) -> Result<Self, String> {
        let parent = match book.parent() {
            Some(parent) if !parent.as_str().is_empty() => parent,
            _ => Utf8Path::new("."),
        };
        let unreadable = |error: std::io::Error| format!("cannot look at `{parent}`: {error}");
        let directory = parent.canonicalize_utf8().map_err(unreadable)?;
        let repository = directory
            .ancestors()
            .find(|above| above.join(".git").exists())
            .unwrap_or(&directory)
            .to_owned();
        Ok(Self {
            repository,
            book: directory,
        })
    }

    fn resolve(&self, path: &Utf8Path) -> Result<Utf8PathBuf, BookFileError> {
        if path.is_absolute() {
            return Err(BookFileError::Absolute(path.to_owned()));
        }
        let found = self.book.join(path).canonicalize_utf8();
        let found = found.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => BookFileError::Missing(path.to_owned()),
            _ => BookFileError::Unreadable(path.to_owned(), error),
        })?;
        if found.starts_with(&self.repository) {
            Ok(found)
        } else {
            Err(BookFileError::Outside(path.to_owned()))
        }
    }
}

impl BookFiles for DirectoryFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let found = self.resolve(path)?;
        let unreadable = |error| BookFileError::Unreadable(path.to_owned(), error);
        let about = std::fs::metadata(&found).map_err(unreadable)?;
        if !about.is_file() {
            return Err(BookFileError::NotAFile(path.to_owned()));
        }
        if about.len() > MAX_FILE_BYTES {
            return Err(BookFileError::TooLarge(path.to_owned(), MAX_FILE_BYTES));
        }
        Ok(std::fs::read(&found).map_err(unreadable)?.into())
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let found = self.resolve(directory)?;
        let mut files = Vec::new();
        let mut waiting = vec![found.clone()];
        while let Some(next) = waiting.pop() {
            let unreadable = |error| BookFileError::Unreadable(directory.to_owned(), error);
            for entry in next.read_dir_utf8().map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                // A link is followed when it is read, and refused if it leads out.
                if entry.file_type().map_err(unreadable)?.is_dir() {
                    waiting.push(entry.path().to_owned());
                } else if let Ok(below) = entry.path().strip_prefix(&found) {
                    files.push(below.to_owned());
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

// === impl MemoryFiles ===

impl MemoryFiles {
    /// These files, with any content.
    pub fn of_bytes<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let files = files.into_iter();
        Self(
            files
                .map(|(path, content)| (path.into(), content.into()))
                .collect(),
        )
    }

    /// These files.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self::of_bytes(
            files
                .into_iter()
                .map(|(path, text)| (path, text.as_bytes())),
        )
    }
}

impl BookFiles for MemoryFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let found = self.0.get(path).cloned();
        found.ok_or_else(|| BookFileError::Missing(path.to_owned()))
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let below = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix(directory).ok());
        Ok(below.map(Utf8Path::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_the_repository_are_refused() {
        let scratch = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(scratch.path()).expect("UTF-8");
        std::fs::create_dir_all(root.join("repo/.git")).expect("made");
        std::fs::create_dir_all(root.join("repo/books/templates")).expect("made");
        std::fs::write(root.join("outside"), "x").expect("written");
        std::fs::write(root.join("repo/shared"), "y").expect("written");
        std::fs::write(root.join("repo/books/templates/a"), "z").expect("written");
        std::os::unix::fs::symlink("../../outside", root.join("repo/books/link")).expect("linked");
        let files = DirectoryFiles::beside(&root.join("repo/books/book.yaml")).expect("files");
        assert_eq!(&*files.read("../shared".into()).expect("a file"), b"y");
        assert_eq!(files.list("templates".into()).expect("a list"), ["a"]);
        for path in ["../../outside", "link", "/etc/passwd"] {
            assert!(files.read(path.into()).is_err(), "{path}");
        }
    }
}
