//! The work tree as git would commit it.
//!
//! Line ends may differ between disk and repository (`core.autocrlf`), and submodules may be checked out, which Flux
//! does not do. Both would appear as differences that no commit contains.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{DirEntry, Disk, FileKind, Vfs, VfsError, clean};

use crate::Tree;

/// The files on disk, seen as git sees them.
pub struct WorkTreeFiles {
    disk: Disk,
    /// The newest commit; nothing in a repository without commits.
    head: Option<Tree>,
    submodules: Vec<Utf8PathBuf>,
}

impl WorkTreeFiles {
    /// The files below a directory, with the newest commit of its repository.
    pub fn new(disk: Disk, head: Option<Tree>) -> Self {
        let modules = disk.read(Utf8Path::new("/.gitmodules")).unwrap_or_default();
        let submodules = submodule_paths(&String::from_utf8_lossy(&modules));
        Self {
            disk,
            head,
            submodules,
        }
    }

    /// Whether a path lies in a submodule.
    fn is_foreign(&self, path: &Utf8Path) -> bool {
        let is_below = |submodule: &Utf8PathBuf| path != submodule && path.starts_with(submodule);
        !self.submodules.is_empty() && self.submodules.iter().any(is_below)
    }

    /// The content that the newest commit has, when only the ends of lines differ from it.
    fn committed(&self, path: &Utf8Path, bytes: &[u8]) -> Option<Vec<u8>> {
        if !has_carriage_returns(bytes) {
            return None;
        }
        let head = self.head.as_ref()?.read(path).ok()?;
        (!has_carriage_returns(&head)).then(|| without_carriage_returns(bytes))
    }
}

impl Vfs for WorkTreeFiles {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let path = clean(path);
        if self.is_foreign(&path) {
            return Err(VfsError::NotFound(path));
        }
        let bytes = self.disk.read(&path)?;
        Ok(self.committed(&path, &bytes).unwrap_or(bytes))
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let directory = clean(directory);
        if self.is_foreign(&directory) {
            return Err(VfsError::NotFound(directory));
        }
        if self.submodules.contains(&directory) {
            return Ok(Vec::new());
        }
        self.disk.list(&directory)
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        let path = clean(path);
        if self.is_foreign(&path) {
            return Ok(None);
        }
        self.disk.kind(&path)
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let path = clean(path);
        if self.is_foreign(&path) {
            return Err(VfsError::NotFound(path));
        }
        self.disk.canonicalize(&path)
    }
}

/// The paths in a `.gitmodules` file.
fn submodule_paths(text: &str) -> Vec<Utf8PathBuf> {
    let path = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (key.trim() == "path" && !value.is_empty()).then(|| Utf8Path::new("/").join(value))
    };
    text.lines().filter_map(path).collect()
}

/// Whether a line ends in a carriage return.
fn has_carriage_returns(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\r\n").is_some()
}

fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        let ends_line = *byte == b'\r' && bytes.get(at + 1) == Some(&b'\n');
        if !ends_line {
            kept.push(*byte);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_are_read_from_their_file() {
        let text = "[submodule \"a\"]\n\tpath = vendor/a\n\turl = https://example.com/a\n";
        assert_eq!(submodule_paths(text), ["/vendor/a"]);
    }

    #[test]
    fn only_the_ends_of_lines_lose_their_carriage_return() {
        assert_eq!(without_carriage_returns(b"a\r\nb\rc\r\n"), b"a\nb\rc\n");
    }
}
