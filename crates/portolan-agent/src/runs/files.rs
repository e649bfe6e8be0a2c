//! Files of books: asked for by digest in parts, checked, and kept on the disk while they may be needed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::{Digest, Hasher};
use portolan_fleet::MAX_FILE_BYTES;
use portolan_modules::{BookFileError, BookFiles};

use crate::wire::{FilePart, FileRequest};

/// Bytes of files that no run needs, and that are kept for the next one.
const KEPT_BYTES: u64 = 128 << 20;

/// The files of books that this node has, by their digests.
#[derive(Debug)]
pub(crate) struct FileStore {
    directory: Utf8PathBuf,
    /// Files that the server does not have, or that came damaged, with the reason.
    failed: Mutex<BTreeMap<String, String>>,
    /// Files whose content was compared with their digests by this process: nothing syncs them, so a crash of the machine
    /// may have left others half written.
    checked: Mutex<BTreeSet<String>>,
    /// Digests of files that are needed although no run is at work, by what needs them.
    kept: Mutex<BTreeMap<&'static str, BTreeSet<String>>>,
}

/// How many files are on their way at the same time; the others wait.
const MAX_DOWNLOADS: usize = 8;

/// Files on their way, and those that wait.
#[derive(Default)]
pub(super) struct Downloads {
    active: BTreeMap<String, Download>,
    /// Digest and run, in the order in which they are asked for.
    waiting: VecDeque<(String, String)>,
}

struct Download {
    run: String,
    next: u32,
    bytes: u64,
}

impl FileStore {
    pub(crate) fn new(directory: Utf8PathBuf) -> Self {
        Self {
            directory,
            failed: Mutex::default(),
            checked: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Keeps the files of books that the node has for `what`, in place of those before.
    pub(crate) fn keep_for(&self, what: &'static str, digests: BTreeSet<String>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(what, digests);
    }

    fn path(&self, digest: &str) -> Utf8PathBuf {
        self.directory.join(digest)
    }

    fn part_path(&self, digest: &str) -> Utf8PathBuf {
        self.directory.join(format!("{digest}.part"))
    }

    /// Whether a file is here, and whole. One that is not is removed.
    fn has(&self, digest: &str) -> bool {
        let path = self.path(digest);
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if !path.exists() {
            checked.remove(digest);
            return false;
        }
        if checked.contains(digest) {
            return true;
        }
        let is_whole = digest_of(&path).is_ok_and(|found| found == digest);
        if is_whole {
            checked.insert(digest.to_owned());
        } else {
            let _ = std::fs::remove_file(&path);
        }
        is_whole
    }

    /// Whether all of these are here; an error if one will not come.
    pub(crate) fn has_all<'d>(
        &self,
        digests: impl IntoIterator<Item = &'d String>,
    ) -> Result<bool, String> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_whole = true;
        for digest in digests {
            if let Some(reason) = failed.get(digest) {
                return Err(reason.clone());
            }
            is_whole &= self.has(digest);
        }
        Ok(is_whole)
    }

    fn fail(&self, digest: &str, reason: String) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.insert(digest.to_owned(), reason);
    }

    /// Puts a part behind the others. The file has its name when all of them are there and its digest is right.
    fn append(&self, part: &FilePart) -> io::Result<()> {
        let path = self.part_path(&part.digest);
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(&part.content)?;
        if part.part + 1 < part.parts {
            return Ok(());
        }
        let found = digest_of(&path)?;
        if found != part.digest {
            std::fs::remove_file(&path)?;
            return Err(io::Error::other("its digest is another"));
        }
        std::fs::rename(&path, self.path(&part.digest))
    }

    /// Removes files that are not needed, the oldest first, until few bytes are left.
    pub(super) fn tidy(&self, needed: &BTreeSet<String>) -> io::Result<()> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = |digest: &str| kept.values().any(|digests| digests.contains(digest));
        let mut old: Vec<(SystemTime, u64, Utf8PathBuf)> = Vec::new();
        for entry in self.directory.read_dir_utf8()? {
            let entry = entry?;
            let digest = entry.file_name().trim_end_matches(".part");
            if needed.contains(digest) || is_kept(digest) {
                continue;
            }
            let about = entry.metadata()?;
            old.push((about.modified()?, about.len(), entry.path().to_owned()));
        }
        old.sort();
        let mut bytes: u64 = old.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in old {
            if bytes <= KEPT_BYTES {
                break;
            }
            std::fs::remove_file(&path)?;
            bytes -= length;
        }
        Ok(())
    }
}

impl Downloads {
    /// Begins to fetch what is missing: the first requests.
    pub(super) fn begin<'d>(
        &mut self,
        store: &FileStore,
        run: &str,
        digests: impl IntoIterator<Item = &'d String>,
    ) -> Vec<FileRequest> {
        for digest in digests {
            if !is_digest(digest) {
                store.fail(digest, format!("`{digest}` is no digest of a file"));
                continue;
            }
            let mut failed = store.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.remove(digest);
            drop(failed);
            let is_waiting = self.waiting.iter().any(|(waiting, _)| waiting == digest);
            if store.has(digest) || self.active.contains_key(digest) || is_waiting {
                continue;
            }
            self.waiting.push_back((digest.clone(), run.to_owned()));
        }
        let free = MAX_DOWNLOADS.saturating_sub(self.active.len());
        (0..free).map_while(|_| self.start_next(store)).collect()
    }

    /// The request for the first part of the next file that waits.
    fn start_next(&mut self, store: &FileStore) -> Option<FileRequest> {
        let (digest, run) = self.waiting.pop_front()?;
        let _ = std::fs::remove_file(store.part_path(&digest));
        let download = Download {
            run,
            next: 0,
            bytes: 0,
        };
        let request = download.request(&digest);
        self.active.insert(digest, download);
        Some(request)
    }

    /// What has to be asked for again over a new stream.
    pub(super) fn again(&self) -> Vec<FileRequest> {
        let all = self.active.iter();
        all.map(|(digest, download)| download.request(digest))
            .collect()
    }

    /// Takes a part; gives the request for the next one, of this file or another. Parts that nobody waits for are ignored.
    pub(super) fn take(&mut self, store: &FileStore, part: &FilePart) -> Option<FileRequest> {
        let download = self.active.get_mut(&part.digest)?;
        if part.parts == 0 {
            store.fail(
                &part.digest,
                "the server has lost a file of the book".to_owned(),
            );
            self.active.remove(&part.digest);
            return self.start_next(store);
        }
        if part.part != download.next {
            return None;
        }
        download.next += 1;
        download.bytes += part.content.len() as u64;
        let taken = if download.bytes > MAX_FILE_BYTES {
            Err(io::Error::other("it is too large"))
        } else {
            store.append(part)
        };
        if let Err(error) = taken {
            store.fail(
                &part.digest,
                format!("a file of the book cannot be kept: {error}"),
            );
            self.active.remove(&part.digest);
            return self.start_next(store);
        }
        if download.next < part.parts {
            return Some(download.request(&part.digest));
        }
        self.active.remove(&part.digest);
        self.start_next(store)
    }
}

impl Download {
    fn request(&self, digest: &str) -> FileRequest {
        FileRequest {
            run: self.run.clone(),
            digest: digest.to_owned(),
            part: self.next,
        }
    }
}

/// The files of one book, read from the store when they are needed.
pub(crate) struct StoredFiles {
    pub(crate) store: Arc<FileStore>,
    /// Digests by path.
    pub(crate) digests: BTreeMap<Utf8PathBuf, String>,
}

impl BookFiles for StoredFiles {
    fn read(&self, path: &Utf8Path) -> Result<Arc<[u8]>, BookFileError> {
        let digest = self.digests.get(path);
        let digest = digest.ok_or_else(|| BookFileError::Missing(path.to_owned()))?;
        let unreadable = |error| BookFileError::Unreadable(path.to_owned(), error);
        let content = std::fs::read(self.store.path(digest)).map_err(unreadable)?;
        if Digest::of(&content).hex() != *digest {
            // Something wrote into the agent's directory. The next run fetches it again.
            let _ = std::fs::remove_file(self.store.path(digest));
            return Err(unreadable(io::Error::other("it was changed on the disk")));
        }
        Ok(content.into())
    }

    fn list(&self, directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, BookFileError> {
        let below = self.digests.keys();
        let below = below.filter_map(|path| path.strip_prefix(directory).ok());
        let below: Vec<Utf8PathBuf> = below.map(Utf8Path::to_owned).collect();
        if below.is_empty() {
            return Err(BookFileError::Missing(directory.to_owned()));
        }
        Ok(below)
    }
}

fn digest_of(path: &Utf8Path) -> io::Result<String> {
    let mut hasher = Hasher::default();
    let mut file = File::open(path)?;
    let mut piece = vec![0; 64 << 10];
    loop {
        match io::Read::read(&mut file, &mut piece)? {
            0 => return Ok(hasher.finish().hex()),
            read => hasher.update(piece.get(..read).unwrap_or_default()),
        }
    }
}

/// Whether a text is a digest: it becomes the name of a file.
fn is_digest(text: &str) -> bool {
    let is_hex = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
    text.len() == 64 && text.bytes().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, FileStore) {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::from_path_buf(scratch.path().to_owned()).expect("UTF-8");
        (scratch, FileStore::new(path))
    }

    fn part(digest: &str, part: u32, parts: u32, content: &str) -> FilePart {
        FilePart {
            digest: digest.to_owned(),
            part,
            parts,
            content: content.to_owned().into(),
        }
    }

    #[test]
    fn a_file_comes_in_parts_and_only_with_its_digest() {
        let (_scratch, store) = store();
        let mut downloads = Downloads::default();
        let digest = Digest::of(b"hello world").hex();
        let asked = downloads.begin(&store, "run", [&digest]);
        assert_eq!(asked.len(), 1);
        let next = downloads.take(&store, &part(&digest, 0, 2, "hello "));
        assert_eq!(next.map(|next| next.part), Some(1));
        // A part that comes again, and one that nobody asked for, change nothing.
        assert_eq!(downloads.take(&store, &part(&digest, 0, 2, "hello ")), None);
        assert_eq!(downloads.take(&store, &part("other", 0, 1, "x")), None);
        assert_eq!(store.has_all([&digest]), Ok(false));
        assert_eq!(downloads.again().len(), 1);
        assert_eq!(downloads.take(&store, &part(&digest, 1, 2, "world")), None);
        assert_eq!(store.has_all([&digest]), Ok(true));
        assert!(downloads.begin(&store, "run", [&digest]).is_empty());
        let files = StoredFiles {
            digests: BTreeMap::from([("a/b".into(), digest.clone())]),
            store: Arc::new(store),
        };
        assert_eq!(&*files.read("a/b".into()).expect("a file"), b"hello world");
        assert_eq!(files.list("a".into()).expect("a list"), ["b"]);
        assert!(files.read("c".into()).is_err());
        std::fs::write(files.store.path(&digest), "other").expect("written");
        assert!(files.read("a/b".into()).is_err());
    }

    #[test]
    fn a_damaged_file_and_a_name_that_is_no_digest_are_refused() {
        let (_scratch, store) = store();
        let mut downloads = Downloads::default();
        let digest = Digest::of(b"right").hex();
        downloads.begin(&store, "run", [&digest]);
        downloads.take(&store, &part(&digest, 0, 1, "wrong"));
        assert!(store.has_all([&digest]).is_err());
        let outside = "../../etc/passwd".to_owned();
        assert!(downloads.begin(&store, "run", [&outside]).is_empty());
        assert!(store.has_all([&outside]).is_err());
        // The next run asks again.
        assert_eq!(downloads.begin(&store, "run", [&digest]).len(), 1);
        downloads.take(&store, &part(&digest, 0, 0, ""));
        assert!(store.has_all([&digest]).is_err());
    }

    #[test]
    fn few_files_are_on_their_way_at_the_same_time() {
        let (_scratch, store) = store();
        let mut downloads = Downloads::default();
        let contents: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let digests: Vec<String> = contents
            .iter()
            .map(|content| Digest::of(content.as_bytes()).hex())
            .collect();
        let mut asked = downloads.begin(&store, "run", &digests);
        assert_eq!(asked.len(), MAX_DOWNLOADS);
        while let Some(request) = asked.pop() {
            let at = digests.iter().position(|digest| *digest == request.digest);
            let content = &contents[at.expect("asked for")];
            asked.extend(downloads.take(&store, &part(&request.digest, 0, 1, content)));
            assert!(asked.len() <= MAX_DOWNLOADS);
        }
        assert_eq!(store.has_all(&digests), Ok(true));
    }

    #[test]
    fn files_that_nobody_needs_go_when_there_are_many_bytes() {
        let (_scratch, store) = store();
        for name in ["a", "b"] {
            let file = File::create(store.path(name)).expect("made");
            file.set_len(KEPT_BYTES).expect("sparse");
        }
        let is_there = |name: &str| store.path(name).exists();
        store.tidy(&BTreeSet::from(["a".to_owned()])).expect("tidy");
        assert!(is_there("a") && is_there("b"));
        let both = ["a", "b"].map(str::to_owned);
        store.keep_for("beacons", both.into());
        store.tidy(&BTreeSet::new()).expect("tidy");
        assert!(is_there("a") && is_there("b"));
        store.keep_for("beacons", BTreeSet::new());
        store.tidy(&BTreeSet::new()).expect("tidy");
        assert!(!is_there("a") || !is_there("b"));
    }

    /// Files are not synced: after a crash of the machine, one that is not whole is fetched again.
    #[test]
    fn a_file_that_a_crash_cut_is_fetched_again() {
        let (scratch, store) = store();
        let digest = Digest::of(b"whole").hex();
        Downloads::default().begin(&store, "run", [&digest]);
        store.append(&part(&digest, 0, 1, "whole")).expect("kept");
        std::fs::write(store.path(&digest), "who").expect("cut");
        let path = Utf8PathBuf::from_path_buf(scratch.path().to_owned()).expect("UTF-8");
        let after = FileStore::new(path);
        assert_eq!(
            Downloads::default().begin(&after, "run", [&digest]).len(),
            1
        );
        after.append(&part(&digest, 0, 1, "whole")).expect("kept");
        assert_eq!(after.has_all([&digest]), Ok(true));
    }
}
