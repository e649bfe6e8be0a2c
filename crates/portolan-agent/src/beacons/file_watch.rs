//! Hints of the kernel that a file has changed. They only make a look earlier: the interval finds what they miss.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// Hints that wait; if there are more, everything is looked at.
const WAITING: usize = 256;

/// Watches directories.
pub(super) struct FileWatch {
    /// `None` if the kernel gives no hints.
    watcher: Option<RecommendedWatcher>,
    hints: mpsc::Receiver<Hint>,
    watched: BTreeSet<Utf8PathBuf>,
}

/// What may have changed.
#[derive(Debug)]
pub(super) struct Hint {
    /// Paths on the machine; none means that any file may have changed.
    paths: Vec<Utf8PathBuf>,
}

impl Hint {
    /// Whether a file, or something in a directory, may have changed.
    pub(super) fn concerns(&self, path: &Utf8Path) -> bool {
        let is_near = |one: &Utf8PathBuf| one.starts_with(path) || path.starts_with(one);
        self.paths.is_empty() || self.paths.iter().any(is_near)
    }
}

impl FileWatch {
    pub(super) fn new() -> Self {
        let (sender, hints) = mpsc::channel(WAITING);
        let tell = move |event: notify::Result<Event>| {
            let event = event.unwrap_or_default();
            if event.kind.is_access() {
                return;
            }
            let paths = event.paths.into_iter();
            let paths = paths.filter_map(|path| Utf8PathBuf::try_from(path).ok());
            let hint = Hint {
                paths: paths.collect(),
            };
            // A full queue is not waited for: the interval finds the change.
            let _ = sender.try_send(hint);
        };
        let watcher = notify::recommended_watcher(tell);
        let watcher = watcher
            .map_err(|error| tracing::warn!(%error, "the kernel gives no hints of changed files"));
        Self {
            watcher: watcher.ok(),
            hints,
            watched: BTreeSet::new(),
        }
    }

    /// Watches what is at a path, and its directory for when it is replaced. To be called again from time to time: a
    /// directory that is made anew is another one.
    pub(super) fn watch(&mut self, path: &Utf8Path) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let directory = path.is_dir().then_some(path);
        for place in path.parent().into_iter().chain(directory) {
            let watched = watcher.watch(place.as_std_path(), RecursiveMode::NonRecursive);
            if watched.is_ok() {
                self.watched.insert(place.to_owned());
            }
        }
    }

    /// Ends to watch directories that no path needs.
    pub(super) fn retain(&mut self, paths: &[Utf8PathBuf]) {
        let is_needed = |place: &Utf8PathBuf| {
            let needs = |path: &Utf8PathBuf| path == place || path.parent() == Some(place);
            paths.iter().any(needs)
        };
        let ended: Vec<_> = self
            .watched
            .extract_if(.., |place| !is_needed(place))
            .collect();
        for place in ended {
            if let Some(watcher) = &mut self.watcher {
                let _ = watcher.unwatch(place.as_std_path());
            }
        }
    }

    /// Waits for a hint.
    pub(super) async fn next(&mut self) -> Hint {
        match self.hints.recv().await {
            Some(hint) => hint,
            None => std::future::pending().await,
        }
    }
}
