//! Files held in memory: tests, unpacked archives, generated trees.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{DirEntry, FileKind, Vfs, VfsError, clean};

/// A tree of files in memory; directories exist where files lie below them.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<Utf8PathBuf, Vec<u8>>,
}

impl Memory {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a file at a path, replacing what was there.
    pub fn insert(&mut self, path: impl AsRef<Utf8Path>, content: impl Into<Vec<u8>>) {
        self.files.insert(clean(path.as_ref()), content.into());
    }

    fn has_below(&self, directory: &Utf8Path) -> bool {
        directory == "/" || self.below(directory).next().is_some()
    }

    fn below<'a>(&'a self, directory: &'a Utf8Path) -> impl Iterator<Item = &'a Utf8Path> + 'a {
        self.files
            .range(directory.to_owned()..)
            .map(|(path, _)| path.as_path())
            .take_while(move |path| {
                path.starts_with(directory) || path.as_str() < sibling_bound(directory).as_str()
            })
            .filter(move |path| path.starts_with(directory) && *path != directory)
    }
}

/// A bound above every text that begins with the directory's path.
fn sibling_bound(directory: &Utf8Path) -> String {
    format!("{directory}\u{10ffff}")
}

impl<P: AsRef<Utf8Path>, C: Into<Vec<u8>>> FromIterator<(P, C)> for Memory {
    fn from_iter<I: IntoIterator<Item = (P, C)>>(files: I) -> Self {
        let mut memory = Self::new();
        for (path, content) in files {
            memory.insert(path, content);
        }
        memory
    }
}

impl Vfs for Memory {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let path = clean(path);
        match self.files.get(&path) {
            Some(content) => Ok(content.clone()),
            None if self.has_below(&path) => Err(VfsError::IsDirectory(path)),
            None => Err(VfsError::NotFound(path)),
        }
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let directory = clean(directory);
        if self.files.contains_key(&directory) {
            return Err(VfsError::NotDirectory(directory));
        }
        if !self.has_below(&directory) {
            return Err(VfsError::NotFound(directory));
        }
        let mut entries = BTreeMap::new();
        for path in self.below(&directory) {
            let Ok(rest) = path.strip_prefix(&directory) else {
                continue;
            };
            let mut parts = rest.components();
            let Some(first) = parts.next() else { continue };
            entries.insert(first.as_str().to_owned(), parts.next().is_some());
        }
        let entry = |(name, is_directory)| DirEntry {
            name,
            is_symlink: false,
            is_directory,
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        let path = clean(path);
        if self.files.contains_key(&path) {
            return Ok(Some(FileKind::File));
        }
        Ok(self.has_below(&path).then_some(FileKind::Directory))
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let path = clean(path);
        match self.kind(&path)? {
            Some(_) => Ok(path),
            None => Err(VfsError::NotFound(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Memory {
        [
            ("/a/b.yaml", "1"),
            ("/a/c/d.yaml", "2"),
            ("/a-b/e.yaml", "3"),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn lists_only_direct_children_with_their_kind() {
        let names: Vec<_> = tree()
            .list("/a".into())
            .unwrap()
            .into_iter()
            .map(|e| (e.name, e.is_directory))
            .collect();
        assert_eq!(
            names,
            [("b.yaml".to_owned(), false), ("c".to_owned(), true)]
        );
    }

    #[test]
    fn the_root_is_a_directory_even_when_empty() {
        assert!(Memory::new().is_directory("/".into()));
        assert!(Memory::new().list("/".into()).unwrap().is_empty());
    }

    #[test]
    fn reading_a_directory_says_so() {
        assert!(matches!(
            tree().read("/a".into()),
            Err(VfsError::IsDirectory(_))
        ));
        assert!(matches!(
            tree().read("/x".into()),
            Err(VfsError::NotFound(_))
        ));
    }
}
