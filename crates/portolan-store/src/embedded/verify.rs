//! Reads everything and compares it with the checksums and digests.

use std::collections::BTreeMap;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::fault::Fault;
use super::tables::{
    CURRENT, DIGEST, HISTORY, LEASE, LEASED, LOG, META_BYTES, META_COMPACTED, META_REVISION,
    damaged_at, decode, entry_bytes,
};
use super::view::{Snapshot, damaged};
use crate::Revision;
use crate::keys::kind;

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The newest revision.
    pub revision: Revision,
    /// Live records.
    pub records: u64,
    /// Versions in the history, the live ones too.
    pub versions: u64,
}

/// Verifies a store whole: live records, history, log and sizes.
pub(super) fn verify(database: &Database) -> Result<Verification, Fault> {
    let transaction = database.begin_read()?;
    let records = verify_live(&transaction)?;
    let view = Snapshot::open(&transaction)?;
    let versions = verify_history(&transaction, &view)?;
    verify_log(&transaction, &view)?;
    Ok(Verification {
        revision: view.meta(META_REVISION)?,
        records,
        versions,
    })
}

/// Verifies the live records and their leases; returns how many there are.
pub(super) fn verify_live(transaction: &ReadTransaction) -> Result<u64, Fault> {
    let view = Snapshot::open(transaction)?;
    let leased = transaction.open_table(LEASED)?;
    let mut digests: BTreeMap<Vec<u8>, (u128, u64)> = BTreeMap::new();
    let (mut records, mut with_lease) = (0, 0);
    for entry in transaction.open_table(CURRENT)?.iter()? {
        let (key, revision) = entry?;
        let (key, revision) = (key.value(), revision.value());
        let version = view.version(key, revision)?;
        let record = version.record.ok_or_else(|| damaged_at(key, revision))?;
        if let Some(lease) = record.lease {
            with_lease += 1;
            if leased.get((lease.number(), key))?.is_none() {
                return Err(damaged_at(key, revision).into());
            }
        }
        let digest = match digests.get_mut(kind(key)) {
            Some(digest) => digest,
            None => digests.entry(kind(key).to_vec()).or_default(),
        };
        digest.0 = digest.0.wrapping_add(version.checksum);
        digest.1 += 1;
        records += 1;
    }
    let mut count = 0_u64;
    let leases = transaction.open_table(LEASE)?;
    for entry in leased.iter()? {
        let number = entry?.0.value().0;
        if leases.get(number)?.is_none() {
            return Err(damaged(format!(
                "keys go with lease {number:016x}, which does not exist"
            ))
            .into());
        }
        count += 1;
    }
    if count != with_lease {
        return Err(damaged("keys and leases do not fit".to_owned()).into());
    }
    compare(&digests, transaction)?;
    Ok(records)
}

/// Every kind has the digest that was written with its last change.
fn compare(
    digests: &BTreeMap<Vec<u8>, (u128, u64)>,
    transaction: &ReadTransaction,
) -> Result<(), Fault> {
    let stored = transaction.open_table(DIGEST)?;
    let mut found = 0;
    for entry in stored.iter()? {
        let (kind, digest) = entry?;
        let expected = digest.value();
        if expected == (0, 0) && !digests.contains_key(kind.value()) {
            continue;
        }
        found += 1;
        if digests.get(kind.value()) != Some(&expected) {
            let kind = kind.value().escape_ascii();
            return Err(damaged(format!(
                "the records of `{kind}` are not those that were written"
            ))
            .into());
        }
    }
    if found != digests.len() {
        return Err(damaged("records of a kind without a digest".to_owned()).into());
    }
    Ok(())
}

fn verify_history(transaction: &ReadTransaction, view: &Snapshot) -> Result<u64, Fault> {
    let (mut versions, mut bytes) = (0, 0);
    for entry in transaction.open_table(HISTORY)?.iter()? {
        let (place, stored) = entry?;
        let (key, revision) = place.value();
        decode(key, revision, stored.value())?;
        versions += 1;
        bytes += entry_bytes(key, stored.value().len());
    }
    let expected = view.meta(META_BYTES)?;
    if bytes != expected {
        return Err(damaged(format!("the history has {bytes} bytes, not {expected}")).into());
    }
    Ok(versions)
}

/// Every revision since the compaction is there, without a gap, and each entry has its version.
fn verify_log(transaction: &ReadTransaction, view: &Snapshot) -> Result<(), Fault> {
    let begin = view.meta(META_COMPACTED)?.max(2);
    let end = view.meta(META_REVISION)?;
    let (mut expected, mut index) = (begin, 0);
    for entry in transaction.open_table(LOG)?.range((begin, 0)..)? {
        let (place, key) = entry?;
        let (revision, at) = place.value();
        if (revision, at) == (expected + 1, 0) && index > 0 {
            (expected, index) = (revision, 0);
        }
        if (revision, at) != (expected, index) {
            return Err(damaged(format!("the log has a gap before revision {revision}")).into());
        }
        index += 1;
        view.version(key.value(), revision)?;
    }
    let last = if index > 0 { expected } else { begin - 1 };
    if last != end.max(begin - 1) {
        return Err(damaged(format!("the log ends at revision {last}, not {end}")).into());
    }
    Ok(())
}
