//! Helm releases of a cluster.
//!
//! ```text
//! metadata pages ──▶ newest deployed records ──(few at a time)──▶ fetch ──▶ decode + check ──▶ findings
//! ```
//!
//! A record is fetched, decoded, checked and dropped. A record that was checked before and has not changed is not
//! fetched again.

use std::sync::Arc;

use portolan_audit::{Checked, Checker};
use portolan_cluster::{Cluster, Driver, RecordRef, newest_deployed};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::knowledge::{Knowledge, Release, key};
use super::record;
use super::shared::Shared;
use super::{ScanError, ScanOptions};
use crate::threads::spare_cores;

/// How many records are decoded at a time: each may need a few megabytes, and memory is what a pod has least of.
const MAX_DECODERS: usize = 4;

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
    let decoders = Decoders::new();
    let mut todo = todo.into_iter();
    let mut running = JoinSet::new();
    loop {
        while running.len() < workers.max(1) {
            let Some(record) = todo.next() else { break };
            running.spawn(fetch(
                cluster.clone(),
                Arc::clone(checker),
                decoders.clone(),
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
    decoders: Decoders,
    record: RecordRef,
) -> Result<Option<(String, Release)>, ScanError> {
    let Some(text) = cluster.record(&record).await? else {
        return Ok(None);
    };
    let (reference, text) = (Arc::new(record), Arc::new(text));
    let light = {
        let checker = Arc::clone(&checker);
        let (reference, text) = (Arc::clone(&reference), Arc::clone(&text));
        move || record::check_light(&checker, &reference, &text)
    };
    let heavy = {
        let reference = Arc::clone(&reference);
        move || record::check_heavy(&checker, &reference, &text)
    };
    let ended = match decoders.run(1, light).await? {
        Ended::Well(Some(checked)) => Ended::Well(checked),
        Ended::Well(None) => decoders.run(decoders.count, heavy).await?,
        Ended::Panicked => Ended::Panicked,
    };
    let checked = match ended {
        Ended::Well(checked) => checked,
        Ended::Panicked => record::not_checked(&reference, DEFECT),
    };
    let record = Arc::unwrap_or_clone(reference);
    Ok(Some((key(&record), release(record, checked))))
}

/// What is told of a record whose check panicked.
const DEFECT: &str = "its check failed because of a defect in portolan";

/// Turns for decoding records: unpacking is work, and must not hold up the threads that answer requests.
#[derive(Clone)]
struct Decoders {
    turns: Arc<Semaphore>,
    count: u32,
}

/// How a piece of work ended.
enum Ended<T> {
    Well(T),
    Panicked,
}

impl Decoders {
    fn new() -> Self {
        let count = spare_cores().min(MAX_DECODERS);
        Self {
            turns: Arc::new(Semaphore::new(count)),
            count: count as u32,
        }
    }

    /// Runs a piece of work that takes so many turns; all of them means alone.
    async fn run<T: Send + 'static>(
        &self,
        turns: u32,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Ended<T>, ScanError> {
        let turns = self.turns.acquire_many(turns).await;
        let _turns = turns.map_err(|error| ScanError::Worker(error.to_string()))?;
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => Ok(Ended::Well(done)),
            Err(error) if error.is_panic() => Ok(Ended::Panicked),
            Err(error) => Err(died(error)),
        }
    }
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
