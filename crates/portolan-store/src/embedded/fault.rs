//! Faults below the embedded engine: the disk fails, or it returns other data than what was written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::StoreError;

/// A failure below the engine.
#[derive(Debug)]
pub(super) enum Fault {
    /// The disk or redb.
    Disk(String),
    /// Stored bytes are wrong.
    Damaged(String),
}

impl Fault {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Disk(detail) => StoreError::Stopped { detail },
            Self::Damaged(detail) => StoreError::Damaged { detail },
        }
    }

    pub(super) fn detail(&self) -> &str {
        match self {
            Self::Disk(detail) | Self::Damaged(detail) => detail,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { detail } => Self::Damaged(detail),
            other => Self::Disk(other.to_string()),
        }
    }
}

impl From<redb::StorageError> for Fault {
    fn from(error: redb::StorageError) -> Self {
        match error {
            redb::StorageError::Corrupted(detail) => Self::Damaged(detail),
            other => Self::Disk(other.to_string()),
        }
    }
}

impl From<redb::TableError> for Fault {
    fn from(error: redb::TableError) -> Self {
        match error {
            redb::TableError::Storage(error) => error.into(),
            // A table that is missing or of another type: the catalogue of tables is not what was written.
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<redb::TransactionError> for Fault {
    fn from(error: redb::TransactionError) -> Self {
        match error {
            redb::TransactionError::Storage(error) => error.into(),
            other => Self::Disk(other.to_string()),
        }
    }
}

impl From<redb::DatabaseError> for Fault {
    fn from(error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::Storage(error) => error.into(),
            other => Self::Disk(other.to_string()),
        }
    }
}

impl From<redb::CommitError> for Fault {
    fn from(error: redb::CommitError) -> Self {
        match error {
            redb::CommitError::Storage(error) => error.into(),
            other => Self::Disk(other.to_string()),
        }
    }
}

/// Runs something on the tables. redb trusts its pages and panics on some that were damaged: that is told as damage.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let detail = panic.downcast_ref::<String>().map(String::as_str);
        let detail = detail.or_else(|| panic.downcast_ref::<&str>().copied());
        let detail = detail.unwrap_or("no message");
        Err(Fault::Damaged(format!("reading it ended in `{detail}`")))
    })
}
