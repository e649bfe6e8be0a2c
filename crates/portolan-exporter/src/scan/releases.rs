//! Helm releases of a cluster.
//!
//! ```text
//! metadata pages ──▶ newest deployed records ──(few at a time)──▶ fetch ──▶ decode + check ──▶ findings
//! ```
//!
//! A record is fetched, decoded, checked and dropped; what was checked before and has not changed is not fetched again.

use std::sync::Arc;

use portolan_audit::{Checked, Checker};
use portolan_cluster::{Cluster, Driver, RecordRef, newest_deployed};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::knowledge::{Knowledge, Release, key};
use super::shared::Shared;
use super::{ScanError, ScanOptions};
use crate::record;
use crate::threads::spare_cores;

pub(super) async fn scan(
    cluster: &Cluster,
    checker: &Checker,
    options: &ScanOptions,
    known: Option<&Knowledge>,
    knowledge: &mut Knowledge,
) -> Result<(), ScanError> {
    let mut records = Vec::new();
    for driver in Driver::ALL {
        let (found, resume) = cluster
            .records(driver, options.namespace.as_deref())
            .await?;
        records.extend(found);
        knowledge.resume.insert(driver, resume);
    }
    let mut todo = Vec::new();
    for record in newest_deployed(records) {
        let key = key(&record);
        match known.and_then(|known| known.releases().get(&key)) {
            Some(before) if before.is_of(&record) => knowledge.put_release(key, before.clone()),
            _ => todo.push(record),
        }
    }
    fetch_all(
        cluster,
        &Arc::new(checker.clone()),
        options.workers,
        todo,
        knowledge,
    )
    .await
}

/// Fetches and checks records, a few at a time.
pub(crate) async fn fetch_all(
    cluster: &Cluster,
    checker: &Arc<Checker>,
    workers: usize,
    todo: impl IntoIterator<Item = RecordRef>,
    knowledge: &mut Knowledge,
) -> Result<(), ScanError> {
    let decoders = Arc::new(Semaphore::new(spare_cores()));
    let mut todo = todo.into_iter();
    let mut running = JoinSet::new();
    loop {
        while running.len() < workers.max(1) {
            let Some(record) = todo.next() else { break };
            running.spawn(fetch(
                cluster.clone(),
                Arc::clone(checker),
                Arc::clone(&decoders),
                record,
            ));
        }
        let Some(ended) = running.join_next().await else {
            return Ok(());
        };
        if let Some((key, release)) = ended.map_err(died)?? {
            knowledge.put_release(key, Shared::new(release));
        }
    }
}

/// What one record holds; `None` when it went away in the meantime.
async fn fetch(
    cluster: Cluster,
    checker: Arc<Checker>,
    decoders: Arc<Semaphore>,
    record: RecordRef,
) -> Result<Option<(String, Release)>, ScanError> {
    let Some(text) = cluster.record(&record).await? else {
        return Ok(None);
    };
    let _turn = decoders
        .acquire()
        .await
        .map_err(|error| ScanError::Worker(error.to_string()))?;
    // Unpacking is work: it must not hold up the threads that answer requests.
    let work = tokio::task::spawn_blocking(move || {
        let checked = record::check(&checker, &record, &text);
        (key(&record), release(record, checked))
    });
    work.await.map(Some).map_err(died)
}

fn release(record: RecordRef, mut checked: Checked) -> Release {
    checked.findings.shrink_to_fit();
    Release {
        driver: record.driver,
        uid: record.uid,
        resource_version: record.resource_version,
        revision: record.revision,
        objects: checked.objects,
        findings: checked.findings,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives it away")]
fn died(error: tokio::task::JoinError) -> ScanError {
    ScanError::Worker(error.to_string())
}
