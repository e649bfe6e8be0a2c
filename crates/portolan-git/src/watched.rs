//! Runs work with a remote under limits on time and bytes.
//!
//! gix can be stopped while it reads a pack, but not while it waits for refs. So the work runs on its own thread: the
//! caller checks the clock and the size of the pack on disk, and returns when one of them exceeds its limit. The
//! abandoned thread ends when it next checks the stop flag, or with its connection.
//!
//! gix also panics on some answers that break the protocol. Such a panic ends only that thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use camino::Utf8Path;

use crate::{FetchOptions, GitError};

/// How often clock and size are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long work that was told to stop may take to do so.
const GRACE: Duration = Duration::from_secs(1);

/// The name of threads that talk to a remote.
pub const REMOTE_THREAD: &str = "git remote";

/// How watched work ended.
pub(crate) enum Watched<T> {
    /// By itself.
    Ended(Result<T, GitError>),
    /// It did not within its time.
    TooSlow,
    /// It brought too much.
    TooLarge,
    /// It brought something that gix cannot make sense of.
    Garbled,
}

/// Does something that fetches into a mirror, within the limits of the options.
pub(crate) fn watch<T: Send + 'static>(
    mirror: &Utf8Path,
    options: &FetchOptions,
    act: impl FnOnce(&AtomicBool) -> Result<T, GitError> + Send + 'static,
) -> Watched<T> {
    let packs = mirror.join("objects/pack");
    let before = size(&packs);
    let stop = Arc::new(AtomicBool::new(false));
    let (give, take) = sync_channel(1);
    let told = Arc::clone(&stop);
    let work = std::thread::Builder::new().name(REMOTE_THREAD.to_owned());
    let started = work.spawn(move || {
        // Nobody takes it when the time was up.
        let _ = give.send(act(&told));
    });
    if let Err(source) = started {
        let directory = mirror.to_owned();
        return Watched::Ended(Err(GitError::Mirror { directory, source }));
    }
    let deadline = Instant::now() + options.timeout;
    loop {
        match take.recv_timeout(LOOK_EVERY) {
            Ok(outcome) => return Watched::Ended(outcome),
            // The thread ended without an outcome: it panicked.
            Err(RecvTimeoutError::Disconnected) => return Watched::Garbled,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let brought = size(&packs).saturating_sub(before);
        if brought > 0 {
            options.progress.report(brought, None);
        }
        let gives_up = if brought > options.max_bytes {
            Watched::TooLarge
        } else if Instant::now() >= deadline {
            Watched::TooSlow
        } else {
            continue;
        };
        stop.store(true, Ordering::Relaxed);
        let _ = take.recv_timeout(GRACE);
        return gives_up;
    }
}

/// The bytes of the files in a directory; what is not there has none.
fn size(directory: &Utf8Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    sizes.sum()
}
