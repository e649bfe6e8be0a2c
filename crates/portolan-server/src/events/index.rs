//! Where each event is: the records of the store, oldest first, and what they hold.

use std::collections::{BTreeMap, HashMap};

use portolan_store::Revision;
use sha2::{Digest, Sha256};

use crate::keys::{all_events, events};

/// A record of events as the index knows it.
#[derive(Debug, Clone)]
struct IndexedRecord {
    revision: Revision,
    bytes: u64,
    events: Vec<EventId>,
}

/// What stands for the namespace and name of an event: names are long, and there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct EventId(u128);

impl EventId {
    fn new(namespace: &str, name: &str) -> Self {
        let digest = Sha256::digest(format!("{namespace}/{name}").as_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Self(u128::from_be_bytes(first))
    }
}

/// A record that can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldRecord {
    pub(crate) key: String,
    pub(crate) revision: Revision,
    /// How many events it has.
    pub(crate) count: u64,
}

/// All events by their records.
#[derive(Debug, Default)]
pub(crate) struct EventIndex {
    records: BTreeMap<String, IndexedRecord>,
    keys: HashMap<EventId, String>,
    bytes: u64,
}

impl EventIndex {
    /// Takes over a record. Returns for each of its events, in order, whether it is new: not in the record before, and not in
    /// another one, which two servers can write for an agent that sent it to both.
    pub(crate) fn put<'n>(
        &mut self,
        key: &str,
        revision: Revision,
        bytes: usize,
        events: impl Iterator<Item = (&'n str, &'n str)>,
    ) -> Vec<bool> {
        let before = self.forget(key);
        let mut ids = Vec::new();
        let mut are_new = Vec::new();
        for (namespace, name) in events {
            let id = EventId::new(namespace, name);
            let is_first = !self.keys.contains_key(&id);
            if is_first {
                self.keys.insert(id, key.to_owned());
            }
            are_new.push(is_first && !before.contains(&id));
            ids.push(id);
        }
        self.bytes += bytes as u64;
        let record = IndexedRecord {
            revision,
            bytes: bytes as u64,
            events: ids,
        };
        self.records.insert(key.to_owned(), record);
        are_new
    }

    /// Forgets a record.
    pub(crate) fn remove(&mut self, key: &str) {
        self.forget(key);
    }

    fn forget(&mut self, key: &str) -> Vec<EventId> {
        let Some(record) = self.records.remove(key) else {
            return Vec::new();
        };
        for id in &record.events {
            if self.keys.get(id).is_some_and(|held| held == key) {
                self.keys.remove(id);
            }
        }
        self.bytes -= record.bytes;
        record.events
    }

    /// The key of the record that has an event.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Option<&str> {
        let key = self.keys.get(&EventId::new(namespace, name));
        key.map(String::as_str)
    }

    /// Records that were written before a second, and the oldest of those that are more than `max_bytes` together; each with
    /// whether it is one of the first sort. At most so many.
    pub(crate) fn to_remove(
        &self,
        before: u64,
        max_bytes: u64,
        most: usize,
    ) -> Vec<(OldRecord, bool)> {
        let mut by_age: Vec<(u64, &String, &IndexedRecord)> = self
            .records
            .iter()
            .map(|(key, record)| (second_of(key), key, record))
            .collect();
        by_age.sort_unstable_by_key(|(second, key, _)| (*second, *key));
        let mut bytes = self.bytes;
        let mut found = Vec::new();
        for (second, key, record) in by_age.into_iter().take(most) {
            let is_old = second < before;
            if !is_old && bytes <= max_bytes {
                break;
            }
            bytes -= record.bytes;
            let old = OldRecord {
                key: key.clone(),
                revision: record.revision,
                count: record.events.len() as u64,
            };
            found.push((old, is_old));
        }
        found
    }

    /// How many events there are, and the bytes of their records.
    pub(crate) fn counts(&self) -> (usize, u64) {
        (self.keys.len(), self.bytes)
    }
}

/// The second in which a record was written: `…/object-event/<shard>/<second>-…`.
fn second_of(key: &str) -> u64 {
    let rest = key.strip_prefix(&all_events()).unwrap_or_default();
    let name = rest.split_once('/').map_or(rest, |(_, name)| name);
    let second = name.split_once('-').map(|(second, _)| second);
    second.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The key of a record of events.
pub(super) fn record_key(shard: u32, second: u64, server: &str, number: u64) -> String {
    format!("{}{second:011}-{server}-{number}", events(shard))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(index: &mut EventIndex, key: &str, names: &[&str]) -> Vec<bool> {
        index.put(key, 1, 100, names.iter().map(|name| ("team", *name)))
    }

    #[test]
    fn an_event_is_found_in_the_first_record_that_has_it() {
        let mut index = EventIndex::default();
        let (first, second) = (record_key(0, 10, "a", 0), record_key(0, 10, "b", 0));
        assert_eq!(put(&mut index, &first, &["x", "y"]), [true, true]);
        assert_eq!(put(&mut index, &second, &["y", "z"]), [false, true]);
        assert_eq!(index.key("team", "y"), Some(first.as_str()));
        assert_eq!(index.key("other", "y"), None);
        // What is written again with less is nothing new.
        assert_eq!(put(&mut index, &first, &["y"]), [false]);
        assert_eq!(index.key("team", "x"), None);
        index.remove(&second);
        assert_eq!(index.key("team", "z"), None);
        assert_eq!(index.counts(), (1, 100));
    }

    #[test]
    fn old_records_go_first_and_then_the_oldest_of_too_many() {
        let mut index = EventIndex::default();
        // Keys of shards do not sort by time.
        for (shard, second) in [(0, 30), (0, 10), (1, 20), (1, 40)] {
            put(&mut index, &record_key(shard, second, "a", 0), &["x"]);
        }
        let removed = |before, bytes, most| -> Vec<(u64, bool)> {
            let found = index.to_remove(before, bytes, most).into_iter();
            found
                .map(|(old, is_old)| (second_of(&old.key), is_old))
                .collect()
        };
        assert_eq!(removed(25, 1_000, 10), [(10, true), (20, true)]);
        assert_eq!(removed(15, 150, 10), [(10, true), (20, false), (30, false)]);
        assert_eq!(removed(15, 150, 2), [(10, true), (20, false)]);
        assert_eq!(removed(5, 400, 10), []);
    }
}
