//! One commit under construction: transactions, leases and compaction applied to the tables, one after the other.
//!
//! A request is refused before its first byte is written, so a request that fails changes nothing and the others of
//! the batch continue.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::time::Duration;

use bytes::Bytes;
use redb::{ReadableTable, Table, WriteTransaction};

use super::fault::Fault;
use super::hub::Changes;
use super::leases::Leases;
use super::tables::{
    CURRENT, DIGEST, HISTORY, LEASE, LEASED, LOG, META, META_BYTES, META_COMPACTED, META_REVISION,
    encode_put, encode_tombstone, entry_bytes,
};
use super::view::View;
use crate::keys::kind;
use crate::{
    Compare, CompareField, Event, LeaseId, Outcome, Range, Record, Revision, StoreError,
    Transaction, Write,
};

type WriteView<'t> = View<
    Table<'t, &'static [u8], u64>,
    Table<'t, (&'static [u8], u64), &'static [u8]>,
    Table<'t, &'static str, u64>,
>;

/// Entries of the log that one commit forgets at most, so that writers do not wait for it.
pub(super) const COMPACTION_SLICE: usize = 1_000;

/// The tables of a write transaction, and what has been changed so far.
pub(super) struct Batch<'t> {
    view: WriteView<'t>,
    log: Table<'t, (u64, u32), &'static [u8]>,
    lease: Table<'t, i64, u64>,
    leased: Table<'t, (i64, &'static [u8]), ()>,
    digest: Table<'t, &'static [u8], (u128, u64)>,
    revision: Revision,
    bytes: u64,
    max_bytes: u64,
    changes: Vec<Changes>,
    /// What is added to and taken from the digest of each kind.
    digests: BTreeMap<Bytes, (u128, i64)>,
    is_changed: bool,
}

/// A request's answer: refused with nothing changed, or done. The outer error is the disk's and ends the batch.
pub(super) type Applied<T> = Result<Result<T, StoreError>, Fault>;

impl<'t> Batch<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction, max_bytes: u64) -> Result<Self, Fault> {
        let view = View {
            current: transaction.open_table(CURRENT)?,
            history: transaction.open_table(HISTORY)?,
            meta: transaction.open_table(META)?,
        };
        Ok(Self {
            log: transaction.open_table(LOG)?,
            lease: transaction.open_table(LEASE)?,
            leased: transaction.open_table(LEASED)?,
            digest: transaction.open_table(DIGEST)?,
            revision: view.meta(META_REVISION)?,
            bytes: view.meta(META_BYTES)?,
            view,
            max_bytes,
            changes: Vec::new(),
            digests: BTreeMap::new(),
            is_changed: false,
        })
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Compares, then writes and reads.
    pub(super) fn transact(
        &mut self,
        transaction: &Transaction,
        leases: &Leases,
    ) -> Applied<Outcome> {
        for compare in &transaction.compares {
            if !self.holds(compare)? {
                return self.outcome(false, &transaction.otherwise);
            }
        }
        if let Some(error) = self.refusal(transaction, leases) {
            return Ok(Err(error));
        }
        if let Err(error) = self.readable(&transaction.reads)? {
            return Ok(Err(error));
        }
        self.write(&transaction.writes)?;
        let mut pages = Vec::with_capacity(transaction.reads.len());
        for read in &transaction.reads {
            pages.push(self.view.read(read, self.revision)?);
        }
        let revision = self.revision;
        Ok(Ok(Outcome {
            succeeded: true,
            revision,
            pages,
        }))
    }

    fn outcome(&self, succeeded: bool, reads: &[Range]) -> Applied<Outcome> {
        if let Err(error) = self.readable(reads)? {
            return Ok(Err(error));
        }
        let pages = reads.iter().map(|read| self.view.read(read, self.revision));
        let pages = pages.collect::<Result<_, _>>()?;
        let revision = self.revision;
        Ok(Ok(Outcome {
            succeeded,
            revision,
            pages,
        }))
    }

    fn readable(&self, reads: &[Range]) -> Applied<()> {
        for read in reads {
            if let Err(error) = self.view.readable(read, self.revision)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn holds(&self, compare: &Compare) -> Result<bool, Fault> {
        let revision = match compare.field {
            CompareField::Mod => self.view.mod_revision(&compare.key)?,
            CompareField::Create => {
                let live = self.view.live(&compare.key)?;
                live.and_then(|live| live.record)
                    .map(|record| record.create_revision)
            }
        };
        Ok(revision.unwrap_or(0) == compare.revision)
    }

    fn refusal(&self, transaction: &Transaction, leases: &Leases) -> Option<StoreError> {
        let mut added = 0;
        for write in &transaction.writes {
            let Write::Put { key, value, lease } = write else {
                continue;
            };
            added += entry_bytes(key, value.len());
            if let Some(lease) = lease.filter(|lease| !leases.exists(*lease)) {
                return Some(StoreError::NoLease { lease });
            }
        }
        let (bytes, limit) = (self.bytes, self.max_bytes);
        (added > 0 && bytes + added > limit).then(|| StoreError::Full {
            detail: format!("{bytes} of {limit} bytes are in use"),
        })
    }

    fn write(&mut self, writes: &[Write]) -> Result<(), Fault> {
        let revision = self.revision + 1;
        let mut events = Vec::with_capacity(writes.len());
        for write in writes {
            let event = match write {
                Write::Put { key, value, lease } => Some(self.put(key, value, *lease, revision)?),
                Write::Delete { key } => self.delete(key, revision)?,
            };
            if let Some(event) = event {
                self.log
                    .insert((revision, events.len() as u32), &event.key()[..])?;
                events.push(event);
            }
        }
        self.take_revision(revision, events);
        Ok(())
    }

    /// A transaction that changed nothing takes no revision.
    fn take_revision(&mut self, revision: Revision, events: Vec<Event>) {
        if !events.is_empty() {
            self.revision = revision;
            self.is_changed = true;
            self.changes.push(Changes { revision, events });
        }
    }

    fn put(
        &mut self,
        key: &Bytes,
        value: &Bytes,
        lease: Option<LeaseId>,
        revision: Revision,
    ) -> Result<Event, Fault> {
        let old = self.take_live(key)?;
        let record = Record {
            key: key.clone(),
            value: value.clone(),
            create_revision: old.as_ref().map_or(revision, |old| old.create_revision),
            mod_revision: revision,
            version: old.as_ref().map_or(1, |old| old.version + 1),
            lease,
        };
        if let Some(lease) = lease {
            self.leased.insert((lease.number(), &key[..]), ())?;
        }
        let (stored, checksum) = encode_put(&record);
        self.store_version(key, revision, &stored)?;
        self.view.current.insert(&key[..], revision)?;
        self.count(key, checksum, 1);
        Ok(Event::Put(record))
    }

    fn delete(&mut self, key: &Bytes, revision: Revision) -> Result<Option<Event>, Fault> {
        if self.take_live(key)?.is_none() {
            return Ok(None);
        }
        self.store_version(key, revision, &encode_tombstone(key, revision))?;
        self.view.current.remove(&key[..])?;
        let key = key.clone();
        Ok(Some(Event::Delete {
            key,
            mod_revision: revision,
        }))
    }

    /// Takes the live version of a key out of its lease and out of the digest of its kind.
    fn take_live(&mut self, key: &Bytes) -> Result<Option<Record>, Fault> {
        let Some(live) = self.view.live(key)? else {
            return Ok(None);
        };
        self.count(key, live.checksum.wrapping_neg(), -1);
        if let Some(lease) = live.record.as_ref().and_then(|record| record.lease) {
            self.leased.remove((lease.number(), &key[..]))?;
        }
        Ok(live.record)
    }

    fn store_version(
        &mut self,
        key: &[u8],
        revision: Revision,
        stored: &[u8],
    ) -> Result<(), Fault> {
        self.view.history.insert((key, revision), stored)?;
        self.bytes += entry_bytes(key, stored.len());
        Ok(())
    }

    fn count(&mut self, key: &Bytes, checksum: u128, records: i64) {
        let kind = key.slice_ref(kind(key));
        let digest = self.digests.entry(kind).or_default();
        digest.0 = digest.0.wrapping_add(checksum);
        digest.1 += records;
    }

    /// Writes a new lease down.
    pub(super) fn grant(&mut self, lease: LeaseId, granted: Duration) -> Result<(), Fault> {
        self.lease.insert(lease.number(), granted.as_secs())?;
        self.is_changed = true;
        Ok(())
    }

    /// Deletes the keys of a lease, sorted and in one revision, and the lease.
    pub(super) fn end_lease(&mut self, lease: LeaseId) -> Result<(), Fault> {
        let number = lease.number();
        let deletes: Vec<Write> = self
            .leased_keys(lease)?
            .into_iter()
            .map(|key| Write::Delete { key })
            .collect();
        self.write(&deletes)?;
        self.lease.remove(number)?;
        self.is_changed = true;
        Ok(())
    }

    fn leased_keys(&self, lease: LeaseId) -> Result<Vec<Bytes>, Fault> {
        leased_keys(&self.leased, lease)
    }

    /// Says from when on history is kept. What lies before is taken away in slices.
    pub(super) fn compact(&mut self, revision: Revision) -> Applied<()> {
        let oldest = self.view.meta(META_COMPACTED)?;
        let current = self.revision;
        if revision <= oldest {
            return Ok(Err(StoreError::Compacted {
                asked: revision,
                oldest,
            }));
        }
        if revision > current {
            return Ok(Err(StoreError::Future {
                asked: revision,
                current,
            }));
        }
        self.view.meta.insert(META_COMPACTED, revision)?;
        self.is_changed = true;
        Ok(Ok(()))
    }

    /// Takes a slice of old history away; returns whether more is left.
    pub(super) fn forget(&mut self) -> Result<bool, Fault> {
        let oldest = self.view.meta(META_COMPACTED)?;
        let old = self.logged(..(oldest, 0))?;
        for (revision, index, key) in &old {
            self.forget_before(key, *revision)?;
            self.forget_deletion(key, *revision)?;
            self.log.remove((*revision, *index))?;
            self.is_changed = true;
        }
        let is_more_left = old.len() == COMPACTION_SLICE;
        if !is_more_left {
            // What was written at the oldest revision can be read and watched, but not what it replaced.
            for (revision, _, key) in self.logged((oldest, 0)..=(oldest, u32::MAX))? {
                self.forget_before(&key, revision)?;
            }
        }
        Ok(is_more_left)
    }

    /// The first entries of a part of the log, at most a slice: revision, place in it and key.
    fn logged(
        &self,
        part: impl RangeBounds<(Revision, u32)>,
    ) -> Result<Vec<(Revision, u32, Vec<u8>)>, Fault> {
        let entries = self.log.range(part)?.take(COMPACTION_SLICE);
        entries
            .map(|entry| {
                let (place, key) = entry?;
                let (revision, index) = place.value();
                Ok((revision, index, key.value().to_vec()))
            })
            .collect()
    }

    /// Takes away the versions of a key before a revision.
    fn forget_before(&mut self, key: &[u8], revision: Revision) -> Result<(), Fault> {
        let mut gone = Vec::new();
        for entry in self.view.history.range((key, 0)..(key, revision))? {
            let (place, stored) = entry?;
            gone.push((place.value().1, entry_bytes(key, stored.value().len())));
        }
        for (at, bytes) in gone {
            self.forget_version(key, at, bytes)?;
        }
        Ok(())
    }

    /// Takes away that a key was deleted at a revision, when that is what was written there.
    fn forget_deletion(&mut self, key: &[u8], revision: Revision) -> Result<(), Fault> {
        let Some(bytes) = self.deletion_bytes(key, revision)? else {
            return Ok(());
        };
        self.forget_version(key, revision, bytes)
    }

    fn deletion_bytes(&self, key: &[u8], revision: Revision) -> Result<Option<u64>, Fault> {
        let Some(stored) = self.view.history.get((key, revision))? else {
            return Ok(None);
        };
        let version = super::tables::decode(key, revision, stored.value())?;
        let bytes = entry_bytes(key, stored.value().len());
        Ok(version.record.is_none().then_some(bytes))
    }

    fn forget_version(&mut self, key: &[u8], at: Revision, bytes: u64) -> Result<(), Fault> {
        self.view.history.remove((key, at))?;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.is_changed = true;
        Ok(())
    }

    /// Writes down the revision, the size and the digests. Returns what was changed, and whether anything was.
    pub(super) fn finish(mut self) -> Result<(Vec<Changes>, bool), Fault> {
        if !self.is_changed {
            return Ok((Vec::new(), false));
        }
        self.view.meta.insert(META_REVISION, self.revision)?;
        self.view.meta.insert(META_BYTES, self.bytes)?;
        for (kind, (sum, records)) in &self.digests {
            let old = self
                .digest
                .get(&kind[..])?
                .map_or((0, 0), |old| old.value());
            let new = (
                old.0.wrapping_add(*sum),
                old.1.wrapping_add_signed(*records),
            );
            self.digest.insert(&kind[..], new)?;
        }
        Ok((self.changes, true))
    }
}

/// The keys that go with a lease, sorted.
pub(super) fn leased_keys(
    leased: &impl ReadableTable<(i64, &'static [u8]), ()>,
    lease: LeaseId,
) -> Result<Vec<Bytes>, Fault> {
    let number = lease.number();
    let mut keys = Vec::new();
    for entry in leased.range((number, &[][..])..)? {
        let (place, ()) = (entry?.0, ());
        let (owner, key) = place.value();
        if owner != number {
            break;
        }
        keys.push(Bytes::copy_from_slice(key));
    }
    Ok(keys)
}
