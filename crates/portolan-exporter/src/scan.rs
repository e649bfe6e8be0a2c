//! One look at a cluster: Helm releases, and what lives there.
//!
//! ```text
//! Cluster ──▶ releases (records) ─┐
//!         └─▶ live (objects, definitions, requests) ─┴─▶ Scan ──merge──▶ Report
//! ```

mod live;
mod releases;

use std::collections::BTreeMap;

use portolan_audit::{Checker, Counts, Finding, Report, merge};
use portolan_cluster::{Cluster, ClusterError, Driver, ErrorKind, RecordRef};
use serde::{Deserialize, Serialize};

pub(crate) use releases::fetch_all;

/// The most findings in live objects that are kept; a cluster with more has more to do than a list can tell.
const MAX_LIVE_FINDINGS: usize = 20_000;

/// What to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// Everything.
    All,
    /// Helm releases.
    Helm,
    /// Live objects, definitions and the API server's count of deprecated requests.
    Live,
}

/// How to look.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// What to look at.
    pub sources: Sources,
    /// One namespace only.
    pub namespace: Option<String>,
    /// How many records are fetched at a time.
    pub workers: usize,
}

/// Why a scan gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The cluster did not give what was asked for.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A worker died.
    #[error("a worker died: {0}")]
    Worker(String),
}

/// What was found in a record, with what makes it the same record: a scan that meets it again need not fetch it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Known {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) revision: i64,
    pub(crate) objects: usize,
    pub(crate) findings: Vec<Finding>,
}

/// Everything a scan learnt; a part of the snapshot on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scan {
    /// By `namespace/release`.
    pub(crate) releases: BTreeMap<String, Known>,
    /// Findings that come from no record.
    pub(crate) live: Vec<Finding>,
    pub(crate) live_objects: usize,
    /// What is odd, though the scan went well.
    pub(crate) warnings: Vec<String>,
    /// For each driver the state a watch can go on from.
    pub(crate) resume: BTreeMap<Driver, String>,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            sources: Sources::All,
            namespace: None,
            workers: 8,
        }
    }
}

impl ScanError {
    /// What kind of error it is, for metrics.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Cluster(error) => error.kind(),
            Self::Worker(_) => ErrorKind::Other,
        }
    }
}

/// Looks at a cluster once.
pub async fn scan(
    cluster: &Cluster,
    checker: &Checker,
    options: &ScanOptions,
) -> Result<Report, ScanError> {
    let scan = look(cluster, checker, options, None).await?;
    Ok(scan.into_report(checker))
}

/// Looks at a cluster; what is known of a record already is taken from there.
pub(crate) async fn look(
    cluster: &Cluster,
    checker: &Checker,
    options: &ScanOptions,
    known: Option<&BTreeMap<String, Known>>,
) -> Result<Scan, ScanError> {
    let mut scan = Scan::default();
    if options.sources != Sources::Live {
        releases::scan(cluster, checker, options, known, &mut scan).await?;
    }
    if options.sources != Sources::Helm {
        live::scan(cluster, checker, options, &mut scan).await?;
    }
    Ok(scan)
}

/// What a record's release is known by.
pub(crate) fn key(record: &RecordRef) -> String {
    format!("{}/{}", record.namespace, record.release)
}

impl Known {
    fn is(&self, record: &RecordRef) -> bool {
        self.uid == record.uid && self.resource_version == record.resource_version
    }
}

impl Scan {
    /// Whether a deployed record says more than what is known of its release.
    pub(crate) fn is_news(&self, record: &RecordRef) -> bool {
        let known = self.releases.get(&key(record));
        known.is_none_or(|known| record.revision >= known.revision && !known.is(record))
    }

    /// Takes a release out when this record is what is known of it.
    pub(crate) fn forget(&mut self, record: &RecordRef) {
        let key = key(record);
        if self
            .releases
            .get(&key)
            .is_some_and(|known| known.uid == record.uid)
        {
            self.releases.remove(&key);
        }
    }

    /// The answer in one piece.
    pub(crate) fn report(&self, checker: &Checker) -> Report {
        self.clone().into_report(checker)
    }

    /// The same when the scan is no longer needed: findings are moved, not copied.
    fn into_report(self, checker: &Checker) -> Report {
        let mut findings = self.live;
        let mut counts = Counts {
            releases: self.releases.len(),
            objects: self.live_objects,
            ..Counts::default()
        };
        for known in self.releases.into_values() {
            findings.extend(known.findings);
            counts.objects += known.objects;
        }
        let mut report = Report::new(merge(findings), counts, &checker.target);
        report.warnings.extend(self.warnings);
        report
    }
}
