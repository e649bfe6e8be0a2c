//! The lock of a release: its pending record. The process that made it says so in an annotation and changes another one as
//! long as it lives, so that a record of a process that was killed can be told from one that is worked on.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::error::HelmReleaseError;
use crate::record::{Record, RecordHead, Records};

/// How often a process says that it lives.
const RENEW: Duration = Duration::from_secs(4);

/// How long a record must stay unchanged until its process counts as dead: several renewals, and a slow server.
const DEAD_AFTER: Duration = Duration::from_secs(15);

/// How often a record of another process is looked at.
const LOOK: Duration = Duration::from_millis(500);

const BY_HELM: &str = "; if nothing works on it any more, `helm rollback` ends it";

/// A pending record of this process.
pub(crate) struct Held<'a> {
    records: Records<'a>,
    holder: String,
    record: Mutex<Record>,
}

impl<'a> Held<'a> {
    pub(crate) fn new(records: Records<'a>, record: Record, holder: String) -> Self {
        Self {
            records,
            holder,
            record: Mutex::new(record),
        }
    }

    /// Changes the record and writes it.
    pub(crate) async fn change(
        &self,
        change: impl FnOnce(&mut Record),
    ) -> Result<(), HelmReleaseError> {
        let mut record = self.record.lock().await;
        change(&mut record);
        self.records.write(&mut record).await
    }

    /// A part of the record.
    pub(crate) async fn look<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&*self.record.lock().await)
    }

    /// Does work while the record is held; ends early when somebody else took it.
    pub(crate) async fn during<T>(
        &self,
        work: impl Future<Output = Result<T, HelmReleaseError>>,
    ) -> Result<T, HelmReleaseError> {
        tokio::select! {
            done = work => done,
            error = self.renew() => Err(error),
        }
    }

    async fn renew(&self) -> HelmReleaseError {
        loop {
            sleep(RENEW).await;
            let mut record = self.record.lock().await;
            let renewed = self.records.renew(&mut record, &self.holder).await;
            drop(record);
            // A server that is away for a moment takes nothing from anybody: work that needs it fails by itself.
            if let Err(error @ HelmReleaseError::Lost(_)) = renewed {
                return error;
            }
        }
    }
}

/// The revisions of a release that nobody works on. A pending one of a process that died is marked as failed.
///
/// # Errors
/// When somebody works on the release.
pub(crate) async fn unlocked(records: &Records<'_>) -> Result<Vec<RecordHead>, HelmReleaseError> {
    let since = Instant::now();
    let mut first_seen: Option<String> = None;
    loop {
        let heads = records.heads().await?;
        let Some(last) = heads.last().filter(|head| head.is_pending()) else {
            return Ok(heads);
        };
        let pending = |hint| HelmReleaseError::Pending {
            revision: last.revision,
            status: last.status.clone(),
            hint,
        };
        if last.holder().is_none() {
            return Err(pending(BY_HELM));
        }
        match &first_seen {
            None => first_seen = Some(last.resource_version().to_owned()),
            Some(seen) if seen != last.resource_version() => return Err(pending("")),
            Some(_) if since.elapsed() >= DEAD_AFTER => {
                if let Some(mut record) = records.read(last.revision).await? {
                    let status = last.status.clone();
                    record.set_status("failed", &format!("interrupted while it was {status}"));
                    records.write(&mut record).await?;
                }
                return Ok(records.heads().await?);
            }
            Some(_) => {}
        }
        sleep(LOOK).await;
    }
}
