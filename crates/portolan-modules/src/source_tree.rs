//! Files that a step renders from: of the book, or of the host. They are copied, so that what renders sees nothing else.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::action::ModuleError;
use crate::root::{FileKind, Follow};
use crate::view::View;

/// The most files of a tree.
const MAX_FILES: usize = 20_000;

/// The most bytes of all files of a tree together.
const MAX_BYTES: u64 = 256 << 20;

/// A copy of files, which goes when this does.
pub(crate) struct SourceTree {
    directory: TempDir,
    files: usize,
    bytes: u64,
}

/// What copying files gives.
pub(crate) enum TreeLook {
    /// The files.
    Tree(SourceTree),
    /// An earlier step of the check writes some of them.
    Unknown,
}

impl SourceTree {
    /// Copies a directory of the book, or one of the host if its path is absolute.
    pub(crate) fn copy(view: &View<'_>, source: &Utf8Path) -> Result<TreeLook, ModuleError> {
        let failed = |error: io::Error| ModuleError::failed("read", source, error);
        let mut tree = Self {
            directory: tempfile::tempdir().map_err(failed)?,
            files: 0,
            bytes: 0,
        };
        if source.is_absolute() {
            if view.ahead.has_below(source) {
                return Ok(TreeLook::Unknown);
            }
            let status = view.host.root.status(source, Follow::Yes).map_err(failed)?;
            if status.is_none_or(|status| status.kind != FileKind::Directory) {
                return Err(ModuleError::failed("read", source, "it is not a directory"));
            }
            tree.copy_host(view, source).map_err(failed)?;
        } else {
            tree.copy_book(view, source)?;
        }
        Ok(TreeLook::Tree(tree))
    }

    /// Where the copy is.
    pub(crate) fn path(&self) -> Result<&Utf8Path, ModuleError> {
        let path = self.directory.path();
        Utf8Path::from_path(path)
            .ok_or_else(|| ModuleError::failed("use", path.display(), "its path is not UTF-8"))
    }

    /// Adds a file to the copy.
    pub(crate) fn write(&mut self, name: &Utf8Path, content: &[u8]) -> io::Result<()> {
        self.files += 1;
        self.bytes += content.len() as u64;
        if self.files > MAX_FILES || self.bytes > MAX_BYTES {
            let message = format!("it has more than {MAX_FILES} files or {MAX_BYTES} bytes");
            return Err(io::Error::other(message));
        }
        let path = self.directory.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content)
    }

    fn copy_book(&mut self, view: &View<'_>, source: &Utf8Path) -> Result<(), ModuleError> {
        let failed = |path: &Utf8Path, reason: String| ModuleError::failed("read", path, reason);
        let files = view.host.book_files.list(source);
        for name in files.map_err(|error| failed(source, error.to_string()))? {
            let path = source.join(&name);
            let content = view.host.book_files.read(&path);
            let content = content.map_err(|error| failed(&path, error.to_string()))?;
            let written = self.write(&name, &content);
            written.map_err(|error| failed(source, error.to_string()))?;
        }
        Ok(())
    }

    fn copy_host(&mut self, view: &View<'_>, source: &Utf8Path) -> io::Result<()> {
        let root = &view.host.root;
        let mut left = vec![Utf8PathBuf::new()];
        while let Some(directory) = left.pop() {
            for name in root.list(&source.join(&directory))? {
                let relative = directory.join(&name);
                let path = source.join(&relative);
                match root.status(&path, Follow::No)?.map(|status| status.kind) {
                    Some(FileKind::Directory) if name != ".git" => left.push(relative),
                    Some(FileKind::File) => {
                        let content = root.read(&path, MAX_BYTES)?.unwrap_or_default();
                        self.write(&relative, &content)?;
                    }
                    // A link could lead anywhere; what it stands for is missed by whoever needs it.
                    _ => {}
                }
                if left.len() > MAX_FILES {
                    return Err(io::Error::other("it has too many directories"));
                }
            }
        }
        Ok(())
    }
}
