//! Errors, distinguished by what a caller can do about them.

use bytes::Bytes;

use crate::limits::{
    MAX_COMPARES, MAX_KEY_BYTES, MAX_LEASE_SECONDS, MAX_OPERATIONS, MAX_PAGE,
    MAX_TRANSACTION_BYTES, MAX_VALUE_BYTES,
};
use crate::{LeaseId, OperationId, Revision};

/// Why a call had no or no known effect.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The request itself is wrong; no engine would take it.
    #[error("the store refuses the request: {0}")]
    Refused(#[from] Refusal),
    /// The history that was asked for is gone. Whoever followed it lists anew and watches from the list's revision.
    #[error("revision {asked} is gone: history begins at {oldest}")]
    Compacted {
        /// What was asked for.
        asked: Revision,
        /// The oldest revision that can be read.
        oldest: Revision,
    },
    /// The revision does not exist yet.
    #[error("revision {asked} does not exist yet: the store is at {current}")]
    Future {
        /// What was asked for.
        asked: Revision,
        /// The newest; 0 where the engine does not say it.
        current: Revision,
    },
    /// The lease has ended or never was.
    #[error("lease {lease} does not exist")]
    NoLease {
        /// Its name.
        lease: LeaseId,
    },
    /// There is no room. Reads, deletes and compaction go on.
    #[error(
        "the store is full ({detail}): delete what is not needed and run `portolan store compact`, or raise its limit"
    )]
    Full {
        /// Which limit, as the engine tells it.
        detail: String,
    },
    /// Nothing happened; the same call may work in a moment.
    #[error("the store cannot be reached: {detail}")]
    Unavailable {
        /// What the last attempt ended with.
        detail: String,
    },
    /// A write that may or may not have happened.
    #[error("whether the write happened is not known: {detail}")]
    Unknown {
        /// What to ask [`Store::resolve`](crate::Store::resolve) for; `None` where nothing can tell any more.
        operation: Option<OperationId>,
        /// What the attempt ended with.
        detail: String,
    },
    /// The engine does not take the user, the password or the certificate, or the user may not do this.
    #[error("the store denies access: {detail}")]
    Denied {
        /// As the engine tells it.
        detail: String,
    },
    /// Something that was stored does not read as it was written.
    #[error("the store is damaged: {detail}")]
    Damaged {
        /// What and where.
        detail: String,
    },
    /// A write to the disk failed, so that nothing more is written until the process starts again.
    #[error("the store has stopped: {detail}")]
    Stopped {
        /// The first failure.
        detail: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed when it is made again, and cannot have had an effect.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

/// Why a request is refused before any engine sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A key needs at least one byte.
    #[error("a key is empty")]
    EmptyKey,
    /// See [`MAX_KEY_BYTES`].
    #[error("a key has {length} bytes, at most {MAX_KEY_BYTES} are allowed")]
    LongKey {
        /// Its length.
        length: usize,
    },
    /// See [`MAX_VALUE_BYTES`].
    #[error("a value has {length} bytes, at most {MAX_VALUE_BYTES} are allowed")]
    LargeValue {
        /// Its length.
        length: usize,
    },
    /// See [`MAX_TRANSACTION_BYTES`].
    #[error("a transaction has {bytes} bytes, at most {MAX_TRANSACTION_BYTES} are allowed")]
    LargeTransaction {
        /// Its keys, values and compares.
        bytes: usize,
    },
    /// See [`MAX_OPERATIONS`].
    #[error("a transaction has {count} operations, at most {MAX_OPERATIONS} are allowed")]
    ManyOperations {
        /// Those of its longer branch.
        count: usize,
    },
    /// See [`MAX_COMPARES`].
    #[error("a transaction has {count} compares, at most {MAX_COMPARES} are allowed")]
    ManyCompares {
        /// How many.
        count: usize,
    },
    /// A transaction takes one revision, in which a key can have one value.
    #[error("a transaction writes key `{}` twice", key.escape_ascii())]
    KeyTwice {
        /// The key.
        key: Bytes,
    },
    /// Every write says what it replaces.
    #[error("a transaction writes key `{}` without a compare of it", key.escape_ascii())]
    Unconditional {
        /// The key.
        key: Bytes,
    },
    /// See [`MAX_PAGE`].
    #[error("a page of {limit} was asked for, 1 to {MAX_PAGE} are allowed")]
    PageSize {
        /// What was asked for.
        limit: usize,
    },
    /// Revisions begin at 1. A watch from 0 would mean "from now", which nobody can resume.
    #[error("revision 0 was asked for, the first one is 1")]
    RevisionZero,
    /// See [`MAX_LEASE_SECONDS`].
    #[error("a lease of {seconds} s was asked for, 1 to {MAX_LEASE_SECONDS} are allowed")]
    LeaseTime {
        /// What was asked for.
        seconds: u64,
    },
}
