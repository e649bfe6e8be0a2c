//! Separate threads for scans, so an answer never waits while a record is decoded or a page of metadata is read.

use std::num::NonZero;

use tokio::runtime::{Builder, Runtime};

/// A runtime for scans; everything that a cluster is asked for should run on it, connections included.
pub fn scanning_threads() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("scan")
        .worker_threads(spare_cores())
        .enable_all()
        .build()
}

/// How many cores a scan may use: one is left to those who wait for an answer.
pub(crate) fn spare_cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores.saturating_sub(1).max(1)
}
