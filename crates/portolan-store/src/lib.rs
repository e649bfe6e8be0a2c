//! The store for the objects of the control plane: keys with revisions, transactions, watches and leases.
//!
//! ```text
//!              ┌── Store ───────────────┐        ┌── Engine ─────────────────────────────┐
//! callers ──▶  │ limits, operation      │  ──▶   │ Embedded  one server, a file (redb)   │
//!              │ slots, lost answers    │        │ Etcd      three servers               │
//!              └────────────────────────┘        └───────────────────────────────────────┘
//! ```
//!
//! **Revisions.** The store counts its changes. Every transaction that changes keys gets the next number, and each
//! record says at which number it was created and last changed. Reads can use an older revision, so the pages of a
//! list are consistent.
//!
//! **Transactions.** Every write has a condition: a [`Transaction`] compares what its author saw, then writes.
//!
//! ```
//! # use portolan_store::*;
//! # async fn example(store: &Store) -> Result<(), StoreError> {
//! let created = store.commit(Transaction::create("/portolan/v1/node/web-1", "…")).await?;
//! if created.succeeded {
//!     let seen = created.revision;
//!     store.commit(Transaction::replace("/portolan/v1/node/web-1", seen, "other")).await?;
//! }
//! # Ok(()) }
//! ```
//!
//! **Watches.** A [`Watcher`] reports every change from a revision on, and can be resumed after an interruption from
//! the last reported one. If that history has been compacted, it says so.
//!
//! **Leases.** Keys that are deleted when their owner stops renewing them.
//!
//! **Lost answers.** A write over a network can take effect although its answer never arrives. [`Store::commit`]
//! finds out whether it did; see [`StoreError::Unknown`] and the module `slot`.
//!
//! **Operation.** [`Incarnation`] distinguishes a store before and after a restore, [`Ownership`] fences the owners
//! of shards, [`level`] raises the stored format, [`backup()`] and [`restore`] copy a store ([`backup_to_file`] to a file, [`copy_store`]
//! to another engine), [`blob`] holds content
//! that is too large for it.
//!
//! This crate does not know what the values mean.

#![warn(missing_docs)]

mod backup;
mod backup_file;
pub mod blob;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod embedded;
mod engine;
mod error;
pub mod etcd;
mod incarnation;
pub mod keys;
mod lease;
pub mod level;
pub mod limits;
mod record;
mod shard;
mod slot;
mod span;
mod store;
mod transaction;
mod watch;

pub use backup::{BackupError, BackupSummary, backup, compare_backup, read_backup, restore};
pub use backup_file::{
    backup_into, backup_to_file, check_file, compare_file, copy_store, restore_file, try_backup,
};
pub use embedded::{Embedded, EmbeddedOptions, STORE_FILE};
pub use engine::{Answer, Engine, EngineStatus};
pub use error::{Refusal, StoreError};
pub use incarnation::{Incarnation, NotAPosition, Position};
pub use lease::{LeaseId, LeaseState};
pub use portolan_clock::{BootClock, Clock, ManualClock};
pub use record::{Event, Record, Revision};
pub use shard::{Epoch, Ownership, ShardLayout};
pub use slot::OperationId;
pub use span::{Page, Range, Span};
pub use store::{Resolution, Store};
pub use transaction::{Compare, CompareField, Outcome, Transaction, Write};
pub use watch::{NextUpdate, Update, WatchSource, Watcher};
