//! The store that the control plane keeps its objects in: keys with revisions, transactions, watches and leases.
//!
//! ```text
//!              ┌── Store ───────────────┐        ┌── Engine ─────────────────────────────┐
//! callers ──▶  │ limits, operation      │  ──▶   │ Embedded  one server, a file (redb)   │
//!              │ slots, lost answers    │        │ Etcd      three servers (to come)     │
//!              └────────────────────────┘        └───────────────────────────────────────┘
//! ```
//!
//! **Revisions.** The store counts its changes. Every transaction that changes keys takes the next number, and each record
//! says at which it was created and last changed. Reads can be made at an older revision, so the pages of a list belong
//! together.
//!
//! **Transactions.** Nothing is written blindly: a [`Transaction`] compares what its author saw, then writes.
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
//! **Watches.** A [`Watcher`] tells every change from a revision on, and can be resumed after any interruption from the last
//! one it told. When the history has been compacted away, it says so.
//!
//! **Leases.** Keys that go away when their owner no longer says that it is alive.
//!
//! **Lost answers.** A write over a network can take effect though its answer never arrives. [`Store::commit`] finds out which,
//! see [`StoreError::Unknown`] and the module `slot`.
//!
//! **The life of a store.** [`Incarnation`] tells one life from the next after a restore, [`Ownership`] fences the owners of
//! shards, [`level`] raises the stored format, [`backup()`] and [`restore`] copy it, [`blob`] holds what is too large for it.
//!
//! This crate knows nothing of what the values mean.

#![warn(missing_docs)]

mod backup;
pub mod blob;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod embedded;
mod engine;
mod error;
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
pub use clock::{BootClock, Clock, ManualClock};
pub use embedded::{Embedded, EmbeddedOptions};
pub use engine::{Answer, Engine, EngineStatus};
pub use error::{Refusal, StoreError};
pub use incarnation::{Incarnation, NotAPosition, Position};
pub use lease::{LeaseId, LeaseState};
pub use record::{Event, Record, Revision};
pub use shard::{Epoch, Ownership, ShardLayout};
pub use slot::OperationId;
pub use span::{Page, Range, Span};
pub use store::{Resolution, Store};
pub use transaction::{Compare, CompareField, Outcome, Transaction, Write};
pub use watch::{NextUpdate, Update, WatchSource, Watcher};
