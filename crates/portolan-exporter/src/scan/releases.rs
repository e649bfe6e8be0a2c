//! Helm releases of a cluster.
//!
//! ```text
//! metadata pages ──▶ newest deployed records ──(few at a time)──▶ fetch ──▶ decode + check ──▶ findings
//! ```
//!
//! A record is fetched, decoded, checked and dropped; what was checked before and has not changed is not fetched again.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use portolan_audit::{Checked, Checker};
use portolan_cluster::{Cluster, Driver, RecordRef, newest_deployed};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Known, Scan, ScanError, ScanOptions, key};
use crate::record;

pub(super) async fn scan(
    cluster: &Cluster,
    checker: &Checker,
    options: &ScanOptions,
    known: Option<&BTreeMap<String, Known>>,
    scan: &mut Scan,
) -> Result<(), ScanError> {
    let mut records = Vec::new();
    for driver in Driver::ALL {
        let (found, resume) = cluster
            .records(driver, options.namespace.as_deref())
            .await?;
        records.extend(found);
        scan.resume.insert(driver, resume);
    }
    let mut todo = Vec::new();
    for record in newest_deployed(records) {
        let key = key(&record);
        match known.and_then(|known| known.get(&key)) {
            Some(before) if before.is(&record) => {
                scan.releases.insert(key, before.clone());
            }
            _ => todo.push(record),
        }
    }
    fetch_all(
        cluster,
        &Arc::new(checker.clone()),
        options.workers,
        todo,
        scan,
    )
    .await
}

/// Fetches and checks records, a few at a time.
pub(crate) async fn fetch_all(
    cluster: &Cluster,
    checker: &Arc<Checker>,
    workers: usize,
    todo: impl IntoIterator<Item = RecordRef>,
    scan: &mut Scan,
) -> Result<(), ScanError> {
    let decoders = Arc::new(Semaphore::new(decoders()));
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
        if let Some((key, known)) = ended.map_err(died)?? {
            scan.releases.insert(key, known);
        }
    }
}

/// How many records are decoded at a time: one core is left to those who wait for an answer.
fn decoders() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores.saturating_sub(1).max(1)
}

/// What one record holds; `None` when it went away in the meantime.
async fn fetch(
    cluster: Cluster,
    checker: Arc<Checker>,
    decoders: Arc<Semaphore>,
    record: RecordRef,
) -> Result<Option<(String, Known)>, ScanError> {
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
        (key(&record), known(record, checked))
    });
    work.await.map(Some).map_err(died)
}

fn known(record: RecordRef, checked: Checked) -> Known {
    Known {
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
