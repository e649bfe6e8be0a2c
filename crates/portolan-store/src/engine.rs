//! The interface of an engine: etcd's semantics, and nothing that only one engine has.
//!
//! Callers use a [`Store`](crate::Store), which checks limits and finds out whether a write with a lost answer took
//! effect. An engine gets checked requests and says so when it does not know an outcome.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::{
    LeaseId, LeaseState, Outcome, Page, Range, Revision, Span, StoreError, Transaction, Watcher,
};

/// The answer of an engine, to be awaited.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keys with revisions, transactions, watches and leases.
///
/// The rules that every engine keeps, all of them checked by the suite in `conformance`:
///
/// - a transaction that changes no key takes no revision; one that changes several takes one for all;
/// - ranges and compares are linearizable: they see every write that was answered before they were asked;
/// - a watch tells all changes of its keys from a revision on, in order, each once, a revision whole or not at all;
/// - what compaction took away is told as [`StoreError::Compacted`], never left out;
/// - all keys of a lease that ends go in one revision, sorted;
/// - an error other than [`StoreError::Unknown`] means that nothing was changed.
pub trait Engine: Send + Sync + 'static {
    /// Reads keys.
    fn range(&self, range: Range) -> Answer<'_, Page>;

    /// Compares, then writes and reads.
    fn transact(&self, transaction: Transaction) -> Answer<'_, Outcome>;

    /// Follows the keys of a span from a revision on, that one included.
    fn watch(&self, span: Span, from: Revision) -> Answer<'_, Watcher>;

    /// Forgets what only reads before `revision` need. Reads and watches at `revision` go on.
    fn compact(&self, revision: Revision) -> Answer<'_, ()>;

    /// Grants a lease of at least `time`.
    fn grant(&self, time: Duration) -> Answer<'_, (LeaseId, Duration)>;

    /// Starts a lease's time again and returns what it has now.
    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, Duration>;

    /// Ends a lease; its keys go in one revision.
    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()>;

    /// A lease as it stands.
    fn lease(&self, lease: LeaseId) -> Answer<'_, LeaseState>;

    /// The engine as it stands.
    fn status(&self) -> Answer<'_, EngineStatus>;

    /// Whether the answer to a write that happened can be lost while the engine goes on. Writes then go through
    /// operation slots. The embedded engine ends with its process, so there is nobody left to ask.
    fn loses_answers(&self) -> bool;
}

/// What an operator wants to know of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// The newest revision.
    pub revision: Revision,
    /// Its data, in bytes.
    pub bytes: u64,
    /// The bytes from which on nothing is put any more, where the engine says so.
    pub max_bytes: Option<u64>,
    /// What must be done something about, in words; empty when all is well.
    pub warnings: Vec<String>,
    /// The identity that the engine gives its data: etcd's cluster id. `None` when it has none.
    pub cluster: Option<u64>,
}
