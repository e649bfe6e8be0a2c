//! What makes `watch` look at the files again: a file event of the operating system, or a timer.
//!
//! ```text
//! inotify ──▶ channel ─┐
//! clock ───────────────┼──▶ Wakeups::next ──(until it is quiet)──▶ look
//! Ctrl-C ──────────────┘
//! ```

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use portolan_engine::CancellationToken;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until, timeout};

use crate::app::App;

/// A save is several events; this long without one means that it is over.
const QUIET: Duration = Duration::from_millis(15);

/// Something that never becomes quiet is looked at all the same.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often we look without being told: directories that were replaced tell nobody.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// Why we woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wakeup {
    /// Something was touched.
    Told,
    /// Nobody said anything for a while.
    Time,
    /// Ctrl-C.
    Stop,
}

/// Wakes us up.
pub(super) struct Wakeups<'a> {
    runtime: &'a Runtime,
    interrupted: &'a CancellationToken,
    root: Utf8PathBuf,
    sender: UnboundedSender<()>,
    touched: UnboundedReceiver<()>,
    watcher: Option<RecommendedWatcher>,
}

impl<'a> Wakeups<'a> {
    /// Begins to listen for what happens below a directory.
    pub(super) fn below(root: &Utf8Path, app: &'a App) -> io::Result<Self> {
        let (sender, touched) = unbounded_channel();
        let mut wakeups = Self {
            runtime: app.runtime()?,
            interrupted: app.cancellation()?,
            root: root.to_owned(),
            sender,
            touched,
            watcher: None,
        };
        wakeups.listen_anew();
        Ok(wakeups)
    }

    /// Whether the operating system tells us; otherwise only time does.
    pub(super) fn is_told(&self) -> bool {
        self.watcher.is_some()
    }

    /// Listens to the directories that are there now, in case some were replaced.
    pub(super) fn listen_anew(&mut self) {
        let sender = self.sender.clone();
        let tell = move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| is_write(&event)) {
                // Nobody is left to wake up when the receiver is gone.
                let _ = sender.send(());
            }
        };
        let watcher = notify::recommended_watcher(tell).and_then(|mut watcher| {
            watcher.watch(self.root.as_std_path(), RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        self.watcher = watcher.ok();
    }

    /// Waits until there is a reason to look.
    pub(super) fn next(&mut self) -> Wakeup {
        let touched = &mut self.touched;
        self.runtime.block_on(async {
            tokio::select! {
                () = self.interrupted.cancelled() => Wakeup::Stop,
                _ = touched.recv() => {
                    until_quiet(touched).await;
                    Wakeup::Told
                }
                () = sleep_until(Instant::now() + LOOK_ANYWAY) => Wakeup::Time,
            }
        })
    }
}

async fn until_quiet(touched: &mut UnboundedReceiver<()>) {
    let patience = Instant::now() + PATIENCE;
    while Instant::now() < patience {
        if timeout(QUIET, touched.recv()).await.is_err() {
            return;
        }
    }
}

/// Reading is no reason to look, and neither is what git does for itself.
fn is_write(event: &Event) -> bool {
    let of_git =
        |path: &std::path::PathBuf| path.components().any(|part| part.as_os_str() == ".git");
    let only_git = !event.paths.is_empty() && event.paths.iter().all(of_git);
    !matches!(event.kind, EventKind::Access(_)) && !only_git
}
