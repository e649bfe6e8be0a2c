//! A feed: the changes of one list, over as many watches as needed.
//!
//! ```text
//! watch ──events──▶ Source ──▶ news
//!   │ ended by the server ─▶ another watch from the same state
//!   │ 410, the state is too old ─▶ list again, then watch from there
//!   └ failed ─▶ pause, a few times; then the feed ends
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_audit::{Checker, Finding};
use portolan_budget::RetryPolicy;
use portolan_cluster::{
    Cluster, ClusterError, Driver, ErrorKind, Event, Metadata, Query, RecordRef, Resource,
};
use tokio::sync::{Semaphore, mpsc};

use super::news::{News, QueuedNews};
use crate::scan::{Live, Reading, ScanOptions, check_written, list, reading, stamp};

/// The least time between two watches, for servers that end them at once.
const REOPEN: Duration = Duration::from_secs(1);

/// The pauses after watches that failed; the feed ends when the fourth in a row fails.
const RETRY: RetryPolicy =
    RetryPolicy::new(Duration::from_secs(1), Duration::from_secs(30)).attempts(4);

/// The most objects whose stamps are remembered; others are read again whenever anything about them changes.
const MAX_STAMPS: usize = 20_000;

/// Where news go. One feed at a time lists again: neither the server nor our memory shall bear all lists at once.
#[derive(Clone)]
pub(super) struct NewsSender {
    news: mpsc::Sender<QueuedNews>,
    turns: Arc<Semaphore>,
}

/// A list that news come from.
pub(super) trait Source: Send {
    /// What is listed and watched.
    fn query(&self) -> Query;

    /// What an event means; `None` when nobody needs to know.
    fn news(&mut self, event: Event) -> Option<News>;

    /// All of it anew, and the state that a watch can go on from.
    fn list(
        &mut self,
        cluster: &Cluster,
    ) -> impl Future<Output = Result<(News, String), ClusterError>> + Send;
}

/// Helm's records of a driver.
pub(super) struct Records {
    pub(super) driver: Driver,
    pub(super) namespace: Option<String>,
}

/// The objects of a resource.
pub(super) struct Objects {
    resource: Resource,
    checker: Arc<Checker>,
    namespace: Option<String>,
    max_findings: usize,
    /// Objects that are known to have findings: of others it is no news that they are fine.
    bad: HashSet<String>,
    /// What the contents of objects looked like when they were read.
    stamps: HashMap<String, u64>,
}

/// Sends news until the list cannot be followed any longer, and tells why.
pub(super) async fn feed(
    cluster: Cluster,
    mut source: impl Source,
    mut resume: String,
    sender: NewsSender,
) -> ClusterError {
    let mut pauses = RETRY.backoff();
    loop {
        let reopen = tokio::time::Instant::now() + REOPEN;
        let failed = match watch(&cluster, &mut source, &mut resume, &sender).await {
            Ok(()) => {
                pauses.reset();
                None
            }
            Err(ClusterError::Gone { .. }) => again(&cluster, &mut source, &mut resume, &sender)
                .await
                .err(),
            Err(error) => Some(error),
        };
        let Some(error) = failed else {
            tokio::time::sleep_until(reopen).await;
            continue;
        };
        match pauses.try_again().filter(|_| may_pass(&error)) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return error,
        }
    }
}

/// One watch, until it ends.
async fn watch(
    cluster: &Cluster,
    source: &mut impl Source,
    resume: &mut String,
    sender: &NewsSender,
) -> Result<(), ClusterError> {
    let mut watch = cluster.watch(&source.query(), resume).await?;
    loop {
        let event = watch.next().await;
        watch.resource_version().clone_into(resume);
        let Some(event) = event? else { return Ok(()) };
        if let Some(item) = source.news(event) {
            let queued = QueuedNews {
                news: item,
                _turn: None,
            };
            sender.send(queued).await;
        }
    }
}

/// Lists again what can no longer be watched from where it was.
async fn again(
    cluster: &Cluster,
    source: &mut impl Source,
    resume: &mut String,
    sender: &NewsSender,
) -> Result<(), ClusterError> {
    let turn = Arc::clone(&sender.turns).acquire_owned().await.ok();
    let (news, from) = source.list(cluster).await?;
    *resume = from;
    sender.send(QueuedNews { news, _turn: turn }).await;
    Ok(())
}

/// Whether the same may go better a little later.
fn may_pass(error: &ClusterError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unreachable
            | ErrorKind::Timeout
            | ErrorKind::Throttled
            | ErrorKind::Server
            | ErrorKind::Gone
    )
}

// === impl NewsSender ===

impl NewsSender {
    pub(super) fn new(news: mpsc::Sender<QueuedNews>) -> Self {
        let turns = Arc::new(Semaphore::new(1));
        Self { news, turns }
    }

    async fn send(&self, queued: QueuedNews) {
        // Whoever listens drops the feeds before the channel: then nobody needs to know.
        let _ = self.news.send(queued).await;
    }
}

// === impl Records ===

impl Source for Records {
    fn query(&self) -> Query {
        self.driver.query(self.namespace.as_deref())
    }

    fn news(&mut self, event: Event) -> Option<News> {
        match event {
            Event::Changed(metadata) => RecordRef::read(&metadata, self.driver).map(News::Record),
            Event::Gone(metadata) => RecordRef::read(&metadata, self.driver).map(News::RecordGone),
        }
    }

    async fn list(&mut self, cluster: &Cluster) -> Result<(News, String), ClusterError> {
        let (records, resume) = cluster
            .records(self.driver, self.namespace.as_deref())
            .await?;
        let news = News::Records(self.driver, records, resume.clone());
        Ok((news, resume))
    }
}

// === impl Objects ===

impl Objects {
    pub(super) fn new(live: &Live, checker: Arc<Checker>, options: &ScanOptions) -> Self {
        Self {
            resource: live.resource.clone(),
            checker,
            namespace: options.namespace.clone(),
            max_findings: options.max_findings,
            bad: live.findings.keys().cloned().collect(),
            stamps: HashMap::new(),
        }
    }

    /// An object's findings are news when there are some, or when there were.
    fn findings(&mut self, object: String, findings: Vec<Finding>) -> Option<News> {
        let is_news = if findings.is_empty() {
            self.bad.remove(&object)
        } else {
            self.remember(&object);
            true
        };
        is_news.then(|| News::Object {
            resource: self.resource.id(),
            object,
            findings,
        })
    }

    /// An object has to be read again when more than its status changed.
    fn contents(&mut self, metadata: Metadata) -> Option<News> {
        let (object, stamp) = (metadata.key(), stamp(&self.resource, &metadata));
        // What it says is not known yet: it may have findings.
        self.remember(&object);
        if self.stamps.len() >= MAX_STAMPS {
            self.stamps.clear();
        }
        if self.stamps.insert(object, stamp) == Some(stamp) {
            return None;
        }
        Some(News::Contents {
            resource: self.resource.id(),
            namespace: metadata.namespace,
            name: metadata.name,
        })
    }

    /// More are not kept anywhere.
    fn remember(&mut self, object: &str) {
        if self.bad.len() < self.max_findings {
            self.bad.insert(object.to_owned());
        }
    }
}

impl Source for Objects {
    fn query(&self) -> Query {
        self.resource.query(self.namespace.as_deref())
    }

    fn news(&mut self, event: Event) -> Option<News> {
        match event {
            Event::Changed(metadata) if reading(&self.resource) != Reading::Metadata => {
                self.contents(metadata)
            }
            Event::Changed(metadata) => {
                let findings = check_written(&self.checker, &self.resource, &metadata);
                self.findings(metadata.key(), findings)
            }
            Event::Gone(metadata) => {
                self.stamps.remove(&metadata.key());
                self.findings(metadata.key(), Vec::new())
            }
        }
    }

    async fn list(&mut self, cluster: &Cluster) -> Result<(News, String), ClusterError> {
        let live = list(
            cluster,
            &self.checker,
            &self.resource,
            self.namespace.as_deref(),
            self.max_findings,
        )
        .await?;
        self.bad = live.findings.keys().cloned().collect();
        self.stamps.clear();
        let resume = live.resume.clone();
        Ok((News::Objects(live), resume))
    }
}
