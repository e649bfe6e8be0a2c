//! The file format of the embedded engine: redb's tables and the bytes of a stored record.
//!
//! ```text
//! current   key              → revision of its last change          live keys only
//! history   (key, revision)  → record or tombstone, with checksum
//! log       (revision, n)    → key                                  what each revision changed, in order
//! lease     id               → seconds granted
//! leased    (id, key)        → ()
//! digest    kind             → (sum of the checksums of its live records, their number)
//! meta      name             → number: format, revision, compacted, bytes
//! ```

use bytes::Bytes;
use redb::TableDefinition;
use sha2::{Digest, Sha256};

use crate::{Event, LeaseId, Record, Revision, StoreError};

pub(super) const CURRENT: TableDefinition<&[u8], u64> = TableDefinition::new("current");
pub(super) const HISTORY: TableDefinition<(&[u8], u64), &[u8]> = TableDefinition::new("history");
pub(super) const LOG: TableDefinition<(u64, u32), &[u8]> = TableDefinition::new("log");
pub(super) const LEASE: TableDefinition<i64, u64> = TableDefinition::new("lease");
pub(super) const LEASED: TableDefinition<(i64, &[u8]), ()> = TableDefinition::new("leased");
pub(super) const DIGEST: TableDefinition<&[u8], (u128, u64)> = TableDefinition::new("digest");
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// Names in [`META`].
pub(super) const META_FORMAT: &str = "format";
pub(super) const META_REVISION: &str = "revision";
pub(super) const META_COMPACTED: &str = "compacted";
pub(super) const META_BYTES: &str = "bytes";

/// The format of these tables.
pub(super) const FORMAT: u64 = 1;

/// What an entry costs besides its key and value, about: two keys and the trees around them.
const ENTRY_OVERHEAD: u64 = 96;

/// A stored version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVersion {
    /// `None`: the key was deleted.
    pub(super) record: Option<Record>,
    /// See [`checksum`].
    pub(super) checksum: u128,
}

const PUT: u8 = 1;
const TOMBSTONE: u8 = 2;
/// Mark, checksum, create revision, version, lease.
const HEAD: usize = 1 + 16 + 8 + 8 + 8;

/// The bytes of a record, and its checksum.
pub(super) fn encode_put(record: &Record) -> (Vec<u8>, u128) {
    let lease = record.lease.map_or(0, LeaseId::number);
    let fields = Fields {
        mark: PUT,
        create_revision: record.create_revision,
        version: record.version,
        lease,
    };
    fields.encode(&record.key, record.mod_revision, &record.value)
}

/// The bytes of a deletion.
pub(super) fn encode_tombstone(key: &[u8], revision: Revision) -> Vec<u8> {
    let fields = Fields {
        mark: TOMBSTONE,
        create_revision: 0,
        version: 0,
        lease: 0,
    };
    fields.encode(key, revision, &[]).0
}

/// Reads what was stored for a key at a revision, and checks that it is what was written there.
pub fn decode(key: &[u8], revision: Revision, stored: &[u8]) -> Result<StoredVersion, StoreError> {
    let damaged = || damaged_at(key, revision);
    let (head, value) = stored.split_at_checked(HEAD).ok_or_else(damaged)?;
    let number = |at: usize| u64::from_be_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let fields = Fields {
        mark: head[0],
        create_revision: number(17),
        version: number(25),
        lease: number(33) as i64,
    };
    let checksum = u128::from_be_bytes(head[1..17].try_into().expect("sixteen bytes"));
    if checksum != fields.checksum(key, revision, value) {
        return Err(damaged());
    }
    let record = match fields.mark {
        TOMBSTONE if value.is_empty() => None,
        PUT => Some(Record {
            key: Bytes::copy_from_slice(key),
            value: Bytes::copy_from_slice(value),
            create_revision: fields.create_revision,
            mod_revision: revision,
            version: fields.version,
            lease: LeaseId::new(fields.lease),
        }),
        _ => return Err(damaged()),
    };
    Ok(StoredVersion { record, checksum })
}

impl StoredVersion {
    /// The change that stored it.
    pub(super) fn into_event(self, key: &[u8], revision: Revision) -> Event {
        self.record.map_or_else(
            || Event::Delete {
                key: Bytes::copy_from_slice(key),
                mod_revision: revision,
            },
            Event::Put,
        )
    }
}

/// What an entry of the history adds to the size of the store.
pub(super) fn entry_bytes(key: &[u8], stored: usize) -> u64 {
    (key.len() * 3 + stored) as u64 + ENTRY_OVERHEAD
}

pub(super) fn damaged_at(key: &[u8], revision: Revision) -> StoreError {
    StoreError::Damaged {
        detail: format!(
            "key `{}` at revision {revision} does not read as it was written",
            key.escape_ascii()
        ),
    }
}

struct Fields {
    mark: u8,
    create_revision: Revision,
    version: u64,
    lease: i64,
}

impl Fields {
    fn encode(&self, key: &[u8], revision: Revision, value: &[u8]) -> (Vec<u8>, u128) {
        let checksum = self.checksum(key, revision, value);
        let mut bytes = Vec::with_capacity(HEAD + value.len());
        bytes.push(self.mark);
        bytes.extend(checksum.to_be_bytes());
        bytes.extend(self.create_revision.to_be_bytes());
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.lease.to_be_bytes());
        bytes.extend(value);
        (bytes, checksum)
    }

    /// Over everything that belongs to the version, its place too: bytes that are whole but lie under another key are wrong.
    fn checksum(&self, key: &[u8], revision: Revision, value: &[u8]) -> u128 {
        let mut hash = Sha256::new();
        hash.update((key.len() as u64).to_be_bytes());
        hash.update(key);
        hash.update(revision.to_be_bytes());
        hash.update([self.mark]);
        hash.update(self.create_revision.to_be_bytes());
        hash.update(self.version.to_be_bytes());
        hash.update(self.lease.to_be_bytes());
        hash.update(value);
        let digest = hash.finalize();
        u128::from_be_bytes(digest[..16].try_into().expect("sixteen of 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            key: "/a".into(),
            value: "value".into(),
            create_revision: 3,
            mod_revision: 9,
            version: 2,
            lease: LeaseId::new(-5),
        }
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let (bytes, checksum) = encode_put(&record());
        let read = decode(b"/a", 9, &bytes).expect("whole");
        assert_eq!((read.record, read.checksum), (Some(record()), checksum));
        let gone = decode(b"/a", 9, &encode_tombstone(b"/a", 9)).expect("whole");
        assert_eq!(gone.record, None);
    }

    #[test]
    fn every_flipped_bit_every_cut_and_another_place_are_noticed() {
        let (bytes, _) = encode_put(&record());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(b"/a", 9, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(
                decode(b"/a", 9, &bytes[..length]).is_err(),
                "length {length}"
            );
        }
        assert!(decode(b"/b", 9, &bytes).is_err());
        assert!(decode(b"/a", 8, &bytes).is_err());
    }
}
