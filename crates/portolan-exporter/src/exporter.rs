//! The exporter: the last good snapshot, the state, and the one task that scans.
//!
//! ```text
//!              data older than the ttl, watch lost, pause over
//!                              │
//!   Empty, Ready, Failed ──────▶ Scanning ───▶ Ready  (snapshot replaced in memory and on disk)
//!                                        └───▶ Failed (snapshot stays; next try after 1, 2, 4 … s, at most the ttl)
//! ```
//!
//! There is one task, so there are never two scans. Requests read the snapshot through a lock that is held only while
//! a pointer is copied.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portolan_audit::{Baseline, Checker, Day, Report};
use portolan_budget::RetryPolicy;
use portolan_client::EventPublisher;
use portolan_cluster::{Cluster, ErrorKind};
use portolan_engine::with_causes;

use crate::changes::{FindingChange, FindingLedger};
use crate::follow::Ended;
use crate::scan::{Knowledge, ScanError, ScanOptions, look};
use crate::snapshot::{Effort, Snapshot, SnapshotError};
use crate::state::State;
use crate::web::{Rendered, metrics};

/// The pause after a scan or a watch that failed; it doubles up to the time to live.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Makes the checker for a cluster that says this version of itself.
pub type CheckerFor = Box<dyn Fn(&str) -> Checker + Send + Sync>;

/// How an exporter works.
pub struct ExporterOptions {
    /// What to look at and how.
    pub scan: ScanOptions,
    /// By what it is judged; asked at every scan, since clusters are upgraded.
    pub checker: CheckerFor,
    /// How old the data may become.
    pub ttl: Duration,
    /// Where the last good snapshot is kept; nowhere without it.
    pub state: Option<PathBuf>,
    /// What is accepted.
    pub baseline: Option<Baseline>,
    /// How many series of single findings the metrics may have.
    pub finding_series: usize,
}

/// Takes a line for people about each scan that ended, well or not.
pub type ScanLog = Box<dyn Fn(String) + Send + Sync>;

/// What requests see.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) state: State,
    /// How the last scan failed; `None` when it did not.
    pub(crate) last_failure: Option<Failure>,
    /// Why the last snapshot could not be put on disk.
    pub(crate) unsaved: Option<String>,
    pub(crate) scans: u64,
    pub(crate) refreshes: u64,
    pub(crate) failures: u64,
    /// How many lists are followed between scans, and how many cannot be.
    pub(crate) followed: usize,
    pub(crate) unfollowed: usize,
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// The texts that follow from the snapshot alone, made once.
    pub(crate) rendered: Arc<Rendered>,
}

/// How a scan failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
}

/// Scans a cluster again and again and keeps the last good answer.
pub struct Exporter {
    view: RwLock<View>,
    scan_log: Option<ScanLog>,
    publisher: EventPublisher,
    pub(crate) options: ExporterOptions,
}

impl Exporter {
    /// Starts from the snapshot on disk, when there is one; a damaged one is told and replaced by the next scan.
    pub fn open(options: ExporterOptions) -> (Self, Option<SnapshotError>) {
        let (loaded, trouble) = match options.state.as_deref().map(Snapshot::load) {
            None => (None, None),
            Some(Ok(loaded)) => (loaded, None),
            Some(Err(error)) => (None, Some(error)),
        };
        let rendered = loaded.as_ref().map_or_else(Rendered::default, |loaded| {
            Rendered::of(&loaded.0, &loaded.1, options.finding_series)
        });
        let snapshot = loaded.map(|(snapshot, _)| Arc::new(snapshot));
        let view = View {
            state: if snapshot.is_some() {
                State::Ready
            } else {
                State::Empty
            },
            last_failure: None,
            unsaved: None,
            scans: 0,
            refreshes: 0,
            failures: 0,
            followed: 0,
            unfollowed: 0,
            rendered: Arc::new(rendered),
            snapshot,
        };
        let exporter = Self {
            view: RwLock::new(view),
            scan_log: None,
            publisher: EventPublisher::default(),
            options,
        };
        (exporter, trouble)
    }

    /// The same with a line for each scan.
    #[must_use]
    pub fn with_scan_log(self, log: ScanLog) -> Self {
        Self {
            scan_log: Some(log),
            ..self
        }
    }

    /// The same with a fleet server that is told what comes and goes, beginning with what changed shortly before a restart.
    #[must_use]
    pub fn with_events(self, publisher: EventPublisher) -> Self {
        let snapshot = self.snapshot();
        let ledger = snapshot.as_deref().and_then(|one| one.ledger.as_ref());
        for change in ledger.into_iter().flat_map(|ledger| ledger.recent(now())) {
            publisher.publish(change.event());
        }
        Self { publisher, ..self }
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.view().state
    }

    /// The last good answer.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.view().snapshot
    }

    /// What it found.
    pub fn report(&self) -> Option<Report> {
        serde_json::from_slice(&self.view().rendered.findings).ok()
    }

    /// The exporter's part of a scrape, without the last line `# EOF`.
    pub fn metrics(&self) -> String {
        metrics(&self.view()) + &self.publisher.metrics()
    }

    /// What requests see now.
    pub(crate) fn view(&self) -> View {
        // A writer only moves values in, so a poisoned lock still holds a whole view.
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        view.clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut View)) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut view);
    }

    /// Scans whenever the data are older than their time to live, until the future is dropped.
    pub async fn run(&self, cluster: &Cluster) -> Infallible {
        let pauses = RetryPolicy::new(FIRST_PAUSE, self.options.ttl.max(FIRST_PAUSE));
        let (mut scans, mut watches) = (pauses.backoff(), pauses.backoff());
        let mut young = self.young(cluster).await;
        loop {
            let (checker, left) = match young.take() {
                Some(young) => young,
                None => match self.scan(cluster).await {
                    Ok(checker) => (checker, self.options.ttl),
                    Err(_) => {
                        tokio::time::sleep(scans.next_wait()).await;
                        continue;
                    }
                },
            };
            scans.reset();
            match self.follow(cluster, &checker, left).await {
                Ended::Old => watches.reset(),
                Ended::Lost => tokio::time::sleep(watches.next_wait()).await,
            }
        }
    }

    /// What was loaded from disk may be young enough, and made by the same checker: then it is followed from there.
    async fn young(&self, cluster: &Cluster) -> Option<(Arc<Checker>, Duration)> {
        let snapshot = self.snapshot()?;
        let age = Duration::from_secs(now().saturating_sub(snapshot.taken_at));
        let left = self.options.ttl.checked_sub(age)?;
        // A cluster that does not answer is told by the scan that follows.
        let checker = (self.options.checker)(&cluster.version().await.ok()?);
        (snapshot.checker == checker.fingerprint()).then(|| (Arc::new(checker), left))
    }

    /// One scan now, with its state told before and after; gives the checker that judged.
    ///
    /// Whoever calls it sees to it that there is one at a time, as [`Self::run`] does.
    pub async fn scan(&self, cluster: &Cluster) -> Result<Arc<Checker>, ScanError> {
        self.change(|view| view.state = State::Scanning);
        let since = Instant::now();
        let before = cluster.requests();
        let scanned = self.look(cluster).await;
        let effort = Effort {
            took_ms: since.elapsed().as_millis() as u64,
            requests: cluster.requests() - before,
        };
        let published = match scanned {
            Ok((knowledge, checker)) => self
                .publish_scan(knowledge, &checker, effort)
                .await
                .map(|()| checker),
            Err(error) => Err(error),
        };
        if let Err(error) = &published {
            self.fail(error);
        }
        self.log_scan(published.as_ref().err(), effort);
        published
    }

    fn log_scan(&self, error: Option<&ScanError>, effort: Effort) {
        let Some(log) = &self.scan_log else { return };
        let seconds = effort.took_ms as f64 / 1000.0;
        log(match error {
            Some(error) => format!("scan failed after {seconds:.1} s: {}", with_causes(error)),
            None => format!(
                "scan ended after {seconds:.1} s and {} requests: {}",
                effort.requests,
                self.view().rendered.summary
            ),
        });
    }

    async fn look(&self, cluster: &Cluster) -> Result<(Knowledge, Arc<Checker>), ScanError> {
        let checker = Arc::new((self.options.checker)(&cluster.version().await?));
        let snapshot = self
            .snapshot()
            .filter(|snapshot| snapshot.checker == checker.fingerprint());
        let known = snapshot.as_ref().map(|snapshot| &snapshot.knowledge);
        let knowledge = look(cluster, &checker, &self.options.scan, known).await?;
        Ok((knowledge, checker))
    }

    async fn publish_scan(
        &self,
        knowledge: Knowledge,
        checker: &Checker,
        effort: Effort,
    ) -> Result<(), ScanError> {
        self.publish(knowledge, checker, now(), effort).await?;
        self.change(|view| {
            view.state = State::Ready;
            view.scans += 1;
            view.last_failure = None;
        });
        Ok(())
    }

    /// The same data with a few things changed: neither older nor younger than before.
    pub(crate) async fn publish_refresh(
        &self,
        knowledge: Knowledge,
        checker: &Checker,
    ) -> Result<(), ScanError> {
        let before = self.snapshot();
        let taken_at = before
            .as_ref()
            .map_or_else(now, |snapshot| snapshot.taken_at);
        let effort = before.map(|snapshot| snapshot.effort).unwrap_or_default();
        self.publish(knowledge, checker, taken_at, effort).await?;
        self.change(|view| view.refreshes += 1);
        Ok(())
    }

    async fn publish(
        &self,
        knowledge: Knowledge,
        checker: &Checker,
        taken_at: u64,
        effort: Effort,
    ) -> Result<(), ScanError> {
        let report = self.judge(&knowledge, checker);
        let (ledger, changes) = self.compare(&report, &knowledge);
        let snapshot = Snapshot {
            taken_at,
            effort,
            checker: checker.fingerprint(),
            knowledge,
            ledger,
        };
        let (directory, series) = (self.options.state.clone(), self.options.finding_series);
        // Writing waits for the disk.
        let work = tokio::task::spawn_blocking(move || {
            let saved = directory.map(|directory| snapshot.save(&report, &directory));
            let rendered = Rendered::of(&snapshot, &report, series);
            (snapshot, rendered, saved.and_then(Result::err))
        });
        let (snapshot, rendered, unsaved) = work
            .await
            .map_err(|error| ScanError::Worker(error.to_string()))?;
        self.change(|view| {
            view.unsaved = unsaved.map(|error| with_causes(&error));
            view.snapshot = Some(Arc::new(snapshot));
            view.rendered = Arc::new(rendered);
        });
        // What is told is on the disk, so that it is told under the same name after a kill.
        for change in changes {
            self.publisher.publish(change.event());
        }
        Ok(())
    }

    /// What is different from the answer before, if anybody is told.
    fn compare(
        &self,
        report: &Report,
        knowledge: &Knowledge,
    ) -> (Option<FindingLedger>, Vec<FindingChange>) {
        if !self.publisher.is_on() {
            return (None, Vec::new());
        }
        let unseen = knowledge.unseen();
        let before = self.snapshot();
        match before.as_deref().and_then(|one| one.ledger.as_ref()) {
            None => (Some(FindingLedger::first(report, unseen)), Vec::new()),
            Some(before) => {
                let (next, changes) = before.next(report, unseen, now());
                (Some(next), changes)
            }
        }
    }

    fn judge(&self, knowledge: &Knowledge, checker: &Checker) -> Report {
        let mut report = knowledge.report(checker);
        if let Some(baseline) = &self.options.baseline {
            let warnings = baseline.apply(&mut report.findings, Day::of_unix_seconds(now()));
            report.warnings.extend(warnings);
        }
        report
    }

    fn fail(&self, error: &ScanError) {
        let failure = Failure {
            kind: error.kind(),
            text: with_causes(error),
        };
        self.change(|view| {
            view.state = State::Failed;
            view.failures += 1;
            view.last_failure = Some(failure);
        });
    }
}

/// The wall clock, in seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
