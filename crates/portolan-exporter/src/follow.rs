//! Follows a cluster after a scan: watches report what changed, and only that is read again.
//!
//! ```text
//! watches on Helm's records ─┐
//! watches on live objects ───┴▶ news ──(settle)──▶ read what is new ──▶ snapshot
//! ```
//!
//! A watch that has become too old lists its own resource again. A resource whose watch is refused waits for the next
//! scan. If the server cannot be reached, following ends and a scan is tried, whose error says why.

mod feed;
mod news;

use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_audit::Checker;
use portolan_cluster::{Cluster, ClusterError, ErrorKind, object_key};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::exporter::Exporter;
use crate::scan::{Knowledge, Live, ScanError, fetch_all, read};
use feed::{NewsSender, Objects, Records, feed};
use news::{QueuedNews, Todo};

/// News that wait to be looked at; a watch with more waits.
const QUEUE: usize = 1024;

/// The most resources that are watched: each watch is a connection. The rest is left to the next scan.
const MAX_WATCHED: usize = 128;

/// How long news are gathered: an upgrade marks the old revision superseded before it marks the new one deployed, and
/// in between the release must not vanish.
const SETTLE: Duration = Duration::from_millis(500);

/// How many times as long as the last refresh took the next one waits: a cluster in unrest must not keep us busy.
const REST: u32 = 4;

/// Why the following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The data are as old as they may become.
    Old,
    /// The changes can no longer be followed: only a scan tells what is there.
    Lost,
}

impl Exporter {
    /// Follows what changes in the cluster for some time.
    pub(crate) async fn follow(
        &self,
        cluster: &Cluster,
        checker: &Arc<Checker>,
        left: Duration,
    ) -> Ended {
        let (sender, mut news) = mpsc::channel(QUEUE);
        // Dropped with this function, and the watches with it.
        let mut watches = self.watch(cluster, checker, &NewsSender::new(sender));
        let old = tokio::time::sleep(left);
        tokio::pin!(old);
        let mut settle = SETTLE;
        loop {
            tokio::select! {
                () = &mut old => return Ended::Old,
                Some(ended) = watches.join_next() => {
                    if !ended.is_ok_and(|error| is_refusal(&error)) {
                        return Ended::Lost;
                    }
                    self.count_watches(watches.len());
                }
                Some(first) = news.recv() => {
                    let gathered = gather(first, &mut news, settle).await;
                    let since = Instant::now();
                    if self.refresh(cluster, checker, gathered).await.is_err() {
                        return Ended::Lost;
                    }
                    settle = SETTLE.max(since.elapsed() * REST);
                }
            }
        }
    }

    /// Starts a watch on everything that can have findings.
    fn watch(
        &self,
        cluster: &Cluster,
        checker: &Arc<Checker>,
        sender: &NewsSender,
    ) -> JoinSet<ClusterError> {
        let mut watches = JoinSet::new();
        let Some(snapshot) = self.snapshot() else {
            return watches;
        };
        let namespace = &self.options.scan.namespace;
        for (driver, resume) in &snapshot.knowledge.resume {
            let records = Records {
                driver: *driver,
                namespace: namespace.clone(),
            };
            watches.spawn(feed(
                cluster.clone(),
                records,
                resume.clone(),
                sender.clone(),
            ));
        }
        let worth = worth_watching(&snapshot.knowledge, checker);
        for live in worth.iter().take(MAX_WATCHED) {
            let objects = Objects::new(live, Arc::clone(checker), &self.options.scan);
            let resume = live.resume.clone();
            watches.spawn(feed(cluster.clone(), objects, resume, sender.clone()));
        }
        let wanted = snapshot.knowledge.resume.len() + worth.len();
        self.change(|view| (view.followed, view.unfollowed) = (0, wanted));
        self.count_watches(watches.len());
        watches
    }

    fn count_watches(&self, followed: usize) {
        self.change(|view| {
            view.unfollowed = (view.followed + view.unfollowed).saturating_sub(followed);
            view.followed = followed;
        });
    }

    /// Takes news in; an error ends the following, and a scan comes next.
    async fn refresh(
        &self,
        cluster: &Cluster,
        checker: &Arc<Checker>,
        gathered: Vec<QueuedNews>,
    ) -> Result<(), ScanError> {
        let Some(snapshot) = self.snapshot() else {
            return Ok(());
        };
        let mut knowledge = snapshot.knowledge.clone();
        let mut todo = Todo::default();
        for queued in gathered {
            todo.take(queued.news, &mut knowledge);
        }
        let workers = self.options.scan.workers;
        let records = todo.records.into_values();
        fetch_all(cluster, checker, workers, records, &mut knowledge).await?;
        for (resource, namespace, name) in todo.objects {
            let Some(live) = knowledge.live().get(&resource) else {
                continue;
            };
            let served = live.resource.clone();
            match read(cluster, checker, &served, &namespace, &name).await {
                Ok(findings) => {
                    knowledge.put_object(&resource, object_key(&namespace, &name), findings);
                }
                // It may be listed, but not read alone: the next scan lists it.
                Err(error) if is_refusal(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if knowledge.finds_as(&snapshot.knowledge) {
            return Ok(());
        }
        self.publish_refresh(knowledge, checker).await
    }
}

/// The resources whose objects can have findings, and that can be watched.
fn worth_watching<'a>(knowledge: &'a Knowledge, checker: &Checker) -> Vec<&'a Live> {
    let worth = |live: &&Live| {
        let kind = &live.resource.kind;
        live.resource.watchable && (checker.may_find(kind) || Checker::reads_contents(kind))
    };
    knowledge.live().values().filter(worth).collect()
}

/// Whether just this one thing may not be watched or read, or no longer exists.
fn is_refusal(error: &ClusterError) -> bool {
    matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::Other)
}

/// The news and what comes soon after.
async fn gather(
    first: QueuedNews,
    news: &mut mpsc::Receiver<QueuedNews>,
    settle: Duration,
) -> Vec<QueuedNews> {
    let mut gathered = vec![first];
    tokio::time::sleep(settle).await;
    while let Ok(more) = news.try_recv() {
        gathered.push(more);
    }
    gathered
}
