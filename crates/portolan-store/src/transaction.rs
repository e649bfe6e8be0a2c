//! A transaction: if all compares hold, it writes, otherwise it reads; all at one revision.
//!
//! Nothing is written without a compare. A writer says what the key was when it decided: `unchanged` since a
//! revision, or `absent`. So two writers never overwrite each other without noticing, and a repeated request never
//! takes effect twice.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::limits::{
    MAX_COMPARES, MAX_KEY_BYTES, MAX_OPERATIONS, MAX_TRANSACTION_BYTES, MAX_VALUE_BYTES,
};
use crate::{LeaseId, Page, Range, Refusal, Revision};

/// What must hold for a transaction to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compare {
    /// The key.
    pub key: Bytes,
    /// Which of its revisions.
    pub field: CompareField,
    /// Is this one; 0 for a key that does not exist.
    pub revision: Revision,
}

/// A revision of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareField {
    /// That of its last change.
    Mod,
    /// That of its creation.
    Create,
}

impl Compare {
    /// The key was last changed at this revision.
    pub fn unchanged(key: impl Into<Bytes>, mod_revision: Revision) -> Self {
        Self {
            key: key.into(),
            field: CompareField::Mod,
            revision: mod_revision,
        }
    }

    /// The key is still the one that was created at this revision, whatever its value became.
    pub fn same(key: impl Into<Bytes>, create_revision: Revision) -> Self {
        Self {
            key: key.into(),
            field: CompareField::Create,
            revision: create_revision,
        }
    }

    /// The key does not exist.
    pub fn absent(key: impl Into<Bytes>) -> Self {
        Self::unchanged(key, 0)
    }
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Gives a key a value. Without a lease, the key leaves the lease it had.
    Put {
        /// The key; it must be compared in the same transaction.
        key: Bytes,
        /// Its value.
        value: Bytes,
        /// The lease that it goes with.
        lease: Option<LeaseId>,
    },
    /// Deletes a key, if it exists.
    Delete {
        /// The key; it must be compared in the same transaction.
        key: Bytes,
    },
}

impl Write {
    /// The key that it changes.
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// Compares, what to write and then read when all hold, and what to read when one does not.
///
/// Reads come after the writes and see them, so that they equal a read at the revision of the transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transaction {
    pub(crate) compares: Vec<Compare>,
    pub(crate) writes: Vec<Write>,
    pub(crate) reads: Vec<Range>,
    pub(crate) otherwise: Vec<Range>,
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether all compares held and the writes were done.
    pub succeeded: bool,
    /// The store's revision after it; that of its changes, if it made any.
    pub revision: Revision,
    /// One for each range of the branch that was taken, in order.
    pub pages: Vec<Page>,
}

impl Transaction {
    /// An empty one, to which parts are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything of both: all compares must hold, and all writes are done.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.compares.extend(other.compares);
        self.writes.extend(other.writes);
        self.reads.extend(other.reads);
        self.otherwise.extend(other.otherwise);
        self
    }

    /// Creates a key that does not exist.
    pub fn create(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        let key = key.into();
        Self::new()
            .when(Compare::absent(key.clone()))
            .put(key, value)
    }

    /// Replaces the value of a key that was last changed at `mod_revision`.
    pub fn replace(key: impl Into<Bytes>, mod_revision: Revision, value: impl Into<Bytes>) -> Self {
        let key = key.into();
        Self::new()
            .when(Compare::unchanged(key.clone(), mod_revision))
            .put(key, value)
    }

    /// Deletes a key that was last changed at `mod_revision`.
    pub fn remove(key: impl Into<Bytes>, mod_revision: Revision) -> Self {
        let key = key.into();
        Self::new()
            .when(Compare::unchanged(key.clone(), mod_revision))
            .delete(key)
    }

    /// Adds a compare.
    #[must_use]
    pub fn when(mut self, compare: Compare) -> Self {
        self.compares.push(compare);
        self
    }

    /// Adds a put without a lease.
    #[must_use]
    pub fn put(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.write(Write::Put {
            key: key.into(),
            value: value.into(),
            lease: None,
        })
    }

    /// Adds a put of a key that goes with a lease.
    #[must_use]
    pub fn put_leased(
        self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        lease: LeaseId,
    ) -> Self {
        self.write(Write::Put {
            key: key.into(),
            value: value.into(),
            lease: Some(lease),
        })
    }

    /// Adds a delete.
    #[must_use]
    pub fn delete(self, key: impl Into<Bytes>) -> Self {
        self.write(Write::Delete { key: key.into() })
    }

    /// Adds a write.
    #[must_use]
    pub fn write(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// Adds a read for when the compares hold.
    #[must_use]
    pub fn read(mut self, range: Range) -> Self {
        self.reads.push(range);
        self
    }

    /// Adds a read for when a compare does not hold.
    #[must_use]
    pub fn otherwise(mut self, range: Range) -> Self {
        self.otherwise.push(range);
        self
    }

    /// Whether it may change keys.
    pub fn writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Whether it may give a key a value.
    pub fn puts(&self) -> bool {
        let mut writes = self.writes.iter();
        writes.any(|write| matches!(write, Write::Put { .. }))
    }

    /// Checks everything that can be refused without looking into a store.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_counts()?;
        self.check_sizes()?;
        self.check_keys()?;
        let mut reads = self.reads.iter().chain(&self.otherwise);
        reads.try_for_each(Range::check)
    }

    fn check_counts(&self) -> Result<(), Refusal> {
        let operations = (self.writes.len() + self.reads.len()).max(self.otherwise.len());
        if operations > MAX_OPERATIONS {
            return Err(Refusal::ManyOperations { count: operations });
        }
        if self.compares.len() > MAX_COMPARES {
            let count = self.compares.len();
            return Err(Refusal::ManyCompares { count });
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), Refusal> {
        let mut bytes = 0;
        for compare in &self.compares {
            bytes += compare.key.len();
        }
        for write in &self.writes {
            bytes += match write {
                Write::Put { value, .. } if value.len() > MAX_VALUE_BYTES => {
                    let length = value.len();
                    return Err(Refusal::LargeValue { length });
                }
                Write::Put { key, value, .. } => key.len() + value.len(),
                Write::Delete { key } => key.len(),
            };
        }
        match bytes {
            _ if bytes > MAX_TRANSACTION_BYTES => Err(Refusal::LargeTransaction { bytes }),
            _ => Ok(()),
        }
    }

    fn check_keys(&self) -> Result<(), Refusal> {
        let compared: BTreeSet<&Bytes> = self.compares.iter().map(|compare| &compare.key).collect();
        let mut written = BTreeSet::new();
        for key in self.writes.iter().map(Write::key) {
            if !written.insert(key) {
                return Err(Refusal::KeyTwice { key: key.clone() });
            }
            if !compared.contains(key) {
                return Err(Refusal::Unconditional { key: key.clone() });
            }
        }
        for key in compared {
            match key.len() {
                0 => return Err(Refusal::EmptyKey),
                length if length > MAX_KEY_BYTES => return Err(Refusal::LongKey { length }),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(transaction: &Transaction) -> Refusal {
        transaction.check().expect_err("refused")
    }

    #[test]
    fn the_same_key_twice_is_refused() {
        let both = Transaction::create("a", "1").delete("a");
        assert_eq!(refused(&both), Refusal::KeyTwice { key: "a".into() });
    }

    #[test]
    fn a_write_without_a_compare_of_its_key_is_refused() {
        let blind = Transaction::new().when(Compare::absent("b")).put("a", "1");
        assert_eq!(refused(&blind), Refusal::Unconditional { key: "a".into() });
    }

    #[test]
    fn each_limit_is_reached_and_not_passed() {
        let put = |size: usize| Transaction::create("a", vec![0; size]);
        assert_eq!(put(MAX_VALUE_BYTES).check(), Ok(()));
        assert!(matches!(
            refused(&put(MAX_VALUE_BYTES + 1)),
            Refusal::LargeValue { .. }
        ));
        let key = |size: usize| Transaction::create(vec![b'k'; size], "");
        assert_eq!(key(MAX_KEY_BYTES).check(), Ok(()));
        assert!(matches!(
            refused(&key(MAX_KEY_BYTES + 1)),
            Refusal::LongKey { .. }
        ));
        assert_eq!(refused(&key(0)), Refusal::EmptyKey);
        let many = |count: usize| {
            (0..count).fold(Transaction::new(), |transaction, number| {
                let key = format!("{number}");
                transaction.when(Compare::absent(key.clone())).put(key, "")
            })
        };
        assert_eq!(many(MAX_OPERATIONS).check(), Ok(()));
        assert!(matches!(
            refused(&many(MAX_OPERATIONS + 1)),
            Refusal::ManyOperations { .. }
        ));
        let wide = |size: usize| {
            (0..4).fold(Transaction::new(), |transaction, number| {
                let key = format!("{number}");
                transaction
                    .when(Compare::absent(key.clone()))
                    .put(key, vec![0; size])
            })
        };
        assert_eq!(wide(MAX_TRANSACTION_BYTES / 4 - 2).check(), Ok(()));
        assert!(matches!(
            refused(&wide(MAX_TRANSACTION_BYTES / 4)),
            Refusal::LargeTransaction { .. }
        ));
    }
}
