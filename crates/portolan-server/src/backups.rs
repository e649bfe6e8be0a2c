//! Backups that a running server makes of its store, at fixed times.
//!
//! A store of a single server can be open in one process only, so nobody else could make them. Each backup is restored to a
//! scratch store and compared before it counts, and how old the newest is, is part of the server's status and metrics.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portolan_store::{Store, backup_into};
use serde_json::{Value, json};

use crate::clock::{TimeSource, rfc3339};

/// Where and when a server makes backups.
#[derive(Debug, Clone)]
pub struct BackupOptions {
    /// The directory in which each backup gets a file of its own.
    pub directory: PathBuf,
    /// How often one is made; the first at the start.
    pub every: Duration,
    /// How many are kept; the oldest are removed.
    pub keep: usize,
}

/// What became of the backups so far; clones share it.
#[derive(Clone)]
pub(crate) struct Backups(Arc<Shared>);

struct Shared {
    store: Store,
    time: Arc<dyn TimeSource>,
    options: Option<BackupOptions>,
    started: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: Option<MadeBackup>,
    /// Why the newest attempt failed, if it did.
    failure: Option<String>,
    failures: u64,
}

/// A backup that was restored and compared.
struct MadeBackup {
    at: Duration,
    file: PathBuf,
    records: u64,
    revision: u64,
}

impl Backups {
    pub(crate) fn new(
        store: Store,
        time: Arc<dyn TimeSource>,
        options: Option<BackupOptions>,
    ) -> Self {
        Self(Arc::new(Shared {
            started: time.now(),
            store,
            time,
            options,
            state: Mutex::default(),
        }))
    }

    /// Makes backups until the future is dropped.
    pub(crate) async fn run(self) {
        let Some(options) = self.0.options.clone() else {
            return std::future::pending().await;
        };
        let mut clock = tokio::time::interval(options.every.max(Duration::from_secs(1)));
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            clock.tick().await;
            self.make(&options).await;
        }
    }

    async fn make(&self, options: &BackupOptions) {
        let made = backup_into(&self.0.store, &options.directory, options.keep).await;
        let mut state = self.0.state.lock();
        match made {
            Ok((file, summary)) => {
                state.failure = None;
                state.last = Some(MadeBackup {
                    at: self.0.time.now(),
                    file,
                    records: summary.records,
                    revision: summary.revision,
                });
            }
            Err(error) => {
                tracing::error!(%error, "a backup could not be made");
                state.failure = Some(error.to_string());
                state.failures += 1;
            }
        }
    }

    /// What the status says; `null` for a server that makes no backups.
    pub(crate) fn status(&self) -> Value {
        let Some(options) = &self.0.options else {
            return Value::Null;
        };
        let state = self.0.state.lock();
        let last = state.last.as_ref().map(|last| {
            json!({
                "time": rfc3339(last.at), "file": last.file.display().to_string(),
                "records": last.records, "revision": last.revision,
                "ageSeconds": self.0.time.now().saturating_sub(last.at).as_secs(),
            })
        });
        json!({
            "directory": options.directory.display().to_string(), "everySeconds": options.every.as_secs(),
            "last": last, "failures": state.failures, "failure": state.failure,
        })
    }

    /// What is to be done about backups, in words.
    pub(crate) fn warning(&self) -> Option<String> {
        let options = self.0.options.as_ref()?;
        let state = self.0.state.lock();
        if let Some(failure) = &state.failure {
            let directory = options.directory.display();
            return Some(format!(
                "the last backup to `{directory}` failed: {failure}"
            ));
        }
        let newest = state.last.as_ref().map_or(self.0.started, |last| last.at);
        let age = self.0.time.now().saturating_sub(newest);
        // One that is just being made is not late.
        (age > options.every * 2).then(|| {
            let minutes = age.as_secs() / 60;
            format!("no backup was made for {minutes} minutes")
        })
    }

    /// Lines for `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        if self.0.options.is_none() {
            return String::new();
        }
        let state = self.0.state.lock();
        let last = state.last.as_ref().map_or(0, |last| last.at.as_secs());
        format!(
            "# HELP portolan_backup_last_verified_timestamp_seconds When the newest backup was restored and compared; 0 without one\n\
             # TYPE portolan_backup_last_verified_timestamp_seconds gauge\n\
             portolan_backup_last_verified_timestamp_seconds {last}\n\
             # HELP portolan_backup_failures Backups that could not be made\n\
             # TYPE portolan_backup_failures counter\n\
             portolan_backup_failures_total {}\n",
            state.failures
        )
    }
}
