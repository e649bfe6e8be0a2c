//! A very simple store made of maps, with which an engine is compared.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::{
    Compare, CompareField, Event, LeaseId, Outcome, Page, Range, Record, Revision, Span,
    StoreError, Transaction, Write,
};

/// All that a store is, at every revision.
pub(super) struct Model {
    pub(super) revision: Revision,
    pub(super) compacted: Revision,
    live: BTreeMap<Bytes, Record>,
    /// The live keys after each revision, from the first one on.
    states: BTreeMap<Revision, BTreeMap<Bytes, Record>>,
    pub(super) history: Vec<(Revision, Vec<Event>)>,
    pub(super) leases: BTreeSet<LeaseId>,
}

impl Model {
    /// A store without keys of interest.
    pub(super) fn new(revision: Revision) -> Self {
        Self {
            revision,
            compacted: 0,
            live: BTreeMap::new(),
            states: BTreeMap::from([(revision, BTreeMap::new())]),
            history: Vec::new(),
            leases: BTreeSet::new(),
        }
    }

    pub(super) fn record(&self, key: &[u8]) -> Option<&Record> {
        self.live.get(key)
    }

    pub(super) fn transact(&mut self, transaction: &Transaction) -> Result<Outcome, StoreError> {
        let succeeded = transaction
            .compares
            .iter()
            .all(|compare| self.holds(compare));
        let reads = if succeeded {
            &transaction.reads
        } else {
            &transaction.otherwise
        };
        if succeeded {
            self.check_leases(&transaction.writes)?;
        }
        reads.iter().try_for_each(|read| self.readable(read))?;
        if succeeded {
            self.write(&transaction.writes);
        }
        let pages = reads.iter().map(|read| self.read(read)).collect();
        let revision = self.revision;
        Ok(Outcome {
            succeeded,
            revision,
            pages,
        })
    }

    fn holds(&self, compare: &Compare) -> bool {
        let record = self.live.get(&compare.key);
        let revision = record.map_or(0, |record| match compare.field {
            CompareField::Mod => record.mod_revision,
            CompareField::Create => record.create_revision,
        });
        revision == compare.revision
    }

    fn check_leases(&self, writes: &[Write]) -> Result<(), StoreError> {
        let asked = writes.iter().filter_map(|write| match write {
            Write::Put { lease, .. } => *lease,
            Write::Delete { .. } => None,
        });
        let mut missing = asked.filter(|lease| !self.leases.contains(lease));
        missing
            .next()
            .map_or(Ok(()), |lease| Err(StoreError::NoLease { lease }))
    }

    fn write(&mut self, writes: &[Write]) {
        let revision = self.revision + 1;
        let events: Vec<Event> = writes
            .iter()
            .filter_map(|write| self.apply(write, revision))
            .collect();
        if !events.is_empty() {
            self.revision = revision;
            self.states.insert(revision, self.live.clone());
            self.history.push((revision, events));
        }
    }

    fn apply(&mut self, write: &Write, revision: Revision) -> Option<Event> {
        match write {
            Write::Put { key, value, lease } => {
                let old = self.live.get(key);
                let record = Record {
                    key: key.clone(),
                    value: value.clone(),
                    create_revision: old.map_or(revision, |old| old.create_revision),
                    mod_revision: revision,
                    version: old.map_or(1, |old| old.version + 1),
                    lease: *lease,
                };
                self.live.insert(key.clone(), record.clone());
                Some(Event::Put(record))
            }
            Write::Delete { key } => self.live.remove(key).map(|_| Event::Delete {
                key: key.clone(),
                mod_revision: revision,
            }),
        }
    }

    pub(super) fn range(&self, range: &Range) -> Result<Page, StoreError> {
        self.readable(range)?;
        Ok(self.read(range))
    }

    fn readable(&self, range: &Range) -> Result<(), StoreError> {
        let (current, oldest) = (self.revision, self.compacted);
        let asked = range.at.unwrap_or(current);
        match asked {
            _ if asked > current => Err(StoreError::Future { asked, current }),
            _ if asked < oldest => Err(StoreError::Compacted { asked, oldest }),
            _ => Ok(()),
        }
    }

    fn read(&self, range: &Range) -> Page {
        let at = range.at.unwrap_or(self.revision);
        let state = self.states.range(..=at).next_back().map(|(_, state)| state);
        let all = state.into_iter().flat_map(BTreeMap::values);
        let mut all = all
            .filter(|record| range.span.contains(&record.key))
            .cloned();
        let records: Vec<Record> = all.by_ref().take(range.limit).collect();
        Page {
            records,
            more: all.next().is_some(),
            revision: self.revision,
        }
    }

    pub(super) fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        let (current, oldest) = (self.revision, self.compacted);
        if revision <= oldest {
            return Err(StoreError::Compacted {
                asked: revision,
                oldest,
            });
        }
        if revision > current {
            return Err(StoreError::Future {
                asked: revision,
                current,
            });
        }
        self.compacted = revision;
        Ok(())
    }

    /// Ends a lease: its keys go in one revision, sorted.
    pub(super) fn revoke(&mut self, lease: LeaseId) -> Result<(), StoreError> {
        if !self.leases.remove(&lease) {
            return Err(StoreError::NoLease { lease });
        }
        let keys = self
            .live
            .values()
            .filter(|record| record.lease == Some(lease));
        let deletes: Vec<Write> = keys
            .map(|record| Write::Delete {
                key: record.key.clone(),
            })
            .collect();
        self.write(&deletes);
        Ok(())
    }

    /// What a watch of a span from a revision on tells.
    pub(super) fn told(&self, span: &Span, from: Revision) -> Vec<(Revision, Vec<Event>)> {
        let since = self
            .history
            .iter()
            .filter(|(revision, _)| *revision >= from);
        let selected = since.map(|(revision, events)| {
            let events = events.iter().filter(|event| span.contains(event.key()));
            (*revision, events.cloned().collect::<Vec<_>>())
        });
        selected.filter(|(_, events)| !events.is_empty()).collect()
    }
}
