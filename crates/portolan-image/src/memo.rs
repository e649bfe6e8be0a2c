//! Digests of files that were read before, so an unchanged tree is not read again.
//!
//! A record is kept by device and inode number of a file. It is valid while size and both times are the same. A file
//! that changed less than [`YOUNG`] before it was read is not recorded, because it may change again within the same
//! clock tick.

use std::collections::HashMap;

use crate::source::Stamp;

/// Files younger than this are read again: two seconds, the tick of the coarsest file systems.
pub const YOUNG: i64 = 2_000_000_000;

/// The first bytes of a written memo: its format.
const MAGIC: &[u8; 8] = b"ptlmemo1";

const RECORD_BYTES: usize = 5 * 8 + 32;

/// Digests of files by their stamps.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    records: HashMap<(u64, u64), (Stamp, [u8; 32])>,
}

impl Memo {
    /// Returns the digest of a file's content if it was recorded in just this state.
    pub fn get(&self, stamp: &Stamp) -> Option<[u8; 32]> {
        let (known, content) = self.records.get(&(stamp.device, stamp.inode))?;
        (known == stamp).then_some(*content)
    }

    /// Records the digest of a file, unless it changed too shortly before `now` (nanoseconds since 1970).
    pub fn insert(&mut self, stamp: Stamp, content: [u8; 32], now: i64) {
        let newest = stamp.modified.max(stamp.changed);
        if newest < now.saturating_sub(YOUNG) {
            self.records
                .insert((stamp.device, stamp.inode), (stamp, content));
        }
    }

    /// Adds all records of another memo.
    pub fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
        } else {
            self.records.extend(other.records);
        }
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Writes all records down, in a stable order.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut records: Vec<_> = self.records.values().collect();
        records.sort_unstable_by_key(|(stamp, _)| (stamp.device, stamp.inode));
        let mut bytes = Vec::with_capacity(MAGIC.len() + records.len() * RECORD_BYTES);
        bytes.extend_from_slice(MAGIC);
        for (stamp, content) in records {
            for number in [stamp.device, stamp.inode, stamp.size] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            for time in [stamp.modified, stamp.changed] {
                bytes.extend_from_slice(&time.to_le_bytes());
            }
            bytes.extend_from_slice(content);
        }
        bytes
    }

    /// Reads what [`Memo::to_bytes`] wrote; `None` for anything else, which only means that files are read again.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let records = bytes.strip_prefix(MAGIC)?;
        let (records, rest) = records.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return None;
        }
        Some(Self {
            records: records
                .iter()
                .filter_map(record)
                .map(|(stamp, content)| ((stamp.device, stamp.inode), (stamp, content)))
                .collect(),
        })
    }
}

fn record(bytes: &[u8; RECORD_BYTES]) -> Option<(Stamp, [u8; 32])> {
    let (numbers, content) = bytes.split_at(5 * 8);
    let (numbers, _) = numbers.as_chunks::<8>();
    let [device, inode, size, modified, changed] = numbers else {
        return None;
    };
    let stamp = Stamp {
        device: u64::from_le_bytes(*device),
        inode: u64::from_le_bytes(*inode),
        size: u64::from_le_bytes(*size),
        modified: i64::from_le_bytes(*modified),
        changed: i64::from_le_bytes(*changed),
    };
    Some((stamp, content.try_into().ok()?))
}
