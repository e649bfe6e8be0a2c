//! A directory of the machine as a file system of its own.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use crate::{DirEntry, FileKind, MAX_FILE_BYTES, Vfs, VfsError, clean};

/// The files below a directory; no path, and no symbolic link, leads out of it.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The real, canonical path that `/` stands for.
    root: Utf8PathBuf,
    /// Directories below the root that were found to be no links and not to lie behind any: a file in one of them that
    /// is no link itself lies where its path says, and following every part of the path again would tell nothing new.
    plain: Arc<Mutex<HashSet<String>>>,
}

impl Disk {
    /// Opens a directory as a root.
    pub fn open(root: &Utf8Path) -> Result<Self, VfsError> {
        let canonical = root
            .canonicalize_utf8()
            .map_err(|source| io_error(root, source))?;
        if !canonical.is_dir() {
            return Err(VfsError::NotDirectory(root.to_owned()));
        }
        Ok(Self::at(canonical))
    }

    /// The whole machine, for commands whose arguments are ordinary paths.
    pub fn machine() -> Self {
        Self::at("/".into())
    }

    fn at(root: Utf8PathBuf) -> Self {
        Self {
            root,
            plain: Arc::default(),
        }
    }

    /// The directory that `/` stands for.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The real path of an existing file or directory, checked to lie below the root.
    fn real(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let joined = self.join(path);
        if self.is_plain(&joined) {
            return Ok(joined);
        }
        let real = joined
            .canonicalize_utf8()
            .map_err(|source| io_error(path, source))?;
        if real.starts_with(&self.root) {
            Ok(real)
        } else {
            Err(VfsError::BadLink(path.to_owned()))
        }
    }

    /// Whether something is there that is no link and lies in a directory known to be plain.
    fn is_plain(&self, joined: &Utf8Path) -> bool {
        self.is_in_plain(joined)
            && fs::symlink_metadata(joined).is_ok_and(|metadata| !metadata.is_symlink())
    }

    fn is_in_plain(&self, joined: &Utf8Path) -> bool {
        let parent = joined.as_str().rsplit_once('/');
        parent.is_some_and(|(parent, _)| {
            let plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
            plain.contains(parent)
        })
    }

    /// Opens a file; in a plain directory the system itself refuses links, which are then followed with care.
    fn open_file(&self, path: &Utf8Path) -> Result<fs::File, VfsError> {
        let joined = self.join(path);
        if self.is_in_plain(&joined) {
            let mut options = fs::OpenOptions::new();
            match options
                .read(true)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&joined)
            {
                Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {}
                opened => return opened.map_err(|source| io_error(path, source)),
            }
        }
        fs::File::open(self.real(path)?).map_err(|source| io_error(path, source))
    }

    fn join(&self, path: &Utf8Path) -> Utf8PathBuf {
        let cleaned = clean(path);
        self.root
            .join(cleaned.strip_prefix("/").unwrap_or(&cleaned))
    }
}

impl Vfs for Disk {
    fn read(&self, path: &Utf8Path) -> Result<Vec<u8>, VfsError> {
        let mut content = Vec::new();
        self.read_into(path, &mut content)?;
        Ok(content)
    }

    fn read_into(&self, path: &Utf8Path, buffer: &mut Vec<u8>) -> Result<(), VfsError> {
        let failed = |source| io_error(path, source);
        let file = self.open_file(path)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(VfsError::IsDirectory(path.to_owned()));
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err(VfsError::TooLarge(path.to_owned()));
        }
        buffer.clear();
        buffer.reserve_exact(usize::try_from(metadata.len()).unwrap_or_default());
        // A device has no length, so what is read is counted; a file needs no look behind its end.
        let limit = match metadata.len() {
            length if metadata.is_file() && length > 0 => length,
            _ => MAX_FILE_BYTES + 1,
        };
        let mut limited = file.take(limit);
        let count = limited.read_to_end(buffer).map_err(failed)?;
        if count as u64 > MAX_FILE_BYTES {
            return Err(VfsError::TooLarge(path.to_owned()));
        }
        Ok(())
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<DirEntry>, VfsError> {
        let real = self.real(directory)?;
        let listed = fs::read_dir(&real).map_err(|source| io_error(directory, source))?;
        if real == self.join(directory) {
            let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
            plain.insert(real.as_str().to_owned());
        }
        let mut entries = Vec::new();
        for entry in listed {
            let entry = entry.map_err(|source| io_error(directory, source))?;
            let name = entry.file_name().into_string();
            let name = name.map_err(|_| VfsError::NotUtf8(directory.to_owned()))?;
            let kind = entry
                .file_type()
                .map_err(|source| io_error(directory, source))?;
            let is_symlink = kind.is_symlink();
            let is_directory = if is_symlink {
                real.join(&name).is_dir()
            } else {
                kind.is_dir()
            };
            entries.push(DirEntry {
                name,
                is_symlink,
                is_directory,
            });
        }
        entries.sort();
        Ok(entries)
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<FileKind>, VfsError> {
        match self.real(path) {
            Ok(real) if real.is_dir() => Ok(Some(FileKind::Directory)),
            Ok(_) => Ok(Some(FileKind::File)),
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn canonicalize(&self, path: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let real = self.real(path)?;
        let inside = real.strip_prefix(&self.root).unwrap_or(&real);
        Ok(Utf8Path::new("/").join(inside))
    }
}

fn io_error(path: &Utf8Path, source: io::Error) -> VfsError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => VfsError::NotFound(path),
        io::ErrorKind::NotADirectory => VfsError::NotDirectory(path),
        _ if source.raw_os_error() == Some(libc::ELOOP) => VfsError::BadLink(path),
        _ => VfsError::Io { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_out_of_the_root_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::create_dir(root.join("in")).unwrap();
        fs::write(root.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("secret"), root.join("in/link")).unwrap();
        let disk = Disk::open(&root.join("in")).unwrap();
        let is_refused = || matches!(disk.read("/link".into()), Err(VfsError::BadLink(_)));
        assert!(is_refused());
        // A directory that was listed is known to be plain, which says nothing of the links in it.
        assert_eq!(disk.list("/".into()).unwrap().len(), 1);
        assert!(is_refused());
        assert!(matches!(
            disk.read("/../secret".into()),
            Err(VfsError::NotFound(_))
        ));
    }

    #[test]
    fn links_inside_the_root_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/a"), "x").unwrap();
        std::os::unix::fs::symlink("real", root.join("alias")).unwrap();
        let disk = Disk::open(root).unwrap();
        assert_eq!(disk.read("/alias/a".into()).unwrap(), b"x");
        assert_eq!(disk.canonicalize("/alias/a".into()).unwrap(), "/real/a");
        assert!(disk.list("/".into()).unwrap()[0].is_symlink);
    }
}
