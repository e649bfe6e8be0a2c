//! The entries of a cache, and which of them can be removed.
//!
//! ```text
//!   pins ──▶ which source a content belongs to ─┐
//!   blobs, git mirrors ─────────────────────────┴─▶ CacheEntry ──CacheRules──▶ kept, removed, in use
//! ```
//!
//! Contents are read whole, so one that is not being written can be removed at any time. A git mirror is read piece
//! by piece: every user of a mirror holds a shared lock beside it, and it is not removed while somebody holds the
//! lock.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::time::{Duration, SystemTime};

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use portolan_oci::{Digest, Manifest, ManifestContent};

use crate::cache::{cache_error, note_use};
use crate::{Cache, Lock, Pin, PinKind, SourceError};

/// A content or a git mirror in a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// The kind of source it belongs to; `None` when nothing in the cache says.
    pub kind: Option<PinKind>,
    /// The address of that source; empty when nothing in the cache says.
    pub source: String,
    /// The version, tag or ref; empty when there is none, or when there are several.
    pub version: String,
    /// `sha256:…` of a content; empty for a git mirror.
    pub digest: String,
    /// Bytes on disk.
    pub size: u64,
    /// When it was used last, to about ten minutes.
    pub last_used: SystemTime,
    path: Utf8PathBuf,
}

/// What is removed from a cache.
#[derive(Debug, Clone, Default)]
pub struct CacheRules {
    /// Everything that was not used for this time.
    pub max_age: Option<Duration>,
    /// The least recently used, until no more than so many bytes are left.
    pub max_size: Option<u64>,
    /// Everything that none of these lock files needs, unless there are none.
    pub locks: Vec<Lock>,
}

/// What became of a cache's entries.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// Those that were removed.
    pub removed: Vec<CacheEntry>,
    /// Those that would have been, but somebody uses them now.
    pub in_use: Vec<CacheEntry>,
    /// Those that stay.
    pub kept: Vec<CacheEntry>,
}

/// A content that was written so recently may be about to be read by whoever wrote it.
const FRESH: Duration = Duration::from_mins(1);

impl Cache {
    /// Everything in the cache, the least recently used first.
    pub fn entries(&self) -> Result<Vec<CacheEntry>, SourceError> {
        let owners = self.owners(&self.pins()?);
        let mut entries = Vec::new();
        for shelf in list(&self.root().join("blobs"))? {
            for path in list(&shelf)? {
                let name = path.file_name().unwrap_or_default();
                let Ok(digest) = format!("sha256:{name}").parse::<Digest>() else {
                    continue;
                };
                let mut entry = CacheEntry::at(path)?;
                entry.digest = digest.to_string();
                if let Some(pin) = owners.get(&entry.digest) {
                    entry.belongs_to(pin);
                }
                entries.push(entry);
            }
        }
        for path in self.mirrors()? {
            let mut entry = CacheEntry::at(path)?;
            entry.kind = Some(PinKind::Git);
            let key = entry.path.as_str().to_owned();
            if let Some(pin) = owners.get(&key) {
                entry.source.clone_from(&pin.url);
            }
            entries.push(entry);
        }
        entries.sort_by(|one, two| {
            (one.last_used, one.path.as_str()).cmp(&(two.last_used, two.path.as_str()))
        });
        Ok(entries)
    }

    /// Removes what the rules name, except what is in use; with `dry_run` nothing is removed.
    pub fn collect(
        &self,
        rules: &CacheRules,
        now: SystemTime,
        dry_run: bool,
    ) -> Result<Collected, SourceError> {
        let entries = self.entries()?;
        let mut size: u64 = entries.iter().map(|entry| entry.size).sum();
        let needed = self.needed(&rules.locks);
        let mut collected = Collected::default();
        for entry in entries {
            let age = now.duration_since(entry.last_used).unwrap_or_default();
            let is_old = rules.max_age.is_some_and(|most| age > most);
            let is_unneeded = !rules.locks.is_empty() && !needed.contains(entry.key());
            let is_too_much = rules.max_size.is_some_and(|most| size > most);
            if !(is_old || is_unneeded || is_too_much) {
                collected.kept.push(entry);
            } else if Self::remove(&entry, now, dry_run)? {
                size = size.saturating_sub(entry.size);
                collected.removed.push(entry);
            } else {
                collected.in_use.push(entry);
            }
        }
        Ok(collected)
    }

    /// Removes an entry; `false` when it is in use.
    fn remove(entry: &CacheEntry, now: SystemTime, dry_run: bool) -> Result<bool, SourceError> {
        if entry.digest.is_empty() {
            return Self::remove_mirror(&entry.path, dry_run);
        }
        if now.duration_since(entry.last_used).unwrap_or_default() < FRESH {
            return Ok(false);
        }
        if !dry_run {
            remove_with(&entry.path, |path| std::fs::remove_file(path))?;
        }
        Ok(true)
    }

    fn remove_mirror(path: &Utf8Path, dry_run: bool) -> Result<bool, SourceError> {
        // Both locks stay as files: whoever waits for one must not wait for a file that is gone.
        let (used, fetching) = (path.with_extension("use"), path.with_extension("lock"));
        let (used, fetching) = (lock_file(&used)?, lock_file(&fetching)?);
        if used.try_lock().is_err() || fetching.try_lock().is_err() {
            return Ok(false);
        }
        if !dry_run {
            remove_with(path, |path| std::fs::remove_dir_all(path))?;
        }
        Ok(true)
    }

    /// Marks a git mirror as used until the file is dropped.
    pub(crate) fn use_mirror(path: &Utf8Path) -> Result<File, SourceError> {
        if let Some(parent) = path.parent() {
            let made = std::fs::create_dir_all(parent);
            made.map_err(|source| cache_error(parent.to_owned(), source))?;
        }
        let path = path.with_extension("use");
        let file = lock_file(&path)?;
        // Some file systems have no locks; there `gc` finds nothing in use.
        let _ = file.lock_shared();
        note_use(&path);
        Ok(file)
    }

    /// What requests were last resolved to.
    fn pins(&self) -> Result<Vec<Pin>, SourceError> {
        let paths = list(&self.root().join("pins"))?;
        let texts = paths.iter().filter_map(|path| std::fs::read(path).ok());
        Ok(texts
            .filter_map(|text| serde_json::from_slice(&text).ok())
            .collect())
    }

    /// The pin that each content and mirror belongs to, by digest or path.
    fn owners(&self, pins: &[Pin]) -> BTreeMap<String, Pin> {
        let mut owners = BTreeMap::new();
        for pin in pins {
            for key in self.parts(pin) {
                owners.insert(key, pin.clone());
            }
        }
        owners
    }

    /// The keys of everything that the pins of lock files need.
    fn needed(&self, locks: &[Lock]) -> HashSet<String> {
        let pins = locks.iter().flat_map(Lock::iter);
        pins.flat_map(|(_, pin)| self.parts(pin)).collect()
    }

    /// The contents that a pin stands for, by digest, or its mirror, by path.
    fn parts(&self, pin: &Pin) -> Vec<String> {
        if pin.kind == PinKind::Git {
            return vec![self.git_directory(&pin.url).into_string()];
        }
        let mut parts = vec![pin.digest.clone()];
        let content = pin.digest.parse::<Digest>().ok();
        let content = content.and_then(|digest| self.peek(&digest));
        match (pin.kind, content) {
            // A chart may come from a registry as well.
            (PinKind::Oci | PinKind::Chart, Some(content)) => parts.extend(layers(content)),
            (PinKind::Bucket, Some(content)) => {
                let objects: Vec<(String, String)> =
                    serde_json::from_slice(&content).unwrap_or_default();
                parts.extend(objects.into_iter().map(|(_, digest)| digest));
            }
            _ => {}
        }
        parts
    }

    fn mirrors(&self) -> Result<Vec<Utf8PathBuf>, SourceError> {
        let mut paths = list(&self.root().join("git"))?;
        paths.retain(|path| path.extension() == Some("git") && path.is_dir());
        Ok(paths)
    }
}

// === impl CacheEntry ===

impl CacheEntry {
    fn at(path: Utf8PathBuf) -> Result<Self, SourceError> {
        let read = || {
            let metadata = std::fs::metadata(&path)?;
            let used = std::fs::metadata(path.with_extension("use")).ok();
            let used = used.as_ref().filter(|_| metadata.is_dir());
            Ok((size_of(&path)?, used.unwrap_or(&metadata).modified()?))
        };
        let (size, last_used) = read().map_err(|source| cache_error(path.clone(), source))?;
        Ok(Self {
            kind: None,
            source: String::new(),
            version: String::new(),
            digest: String::new(),
            size,
            last_used,
            path,
        })
    }

    fn belongs_to(&mut self, pin: &Pin) {
        self.kind = Some(pin.kind);
        self.source.clone_from(&pin.url);
        self.version.clone_from(&pin.version);
    }

    /// What tells it from other entries: the digest of a content, the path of a mirror.
    fn key(&self) -> &str {
        if self.digest.is_empty() {
            self.path.as_str()
        } else {
            &self.digest
        }
    }
}

/// The layers of a manifest; a content that is none has no layers.
fn layers(content: Vec<u8>) -> Vec<String> {
    let manifest = Manifest::parse("manifest", content);
    match manifest.map(|manifest| manifest.content) {
        Ok(ManifestContent::Image(image)) => {
            let layers = image.layers.iter();
            layers.map(|layer| layer.digest.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

fn lock_file(path: &Utf8Path) -> Result<File, SourceError> {
    let opened = File::options().create(true).append(true).open(path);
    opened.map_err(|source| cache_error(path.to_owned(), source))
}

/// The paths in a directory, sorted; one that is not there has none.
fn list(directory: &Utf8Path) -> Result<Vec<Utf8PathBuf>, SourceError> {
    let entries = match directory.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(cache_error(directory.to_owned(), source)),
    };
    let mut paths: Vec<Utf8PathBuf> = entries.flatten().map(Utf8DirEntry::into_path).collect();
    paths.sort();
    Ok(paths)
}

fn size_of(path: &Utf8Path) -> std::io::Result<u64> {
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut size = 0;
    for entry in path.read_dir_utf8()? {
        size += size_of(entry?.path())?;
    }
    Ok(size)
}

/// Removes something; somebody else may have been quicker.
fn remove_with(
    path: &Utf8Path,
    remove: impl FnOnce(&Utf8Path) -> std::io::Result<()>,
) -> Result<(), SourceError> {
    match remove(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|source| cache_error(path.to_owned(), source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    struct Desk {
        _directory: tempfile::TempDir,
        cache: Cache,
    }

    impl Desk {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = Utf8Path::from_path(directory.path()).unwrap().join("cache");
            Self {
                _directory: directory,
                cache: Cache::new(path),
            }
        }

        /// A content that was used some days ago.
        fn content(&self, text: &str, days: u32) -> Digest {
            let digest = self.cache.put(text.as_bytes()).unwrap();
            let entries = self.cache.entries().unwrap();
            let digest_text = digest.to_string();
            let entry = entries.iter().find(|entry| entry.digest == digest_text);
            let file = File::options()
                .append(true)
                .open(&entry.unwrap().path)
                .unwrap();
            file.set_modified(SystemTime::now() - DAY * days).unwrap();
            digest
        }

        fn mirror(&self, url: &str) -> Utf8PathBuf {
            let path = self.cache.git_directory(url);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            path
        }

        fn collect(&self, rules: &CacheRules) -> Vec<String> {
            let collected = self.cache.collect(rules, SystemTime::now(), false).unwrap();
            let removed = collected.removed.iter();
            removed.map(|entry| entry.digest.clone()).collect()
        }
    }

    fn pin(kind: PinKind, url: &str, digest: &Digest) -> Pin {
        Pin {
            kind,
            url: url.to_owned(),
            version: "1.0.0".to_owned(),
            digest: digest.to_string(),
        }
    }

    #[test]
    fn a_content_is_listed_with_the_source_that_it_belongs_to() {
        let desk = Desk::new();
        let digest = desk.content("chart", 3);
        let pin = pin(PinKind::Chart, "https://a/web-1.0.0.tgz", &digest);
        desk.cache.remember("chart https://a web 1", &pin).unwrap();
        desk.content("nobody knows", 1);
        let entries = desk.cache.entries().unwrap();
        let shown: Vec<_> = entries
            .iter()
            .map(|entry| (entry.kind, entry.source.as_str(), entry.size))
            .collect();
        assert_eq!(
            shown,
            [
                (Some(PinKind::Chart), "https://a/web-1.0.0.tgz", 5),
                (None, "", 12)
            ]
        );
    }

    #[test]
    fn what_was_not_used_for_long_is_removed() {
        let desk = Desk::new();
        let old = desk.content("old", 40);
        let new = desk.content("new", 2);
        let rules = CacheRules {
            max_age: Some(DAY * 30),
            ..CacheRules::default()
        };
        assert_eq!(desk.collect(&rules), [old.to_string()]);
        assert!(desk.cache.contains(&new) && !desk.cache.contains(&old));
    }

    #[test]
    fn the_least_recently_used_go_until_the_rest_fits() {
        let desk = Desk::new();
        let (one, two) = (desk.content("1111", 3), desk.content("2222", 2));
        let three = desk.content("3333", 1);
        let rules = CacheRules {
            max_size: Some(5),
            ..CacheRules::default()
        };
        assert_eq!(desk.collect(&rules), [one.to_string(), two.to_string()]);
        assert!(desk.cache.contains(&three));
    }

    #[test]
    fn what_no_lock_file_needs_is_removed() {
        let desk = Desk::new();
        let layer = desk.content("layer", 9);
        let manifest = format!(
            r#"{{"schemaVersion":2,"config":{{"mediaType":"a","digest":"{layer}","size":5}},"layers":[{{"mediaType":"b","digest":"{layer}","size":5}}]}}"#
        );
        let manifest = desk.content(&manifest, 9);
        let other = desk.content("other", 9);
        let mut lock = Lock::default();
        lock.insert("oci", pin(PinKind::Oci, "oci://a/b", &manifest));
        let rules = CacheRules {
            locks: vec![lock],
            ..CacheRules::default()
        };
        assert_eq!(desk.collect(&rules), [other.to_string()]);
    }

    #[test]
    fn a_mirror_in_use_and_a_content_just_written_stay() {
        let desk = Desk::new();
        let path = desk.mirror("https://a/used.git");
        let idle = desk.mirror("https://a/idle.git");
        let used = Cache::use_mirror(&path).unwrap();
        desk.cache.put(b"fresh").unwrap();
        let rules = CacheRules {
            max_size: Some(0),
            ..CacheRules::default()
        };
        let collected = desk
            .cache
            .collect(&rules, SystemTime::now(), false)
            .unwrap();
        assert_eq!(collected.in_use.len(), 2);
        assert!(path.exists() && !idle.exists());
        drop(used);
        let collected = desk
            .cache
            .collect(&rules, SystemTime::now(), false)
            .unwrap();
        assert_eq!(collected.removed.len(), 1);
        assert!(!path.exists());
    }

    #[test]
    fn a_dry_run_removes_nothing() {
        let desk = Desk::new();
        let old = desk.content("old", 40);
        let rules = CacheRules {
            max_age: Some(DAY),
            ..CacheRules::default()
        };
        let collected = desk.cache.collect(&rules, SystemTime::now(), true).unwrap();
        assert_eq!(collected.removed.len(), 1);
        assert!(desk.cache.contains(&old));
    }
}
