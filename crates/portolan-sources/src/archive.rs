//! Unpacks archives into memory.
//!
//! Nothing is written to disk, so a hostile archive cannot write outside its directory; only the size must be
//! limited. Links are skipped, as Flux's source controller does when it unpacks artifacts.

use std::io::Read;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use flate2::read::MultiGzDecoder;
use portolan_vfs::Memory;
use tar::{Archive, EntryType};

use crate::Limits;

/// An archive that cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a tar archive, compressed or not.
    #[error("it is not a tar archive")]
    NotTar(#[source] std::io::Error),
    /// It unpacks to more than allowed.
    #[error("it unpacks to more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: u64,
    },
    /// It has more entries than allowed.
    #[error("it has more than {limit} entries")]
    TooManyEntries {
        /// The bound.
        limit: usize,
    },
    /// An entry's path leads out of the archive, or is not UTF-8.
    #[error("the path `{path}` leads out of the archive or is not UTF-8")]
    BadPath {
        /// The path as written.
        path: String,
    },
}

/// Unpacks a tar archive, gzip-compressed or plain.
pub fn unpack(content: &[u8], limits: &Limits) -> Result<Memory, ArchiveError> {
    if content.starts_with(&GZIP_MAGIC) {
        return unpack_tar(MultiGzDecoder::new(content), limits);
    }
    unpack_tar(content, limits)
}

pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

fn unpack_tar(reader: impl Read, limits: &Limits) -> Result<Memory, ArchiveError> {
    // One byte more than allowed tells a bomb from an archive of just that size; padding counts too.
    let limit = limits.unpacked_bytes;
    let mut bounded = reader.take(limit + 1);
    let outcome = read_entries(&mut bounded, limits);
    if bounded.limit() == 0 {
        return Err(ArchiveError::TooLarge { limit });
    }
    outcome
}

fn read_entries(reader: impl Read, limits: &Limits) -> Result<Memory, ArchiveError> {
    let mut files = Memory::new();
    let mut archive = Archive::new(reader);
    let entries = archive.entries().map_err(ArchiveError::NotTar)?;
    for (count, entry) in entries.enumerate() {
        if count >= limits.entries {
            let limit = limits.entries;
            return Err(ArchiveError::TooManyEntries { limit });
        }
        let mut entry = entry.map_err(ArchiveError::NotTar)?;
        let path = safe_path(&entry.path_bytes())?;
        if matches!(
            entry.header().entry_type(),
            EntryType::Regular | EntryType::Continuous
        ) {
            let mut content = Vec::new();
            entry
                .read_to_end(&mut content)
                .map_err(ArchiveError::NotTar)?;
            files.insert(path, content);
        }
    }
    Ok(files)
}

/// The path inside the tree, refused when it tries to leave.
pub(crate) fn safe_path(written: &[u8]) -> Result<Utf8PathBuf, ArchiveError> {
    let bad = || ArchiveError::BadPath {
        path: String::from_utf8_lossy(written).into_owned(),
    };
    let path = Utf8Path::new(std::str::from_utf8(written).map_err(|_| bad())?);
    let mut safe = Utf8PathBuf::from("/");
    for component in path.components() {
        match component {
            Utf8Component::Normal(name) => safe.push(name),
            Utf8Component::CurDir | Utf8Component::RootDir => {}
            Utf8Component::ParentDir | Utf8Component::Prefix(_) => return Err(bad()),
        }
    }
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use portolan_vfs::Vfs as _;
    use tar::{Builder, Header};

    use super::*;

    /// An archive with one entry of any path, as only hostile tools write it.
    fn tar_of(path: &[u8], kind: EntryType, content: &[u8]) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        let mut builder = Builder::new(Vec::new());
        builder.append(&header, content).unwrap();
        builder.into_inner().unwrap()
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn refused(content: &[u8]) -> String {
        unpack(content, &Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn files_are_unpacked_with_and_without_compression() {
        let plain = tar_of(b"./a/b.yaml", EntryType::Regular, b"x");
        for content in [plain.clone(), gzip(&plain)] {
            let files = unpack(&content, &Limits::default()).unwrap();
            assert_eq!(files.read("/a/b.yaml".into()).unwrap(), b"x");
        }
    }

    #[test]
    fn a_path_that_leaves_the_archive_is_refused() {
        for path in ["../../etc/passwd", "a/../../b"] {
            let content = tar_of(path.as_bytes(), EntryType::Regular, b"x");
            assert_eq!(
                refused(&content),
                format!("the path `{path}` leads out of the archive or is not UTF-8")
            );
        }
        let absolute = tar_of(b"/etc/passwd", EntryType::Regular, b"x");
        let files = unpack(&absolute, &Limits::default()).unwrap();
        assert!(files.is_file("/etc/passwd".into()), "inside the tree only");
    }

    #[test]
    fn links_and_devices_are_skipped() {
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Char,
            EntryType::Fifo,
        ] {
            let files = unpack(&tar_of(b"link", kind, b""), &Limits::default()).unwrap();
            assert_eq!(files.kind("/link".into()).unwrap(), None);
        }
    }

    #[test]
    fn a_bomb_is_refused_before_it_fills_the_memory() {
        let bomb = gzip(&tar_of(b"zeros", EntryType::Regular, &vec![0; 4_000_000]));
        assert!(bomb.len() < 20_000);
        let limits = Limits {
            unpacked_bytes: 1_000_000,
            ..Limits::default()
        };
        let error = unpack(&bomb, &limits).unwrap_err();
        assert_eq!(error.to_string(), "it unpacks to more than 1000000 bytes");
    }

    #[test]
    fn too_many_entries_are_refused() {
        let mut builder = Builder::new(Vec::new());
        for n in 0..20 {
            let mut header = Header::new_gnu();
            header.set_size(0);
            header.set_cksum();
            builder
                .append_data(&mut header, format!("{n}"), &b""[..])
                .unwrap();
        }
        let limits = Limits {
            entries: 10,
            ..Limits::default()
        };
        let error = unpack(&builder.into_inner().unwrap(), &limits).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 10 entries");
    }

    #[test]
    fn what_is_no_archive_or_breaks_off_is_refused() {
        assert_eq!(
            refused(b"<html>not found</html>"),
            "it is not a tar archive"
        );
        let whole = gzip(&tar_of(b"a", EntryType::Regular, &[1; 5000]));
        let half = &whole[..whole.len() / 2];
        assert_eq!(refused(half), "it is not a tar archive");
    }
}
