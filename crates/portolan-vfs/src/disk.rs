//! A directory of the machine as a separate file system.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use crate::{DirEntry, FileKind, MAX_FILE_BYTES, Vfs, VfsError, clean};

/// The files below a directory; no path, and no symbolic link, leads out of it.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The real, canonical path that `/` stands for.
    root: Utf8PathBuf,
    /// Directories below the root that were found to be no links and not to lie behind any: a file in one of them that
    /// is no link itself lies where its path says, and following every part of the path again would tell nothing new.
    plain: Arc<Mutex<HashSet<Box<str>>>>,
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
        parent.is_some_and(|(parent, _)| self.plain().contains(parent))
    }

    fn plain(&self) -> MutexGuard<'_, HashSet<Box<str>>> {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back what was known of a directory in whose place a link is now, and of those below it.
    fn forget_plain(&self, link: &Utf8Path) {
        let mut plain = self.plain();
        if plain.contains(link.as_str()) {
            plain.retain(|directory| !Utf8Path::new(&**directory).starts_with(link));
        }
    }

    /// The real path of a directory that is about to be listed.
    fn real_directory(&self, directory: &Utf8Path) -> Result<Utf8PathBuf, VfsError> {
        let joined = self.join(directory);
        if self.plain().contains(joined.as_str()) {
            return Ok(joined);
        }
        let real = self.real(directory)?;
        if real == joined {
            self.plain().insert(joined.into_string().into_boxed_str());
        }
        Ok(real)
    }

    /// Whether a path is what a name that is not UTF-8 is listed as.
    fn stands_for_foreign(&self, path: &Utf8Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        name.contains(char::REPLACEMENT_CHARACTER) && !self.join(path).as_std_path().exists()
    }

    /// Opens a file without waiting for anybody to write to it; in a plain directory the system itself refuses links, which are then followed with care.
    fn open_file(&self, path: &Utf8Path) -> Result<fs::File, VfsError> {
        let joined = self.join(path);
        if self.is_in_plain(&joined) {
            let mut options = fs::OpenOptions::new();
            match options
                .read(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(&joined)
            {
                Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {}
                opened => return opened.map_err(|source| io_error(path, source)),
            }
        }
        let opened = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(self.real(path)?);
        opened.map_err(|source| io_error(path, source))
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
        let file = match self.open_file(path) {
            Err(VfsError::NotFound(_)) if self.stands_for_foreign(path) => {
                return Err(VfsError::NotUtf8(path.to_owned()));
            }
            opened => opened?,
        };
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(VfsError::IsDirectory(path.to_owned()));
        }
        if !metadata.is_file() {
            return Err(VfsError::Special(path.to_owned()));
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err(VfsError::TooLarge(path.to_owned()));
        }
        buffer.clear();
        buffer.reserve_exact(usize::try_from(metadata.len()).unwrap_or_default());
        // Files of the kernel have no length, so what is read is counted; others need no look behind their end.
        let limit = match metadata.len() {
            length if length > 0 => length,
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
        if self.stands_for_foreign(directory) {
            return Err(VfsError::NotUtf8(directory.to_owned()));
        }
        let real = self.real_directory(directory)?;
        let is_plain = self.plain().contains(real.as_str());
        let listed = fs::read_dir(&real).map_err(|source| io_error(directory, source))?;
        let mut entries = Vec::new();
        for entry in listed {
            let entry = entry.map_err(|source| io_error(directory, source))?;
            let name = entry.file_name().into_string();
            let name = name.unwrap_or_else(|name| name.to_string_lossy().into_owned());
            let kind = entry
                .file_type()
                .map_err(|source| io_error(directory, source))?;
            let is_symlink = kind.is_symlink();
            let is_directory = if is_symlink {
                real.join(&name).is_dir()
            } else {
                kind.is_dir()
            };
            if is_plain && kind.is_dir() {
                let path = real.join(&name).into_string();
                self.plain().insert(path.into_boxed_str());
            } else if is_symlink {
                self.forget_plain(&real.join(&name));
            }
            entries.push(DirEntry {
                name,
                is_symlink,
                is_directory,
            });
        }
        entries.sort();
        // Listings are kept by the thousand, and most have one or two entries.
        entries.shrink_to_fit();
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
        // A socket cannot be opened at all.
        _ if source.raw_os_error() == Some(libc::ENXIO) => VfsError::Special(path),
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

    /// A branch switch may put a link where a directory was.
    #[test]
    fn a_directory_that_became_a_link_out_of_the_root_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::create_dir_all(root.join("in/a/b")).unwrap();
        fs::create_dir_all(root.join("out/b")).unwrap();
        fs::write(root.join("out/b/secret"), "x").unwrap();
        let disk = Disk::open(&root.join("in")).unwrap();
        for directory in ["/", "/a", "/a/b"] {
            disk.list(directory.into()).unwrap();
        }
        fs::remove_dir_all(root.join("in/a")).unwrap();
        std::os::unix::fs::symlink(root.join("out"), root.join("in/a")).unwrap();
        disk.list("/".into()).unwrap();
        let is_refused = |error: Option<VfsError>| matches!(error, Some(VfsError::BadLink(_)));
        assert!(is_refused(disk.list("/a/b".into()).err()));
        assert!(is_refused(disk.read("/a/b/secret".into()).err()));
    }

    /// Whoever does not need the file goes on; whoever does learns why it is not to be had.
    #[test]
    fn a_name_that_is_not_utf8_is_listed_and_refused_when_it_is_read() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::create_dir(dir.path().join(std::ffi::OsStr::from_bytes(b"d\xff"))).unwrap();
        fs::write(
            dir.path().join(std::ffi::OsStr::from_bytes(b"\xff.yaml")),
            "x",
        )
        .unwrap();
        fs::write(root.join("a\u{fffd}"), "x").unwrap();
        let disk = Disk::open(root).unwrap();
        let names = disk.list("/".into()).unwrap();
        let names: Vec<&str> = names.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a\u{fffd}", "d\u{fffd}", "\u{fffd}.yaml"]);
        let is_refused =
            |answer: Result<Vec<u8>, VfsError>| matches!(answer, Err(VfsError::NotUtf8(_)));
        assert!(is_refused(disk.read("/\u{fffd}.yaml".into())));
        assert!(is_refused(
            disk.list("/d\u{fffd}".into()).map(|_| Vec::new())
        ));
        assert_eq!(disk.read("/a\u{fffd}".into()).unwrap(), b"x");
    }

    /// Opening a pipe waits for a writer, and reading a device may never end.
    #[test]
    fn pipes_sockets_and_devices_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(root.join("pipe.yaml"))
            .status();
        assert!(made.unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket.yaml")).unwrap();
        std::os::unix::fs::symlink("pipe.yaml", root.join("link.yaml")).unwrap();
        for listed in [false, true] {
            let disk = Disk::open(root).unwrap();
            if listed {
                disk.list("/".into()).unwrap();
            }
            for name in ["/pipe.yaml", "/socket.yaml", "/link.yaml"] {
                let error = disk.read(name.into()).unwrap_err();
                assert_eq!(error.to_string(), format!("`{name}` is not a regular file"));
            }
        }
        let error = Disk::machine().read("/dev/zero".into()).unwrap_err();
        assert!(matches!(error, VfsError::Special(_)));
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
