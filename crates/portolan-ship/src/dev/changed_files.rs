//! The files that were saved since the last look, as the operating system tells it.
//!
//! If it cannot watch all directories, for its limits are reached, a list of all files is compared every second
//! instead. If too many files change at once, it is only known that anything may have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use portolan_engine::with_causes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// A save is several events; this long without one means that it is over.
const QUIET: Duration = Duration::from_millis(30);

/// Something that never becomes quiet is looked at all the same.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often files are compared if nobody tells of changes.
const POLL: Duration = Duration::from_secs(1);

/// So many changed files are known by name.
const MAX_PATHS: usize = 10_000;

/// So many files are compared.
const MAX_FILES: usize = 1_000_000;

/// Files that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// Their paths, as below the directory that was named.
    pub paths: BTreeSet<Utf8PathBuf>,
    /// Whether others may have changed too.
    pub is_partial: bool,
}

impl FileChanges {
    /// Adds others.
    pub fn extend(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.is_partial |= other.is_partial;
    }
}

/// Watches the files below a directory.
pub struct ChangedFiles {
    root: Utf8PathBuf,
    shared: Arc<Shared>,
    /// Held: it tells as long as it is there.
    watcher: Option<RecommendedWatcher>,
    /// The files at the last look, if they are compared.
    known: Option<Snapshot>,
    why_polling: Option<String>,
}

struct Shared {
    /// Directories whose changes do not count.
    never: Vec<Utf8PathBuf>,
    pending: Mutex<Pending>,
    touched: Notify,
}

#[derive(Default)]
struct Pending {
    changes: FileChanges,
    /// Directories that are new. The system does not tell of files that they had before it watched them.
    directories: BTreeSet<Utf8PathBuf>,
    /// Why the operating system no longer tells of everything.
    trouble: Option<String>,
}

type Snapshot = BTreeMap<Utf8PathBuf, (SystemTime, u64)>;

impl ChangedFiles {
    /// Begins to watch; changes below `never` and of git do not count.
    pub fn below(root: &Utf8Path, never: Vec<Utf8PathBuf>) -> Self {
        let mut files = Self::unwatched(root, never);
        match files.listen() {
            Ok(watcher) => files.watcher = Some(watcher),
            Err(error) => files.poll(with_causes(&error)),
        }
        files
    }

    /// The same without the help of the operating system: files are compared every second.
    pub fn compared(root: &Utf8Path, never: Vec<Utf8PathBuf>, why: &str) -> Self {
        let mut files = Self::unwatched(root, never);
        files.poll(why.to_owned());
        files
    }

    fn unwatched(root: &Utf8Path, never: Vec<Utf8PathBuf>) -> Self {
        let shared = Arc::new(Shared {
            never,
            pending: Mutex::default(),
            touched: Notify::new(),
        });
        Self {
            root: root.to_owned(),
            shared,
            watcher: None,
            known: None,
            why_polling: None,
        }
    }

    /// Why files are compared, if the operating system does not tell of changes.
    pub fn why_polling(&self) -> Option<&str> {
        self.why_polling.as_deref()
    }

    /// Waits until files change and it is quiet again. Changes are kept if this is dropped before it returns.
    pub async fn next(&mut self) -> FileChanges {
        loop {
            let trouble = self.shared.lock().trouble.take();
            if let Some(trouble) = trouble {
                self.poll(trouble);
                return self.everything();
            }
            if self.watcher.is_some() {
                if self.shared.lock().changes.is_none() {
                    self.shared.touched.notified().await;
                }
                self.until_quiet().await;
            } else {
                sleep(POLL).await;
                self.compare().await;
            }
            self.shared.add_files_of_new_directories();
            let mut pending = self.shared.lock();
            if pending.trouble.is_none() && !pending.changes.is_none() {
                return std::mem::take(&mut pending.changes);
            }
        }
    }

    fn listen(&self) -> notify::Result<RecommendedWatcher> {
        let shared = Arc::clone(&self.shared);
        let mut watcher = notify::recommended_watcher(move |event| shared.take(event))?;
        watcher.watch(self.root.as_std_path(), RecursiveMode::Recursive)?;
        Ok(watcher)
    }

    /// Compares files from now on.
    fn poll(&mut self, why: String) {
        self.watcher = None;
        self.known = Some(snapshot(&self.root, &self.shared));
        self.why_polling = Some(why);
    }

    fn everything(&self) -> FileChanges {
        self.shared.lock().changes = FileChanges::default();
        FileChanges {
            paths: BTreeSet::new(),
            is_partial: true,
        }
    }

    async fn until_quiet(&self) {
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            if timeout(QUIET, self.shared.touched.notified())
                .await
                .is_err()
            {
                return;
            }
        }
    }

    async fn compare(&mut self) {
        let (root, shared) = (self.root.clone(), Arc::clone(&self.shared));
        let found = tokio::task::spawn_blocking(move || snapshot(&root, &shared)).await;
        // The task is only cancelled with the whole process.
        let Ok(found) = found else { return };
        let known = self.known.get_or_insert_default();
        let mut pending = self.shared.lock();
        let is_new = |(path, state): &(&Utf8PathBuf, _)| known.get(*path) != Some(*state);
        for (path, _) in found.iter().filter(is_new) {
            pending.changes.add(path.clone());
        }
        for path in known.keys().filter(|path| !found.contains_key(*path)) {
            pending.changes.add(path.clone());
        }
        drop(pending);
        self.known = Some(found);
    }
}

// === impl FileChanges ===

impl FileChanges {
    fn is_none(&self) -> bool {
        self.paths.is_empty() && !self.is_partial
    }

    fn add(&mut self, path: Utf8PathBuf) {
        if self.paths.len() < MAX_PATHS {
            self.paths.insert(path);
        } else {
            self.is_partial = true;
        }
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, event: notify::Result<Event>) {
        let mut pending = self.lock();
        match event {
            Err(error) => pending.trouble = Some(with_causes(&error)),
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) => {
                pending.changes.is_partial |= event.need_rescan();
                let may_be_new = matches!(
                    event.kind,
                    EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_))
                );
                for path in event.paths {
                    match Utf8PathBuf::from_path_buf(path) {
                        Ok(path) if self.counts(&path) => {
                            if may_be_new && path.is_dir() {
                                pending.directories.insert(path.clone());
                            }
                            pending.changes.add(path);
                        }
                        // A name that is no UTF-8 is refused by builders as well.
                        _ => {}
                    }
                }
            }
        }
        if pending.trouble.is_some() || !pending.changes.is_none() {
            self.touched.notify_one();
        }
    }

    fn add_files_of_new_directories(&self) {
        let directories = std::mem::take(&mut self.lock().directories);
        for directory in directories {
            let files = snapshot(&directory, self);
            let mut pending = self.lock();
            for path in files.into_keys() {
                pending.changes.add(path);
            }
        }
    }

    fn counts(&self, path: &Utf8Path) -> bool {
        let of_git = path.components().any(|part| part.as_str() == ".git");
        !of_git && !self.never.iter().any(|never| path.starts_with(never))
    }
}

/// All files below a directory, without those that do not count.
fn snapshot(root: &Utf8Path, shared: &Shared) -> Snapshot {
    let mut files = Snapshot::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        // What is gone in the meantime has no files.
        let Ok(entries) = directory.read_dir_utf8() else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path().to_owned();
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if !shared.counts(&path) || files.len() >= MAX_FILES {
                continue;
            }
            if metadata.is_dir() {
                directories.push(path);
            } else {
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.insert(path, (modified, metadata.len()));
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn trouble_while_watching_means_that_anything_may_have_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(directory.path()).expect("UTF-8");
        let mut files = ChangedFiles::below(root, Vec::new());
        let full = notify::Error::new(notify::ErrorKind::MaxFilesWatch);
        files.shared.take(Err(full));
        assert!(files.next().await.is_partial);
        assert!(files.why_polling().is_some());
        fs::write(root.join("a"), "text").expect("a file");
        assert_eq!(files.next().await.paths, [root.join("a")].into());
    }

    #[test]
    fn more_changes_than_are_kept_by_name_are_told_as_partly_known() {
        let mut changes = FileChanges::default();
        for number in 0..=MAX_PATHS {
            changes.add(format!("/{number}").into());
        }
        assert_eq!(changes.paths.len(), MAX_PATHS);
        assert!(changes.is_partial);
    }
}
