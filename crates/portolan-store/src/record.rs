//! A stored record: a key with its value and the revisions at which it changed.

use bytes::Bytes;

use crate::LeaseId;

/// The number of a change. A store counts all its changes in one row: the empty store is at revision 1, and every
/// transaction that changes a key takes the next number for all of its keys.
pub type Revision = u64;

/// A key as it was at some revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: Bytes,
    /// Its value.
    pub value: Bytes,
    /// The revision at which it was created, for the last time.
    pub create_revision: Revision,
    /// The revision of its last change.
    pub mod_revision: Revision,
    /// How often it was written since it was created; 1 for a new one.
    pub version: u64,
    /// The lease that it goes with, if any.
    pub lease: Option<LeaseId>,
}

/// A change of one key, as a watch tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The key was created or got another value.
    Put(Record),
    /// The key was deleted.
    Delete {
        /// The key.
        key: Bytes,
        /// The revision at which it went.
        mod_revision: Revision,
    },
}

impl Event {
    /// The key that changed.
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put(record) => &record.key,
            Self::Delete { key, .. } => key,
        }
    }

    /// The revision of the change.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Put(record) => record.mod_revision,
            Self::Delete { mod_revision, .. } => *mod_revision,
        }
    }
}
