//! What every engine must do, as test functions that take any engine. They panic at the first error.
//!
//! ```text
//! sequences   random transactions, reads, compactions and leases, one after the other, compared with a model
//! watching    what watches report: ordered, once, whole, resumable; compaction and slow readers
//! leasing     leases that end, are renewed and revoked
//! linear      whether what clients saw could have happened one operation after the other
//! lost        writes that get lost, or whose answers get lost
//! register_history   what clients and a watch saw while a test made faults
//! ```
//!
//! No other client may use the engine during a test, because revisions are counted.

#![expect(clippy::panic, reason = "tests tell what is wrong by panics")]

mod disk;
mod leasing;
mod linear;
mod lost;
mod model;
mod register_history;
mod sequences;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

pub use disk::{Crash, DiskFault, ForgetfulDisk};
pub use linear::{HistoryVerdict, RegisterAction, RegisterCall, Seen, judge};
pub use lost::{Loss, LossyEngine};
pub use register_history::{
    HistoryError, KeyedCall, RegisterCounters, RegisterHistory, ToldChange,
};

use crate::{Engine, Update, Watcher};

/// How long something may take that should happen soon, on a machine that is busy with other things.
const SOON: Duration = Duration::from_mins(1);

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Random sequences.
    pub sequences: u32,
    /// Their seed.
    pub seed: u64,
}

/// Runs the whole suite on an engine.
pub fn check(runtime: &Runtime, engine: &Arc<dyn Engine>, extent: Extent) {
    sequences::check(runtime, engine, extent);
    runtime.block_on(watching::check(engine));
    runtime.block_on(leasing::check(engine));
    runtime.block_on(lost::check(engine));
}

/// Waits for the next update.
async fn next(watcher: &mut Watcher) -> Update {
    let next = tokio::time::timeout(SOON, watcher.next()).await;
    next.expect("an update in time").expect("no error")
}
