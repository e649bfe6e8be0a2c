//! The newest committed state, opened once for all reads up to the next commit.
//!
//! Opening a read transaction and its tables costs several times what reading a key does. The writer closes the open
//! state before each commit: so it keeps no page from being used again, and no read after an answer sees less than the
//! answer said. While a commit is under way each read opens the tables for itself.

use std::sync::Arc;

use parking_lot::RwLock;
use redb::{Database, ReadableDatabase};

use super::fault::Fault;
use super::tables::{META_BYTES, META_COMPACTED, META_REVISION};
use super::view::{Snapshot, readable};
use crate::{Page, Range, Revision, StoreError};

/// The tables as of one commit.
pub(super) struct OpenState {
    view: Snapshot,
    /// The newest revision.
    pub(super) revision: Revision,
    /// Revisions before this one cannot be read any more.
    pub(super) compacted: Revision,
    /// What the history takes.
    pub(super) bytes: u64,
}

/// The state that reads share between two commits.
pub(super) struct NewestState(RwLock<Slot>);

enum Slot {
    /// Nobody has read since so many commits.
    Closed(u64),
    /// Opened after so many commits.
    Open(u64, Arc<OpenState>),
    /// The next commit after so many is under way, or failed.
    Committing(u64),
}

impl OpenState {
    fn open(database: &Database) -> Result<Self, Fault> {
        let view = Snapshot::open(&database.begin_read()?)?;
        Ok(Self {
            revision: view.meta(META_REVISION)?,
            compacted: view.meta(META_COMPACTED)?,
            bytes: view.meta(META_BYTES)?,
            view,
        })
    }

    /// Checks that a range asks for a revision that can be read, and reads it.
    pub(super) fn range(&self, range: &Range) -> Result<Result<Page, StoreError>, Fault> {
        if let Err(error) = readable(range, self.revision, self.compacted) {
            return Ok(Err(error));
        }
        self.view.read(range, self.revision).map(Ok)
    }
}

impl NewestState {
    pub(super) fn new() -> Self {
        Self(RwLock::new(Slot::Closed(0)))
    }

    /// The state of the last commit that was answered, or a later one.
    pub(super) fn get(&self, database: &Database) -> Result<Arc<OpenState>, Fault> {
        let commits = match &*self.0.read() {
            Slot::Open(_, state) => return Ok(Arc::clone(state)),
            Slot::Closed(commits) => Some(*commits),
            Slot::Committing(_) => None,
        };
        let state = Arc::new(OpenState::open(database)?);
        if let Some(commits) = commits {
            self.keep(commits, &state);
        }
        Ok(state)
    }

    /// Keeps a state that was opened after so many commits. What was opened before a commit is not the newest after it.
    fn keep(&self, commits: u64, state: &Arc<OpenState>) {
        let mut slot = self.0.write();
        if matches!(*slot, Slot::Closed(now) if now == commits) {
            *slot = Slot::Open(commits, Arc::clone(state));
        }
    }

    /// Closes the state: a commit begins.
    pub(super) fn begin_commit(&self) {
        let mut slot = self.0.write();
        let closed = Slot::Committing(slot.commits());
        let open = std::mem::replace(&mut *slot, closed);
        drop(slot);
        // Dropping a read transaction takes a lock of the database.
        drop(open);
    }

    /// The commit is durable: from now on reads may share what they open.
    pub(super) fn end_commit(&self) {
        let mut slot = self.0.write();
        *slot = Slot::Closed(slot.commits() + 1);
    }
}

impl Slot {
    fn commits(&self) -> u64 {
        match self {
            Self::Closed(commits) | Self::Open(commits, _) | Self::Committing(commits) => *commits,
        }
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    fn database() -> Database {
        let backend = InMemoryBackend::new();
        let database = Database::builder().create_with_backend(backend);
        let database = database.expect("a database");
        super::super::prepare(&database).expect("tables");
        database
    }

    #[test]
    fn reads_share_a_state_up_to_the_next_commit() {
        let (database, newest) = (database(), NewestState::new());
        let get = || newest.get(&database).expect("a state");
        let first = get();
        assert!(Arc::ptr_eq(&first, &get()));
        newest.begin_commit();
        assert!(!Arc::ptr_eq(&get(), &get()), "each read opens its own");
        newest.end_commit();
        let second = get();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &get()));
    }

    #[test]
    fn a_state_that_a_commit_overtook_is_not_shared() {
        let (database, newest) = (database(), NewestState::new());
        let before = Arc::new(OpenState::open(&database).expect("a state"));
        newest.begin_commit();
        newest.keep(0, &before);
        newest.end_commit();
        newest.keep(0, &before);
        let after = newest.get(&database).expect("a state");
        assert!(!Arc::ptr_eq(&before, &after));
    }
}
