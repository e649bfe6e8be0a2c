//! A database that is open. redb writes once more when it is closed, and panics if its pages were damaged meanwhile; that
//! must not end the process, which is closing it because of the damage perhaps.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::Database;

/// Closes its database without a panic.
pub(super) struct OpenDatabase(Option<Database>);

impl OpenDatabase {
    pub(super) fn new(database: Database) -> Self {
        Self(Some(database))
    }
}

impl Deref for OpenDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        match &self.0 {
            Some(database) => database,
            None => unreachable!("it is taken away only when nobody has it any more"),
        }
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        let database = self.0.take();
        // What could not be written is found at the next start, which checks every page.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }
}
