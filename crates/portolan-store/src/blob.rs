//! Content that is too large for the store: files named by their digest, on the disk of one server.
//!
//! A blob is there whole or not at all. Once [`BlobArea::put`] has returned its name, it survives a power cut: the
//! file is synced, then its directory. Its name is its SHA-256, so every read can be checked.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The largest blob.
pub const MAX_BLOB_BYTES: u64 = 256 << 20;

/// The name of a blob: the SHA-256 of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobName([u8; 32]);

impl BlobName {
    /// The name of content.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl FromStr for BlobName {
    type Err = BlobError;

    fn from_str(text: &str) -> Result<Self, BlobError> {
        let wrong = || BlobError::Name(text.chars().take(80).collect());
        let is_hex = text.len() == 64
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hex {
            return Err(wrong());
        }
        let mut name = [0; 32];
        for (at, byte) in name.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(name))
    }
}

/// Why a blob cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// Not a name of a blob.
    #[error("`{0}` is not the name of a blob, which has 64 hexadecimal digits")]
    Name(String),
    /// There is none of that name.
    #[error("blob {0} does not exist here")]
    Missing(BlobName),
    /// Its content has another digest than its name.
    #[error("blob {0} is damaged: its content has another digest")]
    Damaged(BlobName),
    /// See [`MAX_BLOB_BYTES`].
    #[error("a blob has more than {MAX_BLOB_BYTES} bytes")]
    TooLarge,
    /// The disk.
    #[error("cannot {act} `{}`", path.display())]
    Io {
        /// What was tried.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A directory of blobs.
#[derive(Debug)]
pub struct BlobArea {
    root: PathBuf,
}

impl BlobArea {
    /// Opens an area, and makes it if it is missing. What an earlier process left half written is removed.
    pub fn open(root: &Path) -> Result<Self, BlobError> {
        let area = Self {
            root: root.to_owned(),
        };
        let incoming = area.incoming();
        if incoming.exists() {
            fs::remove_dir_all(&incoming).map_err(failed("remove", &incoming))?;
        }
        fs::create_dir_all(&incoming).map_err(failed("make", &incoming))?;
        sync_directory(&area.root)?;
        Ok(area)
    }

    /// Stores what a reader gives; returns when it is safe on the disk.
    pub fn put(&self, content: &mut dyn Read) -> Result<BlobName, BlobError> {
        let temporary = self
            .incoming()
            .join(format!("{:032x}", rand::random::<u128>()));
        let stored = Self::write(&temporary, content).and_then(|name| {
            self.settle(&temporary, name)?;
            Ok(name)
        });
        if stored.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        stored
    }

    fn write(path: &Path, content: &mut dyn Read) -> Result<BlobName, BlobError> {
        let mut file = File::create_new(path).map_err(failed("make", path))?;
        let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 64 << 10]);
        loop {
            let count = content
                .read(&mut buffer)
                .map_err(failed("read what goes to", path))?;
            if count == 0 {
                break;
            }
            bytes += count as u64;
            if bytes > MAX_BLOB_BYTES {
                return Err(BlobError::TooLarge);
            }
            hash.update(&buffer[..count]);
            file.write_all(&buffer[..count])
                .map_err(failed("write", path))?;
        }
        file.sync_all().map_err(failed("sync", path))?;
        Ok(BlobName(hash.finalize().into()))
    }

    /// Gives a written file its name. A failed sync of a directory must be told, so this is done here and not by portolan-files.
    fn settle(&self, temporary: &Path, name: BlobName) -> Result<(), BlobError> {
        let path = self.path(name);
        let directory = path.parent().unwrap_or(&self.root);
        if !directory.exists() {
            fs::create_dir_all(directory).map_err(failed("make", directory))?;
            sync_directory(&self.root)?;
        }
        fs::rename(temporary, &path).map_err(failed("name", &path))?;
        sync_directory(directory)
    }

    /// Reads a blob whole and checks it.
    pub fn get(&self, name: BlobName) -> Result<Vec<u8>, BlobError> {
        let path = self.path(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BlobError::Missing(name));
            }
            Err(error) => return Err(failed("open", &path)(error)),
        };
        let mut content = Vec::new();
        let limited = file.take(MAX_BLOB_BYTES + 1).read_to_end(&mut content);
        limited.map_err(failed("read", &path))?;
        if name != BlobName::of(&content) {
            return Err(BlobError::Damaged(name));
        }
        Ok(content)
    }

    /// Removes a blob, if it is there.
    pub fn remove(&self, name: BlobName) -> Result<(), BlobError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The names of all blobs, sorted.
    pub fn list(&self) -> Result<Vec<BlobName>, BlobError> {
        let mut names = Vec::new();
        for directory in
            entries(&self.root)?.filter(|path| path.is_dir() && *path != self.incoming())
        {
            let files = entries(&directory)?;
            let found =
                files.filter_map(|path| path.file_name()?.to_str()?.parse::<BlobName>().ok());
            names.extend(found);
        }
        names.sort_unstable();
        Ok(names)
    }

    fn path(&self, name: BlobName) -> PathBuf {
        let text = name.to_string();
        self.root.join(&text[..2]).join(text)
    }

    fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }
}

fn entries(directory: &Path) -> Result<impl Iterator<Item = PathBuf>, BlobError> {
    let found = fs::read_dir(directory).map_err(failed("list", directory))?;
    let found = found
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed("list", directory))?;
    Ok(found.into_iter().map(|entry| entry.path()))
}

fn sync_directory(path: &Path) -> Result<(), BlobError> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(failed("sync", path))
}

fn failed(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BlobError {
    move |source| BlobError::Io {
        act,
        path: path.to_owned(),
        source,
    }
}
