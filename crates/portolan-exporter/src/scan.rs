//! One scan of a cluster: Helm releases and live objects.
//!
//! ```text
//! Cluster ──▶ releases (records) ─┐
//!         └─▶ live (objects, definitions), requests ─┴─▶ Knowledge ──merge──▶ Report
//! ```

mod contents;
mod knowledge;
mod live;
mod record;
mod releases;
mod requests;
mod shared;
mod written;

use portolan_audit::{Checker, Report};
use portolan_cluster::{Cluster, ClusterError, ErrorKind};

pub(crate) use contents::{Reading, reading, stamp};
pub(crate) use knowledge::{Knowledge, Live, key};
pub(crate) use live::{list, read};
pub(crate) use releases::fetch_all;
pub(crate) use written::check as check_written;

/// How many findings are kept unless told otherwise: about 4 KB each in a process that serves them.
pub const MAX_FINDINGS: usize = 10_000;

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
    /// How many findings are kept; the rest is counted.
    pub max_findings: usize,
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

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            sources: Sources::All,
            namespace: None,
            workers: 8,
            max_findings: MAX_FINDINGS,
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
    let knowledge = look(cluster, checker, options, None).await?;
    Ok(knowledge.report(checker))
}

/// Looks at a cluster; what is known of a record already is taken from there.
pub(crate) async fn look(
    cluster: &Cluster,
    checker: &Checker,
    options: &ScanOptions,
    known: Option<&Knowledge>,
) -> Result<Knowledge, ScanError> {
    let mut knowledge = Knowledge::with_room_for(options.max_findings);
    if options.sources != Sources::Live {
        releases::scan(cluster, checker, options, known, &mut knowledge).await?;
    }
    if options.sources != Sources::Helm {
        live::scan(cluster, checker, options, &mut knowledge).await?;
    }
    Ok(knowledge)
}
