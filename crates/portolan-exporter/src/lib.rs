//! Audits a cluster, keeps the last good answer and serves it.
//!
//! ```text
//! Cluster ──scan──▶ Snapshot ──(atomic file)──▶ disk
//!                      │
//!                      ▼
//!               Exporter (one scan at a time, backoff, watch) ──▶ /metrics, /api/v1/findings, page
//! ```
//!
//! The entry points are [`scan`], which scans a cluster once, and [`serve`], which scans again whenever the answer is
//! older than its time to live, and follows changes in between. A request never waits for a scan: it is answered from
//! the last good snapshot, on other threads.

mod scan;

mod changes;
mod exporter;
mod follow;
mod snapshot;
mod state;

mod threads;
mod web;

pub use exporter::{CheckerFor, Exporter, ExporterOptions, ScanLog};
pub use scan::{MAX_FINDINGS, ScanError, ScanOptions, Sources, scan};
pub use snapshot::{Effort, Snapshot, SnapshotError};
pub use state::State;
pub use threads::scanning_threads;
pub use web::serve;
