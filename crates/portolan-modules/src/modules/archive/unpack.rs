//! Reads a tar archive that may be hostile and writes its files into an empty directory.
//!
//! Refused are absolute paths, `..`, links that lead out, files below links, devices, pipes and setuid bits, and archives
//! with too many entries or bytes.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};

use camino::{Utf8Path, Utf8PathBuf};
use tar::{Archive, Entry, EntryType};

use crate::ahead::PredictedPath;
use crate::host::Host;
use crate::root::NewFile;

/// The most files, directories and links of an archive.
pub const MAX_ARCHIVE_ENTRIES: u64 = 200_000;

/// The most bytes that an archive may have when it is unpacked.
pub const MAX_UNPACKED_BYTES: u64 = 8 << 30;

/// The file that says which archive a directory was made of.
pub(super) const RECORD: &str = ".portolan-archive";

/// How much was unpacked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unpacked {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// An entry that may be unpacked.
enum Item {
    Directory(Utf8PathBuf),
    File(Utf8PathBuf, u32),
    Link(Utf8PathBuf, String),
    Hard(Utf8PathBuf, Utf8PathBuf),
}

/// Unpacks an archive into an empty directory.
pub(super) fn unpack(
    host: &Host,
    archive: impl Read,
    into: &Utf8Path,
    strip: usize,
) -> Result<Unpacked, String> {
    let mut unpacked = Unpacked::default();
    let mut directories = BTreeSet::new();
    let root = &host.root;
    each(archive, strip, &mut |item, entry| {
        if host.stop.is_cancelled() {
            return Err("stopped before it ended".to_owned());
        }
        unpacked.entries += 1;
        unpacked.bytes = unpacked.bytes.saturating_add(entry.size());
        let (Item::Directory(path)
        | Item::File(path, _)
        | Item::Link(path, _)
        | Item::Hard(path, _)) = &item;
        let told = |error: io::Error| format!("`{path}`: {error}");
        let mut make = |path: &Utf8Path| make_directories(host, into, path, &mut directories);
        make(path.parent().unwrap_or("".into()))?;
        match &item {
            Item::Directory(path) => make(path),
            Item::Link(path, target) => root.symlink(target, &into.join(path)).map_err(told),
            Item::Hard(path, target) => root
                .hard_link(&into.join(target), &into.join(path))
                .map_err(told),
            Item::File(path, mode) => {
                let new = NewFile {
                    content: &[],
                    mode: Some(*mode),
                    uid: None,
                    gid: None,
                };
                let mut file = root.create_file(&into.join(path), &new).map_err(told)?;
                io::copy(entry, &mut file).map(|_| ()).map_err(told)
            }
        }
    })?;
    Ok(unpacked)
}

/// What an archive contains, as it will be.
pub(super) fn list(
    archive: impl Read,
    strip: usize,
) -> Result<Vec<(Utf8PathBuf, PredictedPath)>, String> {
    let mut found = Vec::new();
    each(archive, strip, &mut |item, _| {
        let (Item::Directory(path)
        | Item::File(path, _)
        | Item::Link(path, _)
        | Item::Hard(path, _)) = &item;
        let above = path
            .ancestors()
            .skip(1)
            .filter(|part| !part.as_str().is_empty());
        found.extend(above.map(|part| (part.to_owned(), PredictedPath::Directory)));
        found.push(match item {
            Item::Directory(path) => (path, PredictedPath::Directory),
            Item::Link(path, target) => (path, PredictedPath::Link(target)),
            Item::File(path, _) | Item::Hard(path, _) => (path, PredictedPath::File(None)),
        });
        Ok(())
    })?;
    Ok(found)
}

type Take<'t, 'r> = dyn FnMut(Item, &mut Entry<'_, Box<dyn Read + 'r>>) -> Result<(), String> + 't;

/// Calls something for each entry that is left after stripping; stops at the first that is refused.
fn each<'r>(archive: impl Read + 'r, strip: usize, take: &mut Take<'_, 'r>) -> Result<(), String> {
    let reader = decompressed(archive).map_err(|error| error.to_string())?;
    // A bound on what is read at all: a small archive can unpack to any size.
    let reader: Box<dyn Read + 'r> = Box::new(reader.take(MAX_UNPACKED_BYTES + (1 << 20)));
    let mut archive = Archive::new(reader);
    let entries = archive
        .entries()
        .map_err(|error| format!("it is not a tar archive: {error}"))?;
    let (mut count, mut bytes) = (0_u64, 0_u64);
    for entry in entries {
        let mut entry = entry.map_err(|error| format!("it is not a whole tar archive: {error}"))?;
        count += 1;
        bytes = bytes.saturating_add(entry.size());
        if count > MAX_ARCHIVE_ENTRIES {
            return Err(format!("it has more than {MAX_ARCHIVE_ENTRIES} entries"));
        }
        if bytes > MAX_UNPACKED_BYTES {
            return Err(format!("it has more than {MAX_UNPACKED_BYTES} bytes"));
        }
        if let Some(item) = read_entry(&entry, strip)? {
            take(item, &mut entry)?;
        }
    }
    Ok(())
}

/// The tar archive in a stream that may be compressed.
fn decompressed<'r>(archive: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut reader = BufReader::new(archive);
    let start = reader.fill_buf()?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(flate2::bufread::MultiGzDecoder::new(reader)));
    }
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(Box::new(zstd::Decoder::with_buffer(reader)?));
    }
    Ok(Box::new(reader))
}

/// What an entry is; `None` for one that leaves nothing, and an error for one that is refused.
fn read_entry<R: Read>(entry: &Entry<'_, R>, strip: usize) -> Result<Option<Item>, String> {
    let kind = entry.header().entry_type();
    if matches!(kind, EntryType::XGlobalHeader) {
        return Ok(None);
    }
    let name = text(&entry.path_bytes())?;
    let names = names(&name).map_err(|reason| format!("`{name}`: {reason}"))?;
    let path: Utf8PathBuf = names.iter().skip(strip).collect();
    if names.len() <= strip {
        return Ok(None);
    }
    if path == RECORD {
        return Err(format!("`{name}`: the name is taken by this module"));
    }
    let mode = entry
        .header()
        .mode()
        .map_err(|error| format!("`{name}`: {error}"))?;
    if mode & 0o6000 != 0 && kind != EntryType::Directory {
        return Err(format!("`{name}`: it has a setuid or setgid bit"));
    }
    let link = || -> Result<String, String> {
        let target = entry
            .link_name_bytes()
            .ok_or_else(|| format!("`{name}`: the link leads nowhere"))?;
        text(&target)
    };
    match kind {
        EntryType::Directory => Ok(Some(Item::Directory(path))),
        EntryType::Regular | EntryType::Continuous => Ok(Some(Item::File(path, mode & 0o777))),
        EntryType::Symlink => {
            let target = link()?;
            if leads_out(&path, &target) {
                return Err(format!(
                    "`{name}`: the link to `{target}` leads out of the archive"
                ));
            }
            Ok(Some(Item::Link(path, target)))
        }
        EntryType::Link => {
            let target = link()?;
            let of_target = self::names(&target)
                .map_err(|reason| format!("`{name}`: the link to `{target}`: {reason}"))?;
            let target: Utf8PathBuf = of_target.iter().skip(strip).collect();
            Ok(Some(Item::Hard(path, target)))
        }
        _ => Err(format!(
            "`{name}`: it is a device, a pipe or something else that is no file"
        )),
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "a name in it is not UTF-8".to_owned())
}

/// The names of a path that stays inside.
fn names(path: &str) -> Result<Vec<&str>, &'static str> {
    if path.starts_with('/') {
        return Err("an absolute path");
    }
    let names: Vec<&str> = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.contains(&"..") || path.contains('\0') {
        return Err("a path that leads upwards");
    }
    Ok(names)
}

/// Whether a link leads out of the directory that its path is relative to.
fn leads_out(path: &Utf8Path, target: &str) -> bool {
    if target.starts_with('/') || target.is_empty() || target.contains('\0') {
        return true;
    }
    // Upwards only at the start, from directories that are no links: `a/..` may lead anywhere if `a` is a link.
    let names: Vec<&str> = target
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    let upwards = names.iter().take_while(|name| **name == "..").count();
    let depth = path.components().count().saturating_sub(1);
    upwards > depth || names[upwards..].contains(&"..")
}

/// Makes the directories of a path. What is there and no directory, such as a link of the archive itself, is refused.
fn make_directories(
    host: &Host,
    into: &Utf8Path,
    path: &Utf8Path,
    made: &mut BTreeSet<Utf8PathBuf>,
) -> Result<(), String> {
    let mut at = Utf8PathBuf::new();
    for name in path {
        at.push(name);
        if made.contains(&at) {
            continue;
        }
        let result = host.root.make_directory(&into.join(&at), 0o755);
        result.map_err(|error| format!("`{at}` cannot be made: {error}"))?;
        made.insert(at.clone());
    }
    Ok(())
}
