//! Reads from the tables, in a read transaction or during a write.

use bytes::Bytes;
use redb::{ReadTransaction, ReadableTable};

use super::fault::Fault;
use super::tables::{
    CURRENT, HISTORY, LOG, META, META_COMPACTED, META_REVISION, StoredVersion, damaged_at, decode,
};
use crate::limits::PAGE_BYTES;
use crate::{Event, Page, Range, Record, Revision, Span, StoreError, Update};

/// Changes that are read out of the log in one step.
const STEP_BYTES: usize = 1 << 20;
/// Entries of the log that are looked at in one step, whether they concern the watch or not.
const STEP_ENTRIES: usize = 10_000;

/// The tables that reads need.
pub(super) struct View<C, H, M> {
    pub(super) current: C,
    pub(super) history: H,
    pub(super) meta: M,
}

type ReadTable<K, V> = redb::ReadOnlyTable<K, V>;
pub(super) type Snapshot = View<
    ReadTable<&'static [u8], u64>,
    ReadTable<(&'static [u8], u64), &'static [u8]>,
    ReadTable<&'static str, u64>,
>;

impl Snapshot {
    pub(super) fn open(transaction: &ReadTransaction) -> Result<Self, Fault> {
        Ok(Self {
            current: transaction.open_table(CURRENT)?,
            history: transaction.open_table(HISTORY)?,
            meta: transaction.open_table(META)?,
        })
    }
}

impl<C, H, M> View<C, H, M>
where
    C: ReadableTable<&'static [u8], u64>,
    H: ReadableTable<(&'static [u8], u64), &'static [u8]>,
    M: ReadableTable<&'static str, u64>,
{
    pub(super) fn meta(&self, name: &str) -> Result<u64, Fault> {
        let value = self.meta.get(name)?;
        let value = value.map(|value| value.value());
        value.ok_or_else(|| damaged(format!("`{name}` is missing")).into())
    }

    /// The live version of a key.
    pub(super) fn live(&self, key: &[u8]) -> Result<Option<StoredVersion>, Fault> {
        let Some(revision) = self.mod_revision(key)? else {
            return Ok(None);
        };
        self.version(key, revision).map(Some)
    }

    /// The revision of a live key's last change.
    pub(super) fn mod_revision(&self, key: &[u8]) -> Result<Option<Revision>, Fault> {
        Ok(self.current.get(key)?.map(|revision| revision.value()))
    }

    /// A version that must exist.
    pub(super) fn version(&self, key: &[u8], revision: Revision) -> Result<StoredVersion, Fault> {
        let stored = self.history.get((key, revision))?;
        let stored = stored.ok_or_else(|| damaged_at(key, revision))?;
        Ok(decode(key, revision, stored.value())?)
    }

    /// Whether the revision that a range asks for exists and is not gone.
    pub(super) fn readable(
        &self,
        range: &Range,
        current: Revision,
    ) -> Result<Result<(), StoreError>, Fault> {
        Ok(readable(range, current, self.meta(META_COMPACTED)?))
    }

    /// Reads a page at a revision that was checked.
    pub(super) fn read(&self, range: &Range, current: Revision) -> Result<Page, Fault> {
        let mut page = PageBuilder::new(range.limit);
        match range.at {
            Some(revision) if revision < current => self.read_past(range, revision, &mut page)?,
            _ => self.read_now(range, &mut page)?,
        }
        Ok(page.finish(current))
    }

    fn read_now(&self, range: &Range, page: &mut PageBuilder) -> Result<(), Fault> {
        if range.span.is_empty() {
            return Ok(());
        }
        for entry in self.current.range::<&[u8]>(bounds(&range.span))? {
            let (key, revision) = entry?;
            if page.is_full() {
                page.more = true;
                return Ok(());
            }
            let (key, revision) = (key.value(), revision.value());
            let record = self.version(key, revision)?.record;
            page.push(record.ok_or_else(|| damaged_at(key, revision))?);
        }
        Ok(())
    }

    /// Goes from key to key and takes of each the last version that is not newer.
    fn read_past(
        &self,
        range: &Range,
        revision: Revision,
        page: &mut PageBuilder,
    ) -> Result<(), Fault> {
        let mut from = range.span.start.to_vec();
        while let Some(key) = self.next_key(&from, &range.span)? {
            let mut versions = self.history.range((&key[..], 0)..=(&key[..], revision))?;
            if let Some(entry) = versions.next_back() {
                let (place, stored) = entry?;
                if let Some(record) = decode(&key, place.value().1, stored.value())?.record {
                    if page.is_full() {
                        page.more = true;
                        return Ok(());
                    }
                    page.push(record);
                }
            }
            from = key;
            from.push(0);
        }
        Ok(())
    }

    fn next_key(&self, from: &[u8], span: &Span) -> Result<Option<Vec<u8>>, Fault> {
        let Some(entry) = self.history.range((from, 0)..)?.next() else {
            return Ok(None);
        };
        let (place, _) = entry?;
        let key = place.value().0;
        Ok(span.contains(key).then(|| key.to_vec()))
    }
}

/// Whether the revision that a range asks for is not newer than the current one, and not older than the oldest.
pub(super) fn readable(
    range: &Range,
    current: Revision,
    oldest: Revision,
) -> Result<(), StoreError> {
    match range.at.unwrap_or(current) {
        asked if asked > current => Err(StoreError::Future { asked, current }),
        asked if asked < oldest => Err(StoreError::Compacted { asked, oldest }),
        _ => Ok(()),
    }
}

/// What a reader of the log gets in one step.
pub(super) enum Step {
    /// Updates, and the revision to go on from.
    Read {
        updates: Vec<Update>,
        next: Revision,
    },
    /// What it asks for is gone.
    Compacted { oldest: Revision },
}

/// Reads whole revisions from the log, from `next` on.
pub(super) fn read_log(
    transaction: &ReadTransaction,
    span: &Span,
    next: Revision,
) -> Result<Step, Fault> {
    let view = Snapshot::open(transaction)?;
    let oldest = view.meta(META_COMPACTED)?;
    if next < oldest {
        return Ok(Step::Compacted { oldest });
    }
    let log = transaction.open_table(LOG)?;
    let end = view.meta(META_REVISION)?;
    let mut updates: Vec<Update> = Vec::new();
    let (mut bytes, mut last) = (0, next.saturating_sub(1));
    for (count, entry) in log.range((next, 0)..)?.enumerate() {
        let (place, key) = entry?;
        let (revision, key) = (place.value().0, key.value());
        // A revision is told whole, so a step ends between two.
        if revision != last && (bytes >= STEP_BYTES || count >= STEP_ENTRIES) {
            return Ok(Step::Read {
                updates,
                next: revision,
            });
        }
        last = revision;
        if !span.contains(key) {
            continue;
        }
        let event = view.version(key, revision)?.into_event(key, revision);
        bytes += key.len() + event_bytes(&event);
        match updates.last_mut() {
            Some(Update::Changes {
                revision: same,
                events,
            }) if *same == revision => events.push(event),
            _ => updates.push(Update::Changes {
                revision,
                events: vec![event],
            }),
        }
    }
    Ok(Step::Read {
        updates,
        next: end + 1,
    })
}

pub(super) fn event_bytes(event: &Event) -> usize {
    match event {
        Event::Put(record) => record.key.len() + record.value.len(),
        Event::Delete { key, .. } => key.len(),
    }
}

pub(super) fn damaged(detail: String) -> StoreError {
    StoreError::Damaged { detail }
}

/// A span for redb.
pub(super) fn bounds(span: &Span) -> (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let end = span
        .end
        .as_ref()
        .map_or(Unbounded, |end: &Bytes| Excluded(&end[..]));
    (Included(&span.start[..]), end)
}

/// Collects records until a page is full.
struct PageBuilder {
    records: Vec<Record>,
    limit: usize,
    bytes: usize,
    more: bool,
}

impl PageBuilder {
    fn new(limit: usize) -> Self {
        Self {
            records: Vec::new(),
            limit,
            bytes: 0,
            more: false,
        }
    }

    fn is_full(&self) -> bool {
        self.records.len() >= self.limit || self.bytes >= PAGE_BYTES
    }

    fn push(&mut self, record: Record) {
        self.bytes += record.key.len() + record.value.len();
        self.records.push(record);
    }

    fn finish(self, revision: Revision) -> Page {
        Page {
            records: self.records,
            more: self.more,
            revision,
        }
    }
}
