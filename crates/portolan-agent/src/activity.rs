//! What applying runs are changing on this node, for the beacons that watch the same.
//!
//! A beacon is held while a run changes what it watches and until the run has ended; what it finds then is told with the run.
//! What a run changes is on the disk before it does, if a beacon watches it, so that a crash in between does not make the
//! change look like somebody else's.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use portolan_modules::{Change, Subject};
use portolan_trigger::{BeaconSubject, TouchedByRun};
use tokio::sync::Notify;

use crate::disk;

/// Of how many runs is remembered what they changed.
const MAX_RUNS: usize = 256;

/// What applying runs are changing on this node.
pub(crate) struct NodeActivity {
    file: Utf8PathBuf,
    inner: Mutex<Inner>,
    /// Told when a run begins to change something else, and when it ends.
    pub(crate) changed: Notify,
}

#[derive(Default)]
struct Inner {
    /// By the uuids of the runs.
    runs: BTreeMap<String, TouchedByRun>,
    /// What beacons watch.
    watched: Vec<BeaconSubject>,
    /// Whether there is a file.
    is_kept: bool,
}

/// What runs mean for a beacon.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunMark {
    /// The run that changes, or has changed, what it watches.
    pub(crate) run: Option<String>,
    /// Whether it must not look yet.
    pub(crate) is_held: bool,
}

/// Held by an applying run while it is at work.
pub(crate) struct RunAtWork {
    activity: Arc<NodeActivity>,
    run: String,
}

impl NodeActivity {
    /// Reads what runs had changed when the agent ended.
    pub(crate) fn open(file: Utf8PathBuf) -> Self {
        let text = std::fs::read(&file).unwrap_or_default();
        let mut runs: BTreeMap<String, TouchedByRun> =
            serde_json::from_slice(&text).unwrap_or_default();
        // A run that goes on changes something again; one that does not must not hold beacons for ever.
        let now = Timestamp::now();
        for run in runs.values_mut() {
            run.end(now);
        }
        let inner = Inner {
            is_kept: !runs.is_empty(),
            runs,
            watched: Vec::new(),
        };
        Self {
            file,
            inner: Mutex::new(inner),
            changed: Notify::new(),
        }
    }

    /// An applying run is at work until the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>, run: &str) -> RunAtWork {
        let mut inner = self.inner();
        if inner.runs.len() >= MAX_RUNS {
            inner.runs.retain(|_, run| run.is_at_work());
        }
        inner.runs.entry(run.to_owned()).or_default().go_on();
        drop(inner);
        self.changed.notify_one();
        RunAtWork {
            activity: Arc::clone(self),
            run: run.to_owned(),
        }
    }

    /// A run is about to change something. When this returns, beacons that watch it are held, also after a crash.
    pub(crate) fn touch(&self, run: &str, changes: &[Change]) -> io::Result<()> {
        let mut inner = self.inner();
        let mut touched = inner.runs.get(run).cloned().unwrap_or_default();
        touched.go_on();
        for change in changes {
            match &change.subject {
                Subject::Path(path) => touched.path(path.as_str()),
                Subject::Service(name) => touched.service(name),
                _ => {}
            }
        }
        let known = inner.runs.insert(run.to_owned(), touched.clone());
        if known.as_ref() == Some(&touched) {
            return Ok(());
        }
        let is_watched = inner.watched.iter().any(|one| touched.changes(one));
        if is_watched {
            let text = serde_json::to_vec(&inner.runs).unwrap_or_default();
            disk::write_durable(&self.file, &text)?;
            inner.is_kept = true;
        }
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes note of what beacons watch.
    pub(crate) fn watch(&self, watched: Vec<BeaconSubject>) {
        self.inner().watched = watched;
    }

    /// What runs mean for a beacon now.
    pub(crate) fn mark(&self, subject: &BeaconSubject, now: Timestamp) -> RunMark {
        let mut mark = RunMark::default();
        for (run, touched) in &self.inner().runs {
            let is_held = touched.pauses(subject, now);
            if touched.changes(subject) && (mark.run.is_none() || is_held) {
                mark.run = Some(run.clone());
            }
            mark.is_held |= is_held;
        }
        mark
    }

    /// The run that is at work.
    pub(crate) fn at_work(&self) -> Option<String> {
        let inner = self.inner();
        let mut runs = inner.runs.iter();
        let found = runs.find(|(_, run)| run.is_at_work());
        found.map(|(run, _)| run.clone())
    }

    /// Forgets runs that are over, after every beacon has its mark.
    pub(crate) fn forget_ended(&self, now: Timestamp) {
        self.inner().runs.retain(|_, run| !run.is_over(now));
    }

    /// Forgets on the disk what runs have changed, if none of them is known any more.
    pub(crate) fn forget_file(&self) {
        let mut inner = self.inner();
        if inner.is_kept && inner.runs.is_empty() {
            inner.is_kept = std::fs::remove_file(&self.file).is_err();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunAtWork {
    fn drop(&mut self) {
        if let Some(run) = self.activity.inner().runs.get_mut(&self.run) {
            run.end(Timestamp::now());
        }
        self.activity.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use portolan_digest::Digest;
    use portolan_modules::ChangeKind;

    use super::*;

    fn change(path: &str) -> Change {
        Change {
            subject: Subject::Path(path.into()),
            kind: ChangeKind::Update,
            before: Digest::of(b"a"),
            after: Digest::of(b"b"),
            diff: String::new(),
        }
    }

    fn path(path: &str) -> BeaconSubject {
        BeaconSubject::Path(path.to_owned())
    }

    #[test]
    fn a_run_holds_only_beacons_on_what_it_changes_also_after_a_crash() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = Utf8PathBuf::try_from(directory.path().join("touched.json")).expect("UTF-8");
        let activity = Arc::new(NodeActivity::open(file.clone()));
        activity.watch(vec![path("/etc/web.conf"), path("/etc/other")]);
        let now = Timestamp::now();
        let at_work = activity.begin("run");
        activity.touch("run", &[change("/srv/page")]).expect("kept");
        assert!(!file.exists(), "nobody watches it");
        activity
            .touch("run", &[change("/etc/web.conf")])
            .expect("kept");
        let mark = activity.mark(&path("/etc/web.conf"), now);
        assert_eq!((mark.run.as_deref(), mark.is_held), (Some("run"), true));
        assert_eq!(activity.mark(&path("/etc/other"), now), RunMark::default());
        assert_eq!(activity.at_work().as_deref(), Some("run"));
        assert!(activity.mark(&BeaconSubject::Everything, now).is_held);

        // The agent dies here, and another one comes.
        let next = NodeActivity::open(file.clone());
        let later = Timestamp::now() + std::time::Duration::from_secs(3);
        let mark = next.mark(&path("/etc/web.conf"), later);
        assert_eq!((mark.run.as_deref(), mark.is_held), (Some("run"), false));
        next.forget_file();
        assert!(file.exists());
        next.forget_ended(later);
        next.forget_file();
        assert!(!file.exists());
        assert_eq!(next.mark(&path("/etc/web.conf"), later), RunMark::default());

        drop(at_work);
        assert_eq!(activity.at_work(), None);
        assert!(
            activity
                .mark(&path("/etc/web.conf"), Timestamp::now())
                .is_held
        );
        assert!(!activity.mark(&path("/etc/web.conf"), later).is_held);
    }
}
