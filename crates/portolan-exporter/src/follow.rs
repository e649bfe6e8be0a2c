//! Following a cluster after a scan: a watch on Helm's records tells what changed, and only that is read again.
//!
//! ```text
//! watch on Secrets ────┐
//! watch on ConfigMaps ─┴▶ changes ──(settle)──▶ fetch what is new ──▶ snapshot
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portolan_audit::Checker;
use portolan_cluster::{Changed, Cluster, ClusterError, Driver, RecordRef};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::exporter::Exporter;
use crate::scan::{ScanError, fetch_all, key};

/// Changes that wait to be looked at; a watch with more waits.
const QUEUE: usize = 1024;

/// How long changes are gathered: an upgrade marks the old revision superseded before it marks the new one deployed, and
/// in between the release must not vanish.
const SETTLE: Duration = Duration::from_millis(500);

/// The least time between two watches, for servers that end them at once.
const REOPEN: Duration = Duration::from_secs(1);

/// Why the following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The data are as old as they may become.
    Old,
    /// The changes can no longer be followed: only a scan tells what is there.
    Lost,
}

impl Exporter {
    /// Follows what changes in Helm's records for some time.
    pub(crate) async fn follow(
        &self,
        cluster: &Cluster,
        checker: &Arc<Checker>,
        left: Duration,
    ) -> Ended {
        let (sender, mut changes) = mpsc::channel(QUEUE);
        // Dropped with this function, and the watches with it.
        let mut watches = JoinSet::new();
        for (driver, resume) in self
            .snapshot()
            .map(|snapshot| snapshot.scan.resume.clone())
            .unwrap_or_default()
        {
            let namespace = self.options.scan.namespace.clone();
            watches.spawn(watch(
                cluster.clone(),
                driver,
                namespace,
                resume,
                sender.clone(),
            ));
        }
        let old = tokio::time::sleep(left);
        tokio::pin!(old);
        loop {
            tokio::select! {
                () = &mut old => return Ended::Old,
                Some(_) = watches.join_next() => return Ended::Lost,
                Some(first) = changes.recv() => {
                    let changed = gather(first, &mut changes).await;
                    if self.refresh(cluster, checker, changed).await.is_err() {
                        return Ended::Lost;
                    }
                }
            }
        }
    }

    /// Takes changes in; an error ends the following, and a scan comes next.
    async fn refresh(
        &self,
        cluster: &Cluster,
        checker: &Arc<Checker>,
        changes: Vec<Changed>,
    ) -> Result<(), ScanError> {
        let Some(snapshot) = self.snapshot() else {
            return Ok(());
        };
        let mut scan = snapshot.scan.clone();
        let mut todo: BTreeMap<String, RecordRef> = BTreeMap::new();
        for changed in changes {
            let (Changed::Record(record) | Changed::Gone(record)) = &changed;
            scan.resume
                .insert(record.driver, record.resource_version.clone());
            let key = key(record);
            match changed {
                Changed::Record(record) if record.is_deployed() => {
                    if scan.is_news(&record) {
                        todo.insert(key, record);
                    }
                }
                Changed::Record(record) | Changed::Gone(record) => {
                    scan.forget(&record);
                    if todo
                        .get(&key)
                        .is_some_and(|waiting| waiting.uid == record.uid)
                    {
                        todo.remove(&key);
                    }
                }
            }
        }
        fetch_all(
            cluster,
            checker,
            self.options.scan.workers,
            todo.into_values(),
            &mut scan,
        )
        .await?;
        if scan.releases == snapshot.scan.releases {
            return Ok(());
        }
        self.publish_refresh(scan, checker).await
    }
}

/// The change and what comes soon after it.
async fn gather(first: Changed, changes: &mut mpsc::Receiver<Changed>) -> Vec<Changed> {
    let mut gathered = vec![first];
    tokio::time::sleep(SETTLE).await;
    while let Ok(changed) = changes.try_recv() {
        gathered.push(changed);
    }
    gathered
}

/// Sends the changes of a driver on, over as many watches as it takes; ends when they cannot be followed any longer.
async fn watch(
    cluster: Cluster,
    driver: Driver,
    namespace: Option<String>,
    mut resume: String,
    changes: mpsc::Sender<Changed>,
) -> Result<(), ClusterError> {
    loop {
        let reopen = tokio::time::Instant::now() + REOPEN;
        let mut watch = cluster
            .watch_records(driver, namespace.as_deref(), &resume)
            .await?;
        while let Some(changed) = watch.next().await? {
            if changes.send(changed).await.is_err() {
                return Ok(());
            }
        }
        watch.resource_version().clone_into(&mut resume);
        tokio::time::sleep_until(reopen).await;
    }
}
