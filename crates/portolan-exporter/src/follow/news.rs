//! Changes reported by the watches, and what must be read again because of them.

use std::collections::{BTreeMap, BTreeSet};

use portolan_audit::Finding;
use portolan_cluster::{Driver, RecordRef, newest_deployed};
use tokio::sync::OwnedSemaphorePermit;

use crate::scan::{Knowledge, Live, key};

/// News, and the turn of whoever listed for them: over when they have been taken in.
pub(super) struct QueuedNews {
    pub(super) news: News,
    pub(super) _turn: Option<OwnedSemaphorePermit>,
}

/// Something that changed.
pub(super) enum News {
    /// A record of Helm is new or other than before.
    Record(RecordRef),
    /// It is gone, or superseded.
    RecordGone(RecordRef),
    /// The records of a driver, listed again, and the state that a watch can go on from.
    Records(Driver, Vec<RecordRef>, String),
    /// What is wrong with an object now: nothing when it is fine, or gone.
    Object {
        resource: String,
        object: String,
        findings: Vec<Finding>,
    },
    /// An object whose contents matter is new or other than before.
    Contents {
        resource: String,
        namespace: String,
        name: String,
    },
    /// The objects of a resource, listed again.
    Objects(Live),
}

/// What has to be read.
#[derive(Default)]
pub(super) struct Todo {
    /// By release.
    pub(super) records: BTreeMap<String, RecordRef>,
    /// By resource, namespace and name.
    pub(super) objects: BTreeSet<(String, String, String)>,
}

impl Todo {
    /// Takes in what the news tell, and notes what they do not.
    pub(super) fn take(&mut self, news: News, knowledge: &mut Knowledge) {
        match news {
            News::Record(record) if record.is_deployed() => self.deployed(record, knowledge),
            News::Record(record) | News::RecordGone(record) => self.gone(&record, knowledge),
            News::Records(driver, records, resume) => {
                knowledge.resume.insert(driver, resume);
                let records = newest_deployed(records);
                knowledge.keep_listed(driver, &records);
                for record in records {
                    self.deployed(record, knowledge);
                }
            }
            News::Object {
                resource,
                object,
                findings,
            } => knowledge.put_object(&resource, object, findings),
            News::Contents {
                resource,
                namespace,
                name,
            } => {
                self.objects.insert((resource, namespace, name));
            }
            News::Objects(live) => knowledge.put_live(live),
        }
    }

    fn deployed(&mut self, record: RecordRef, knowledge: &Knowledge) {
        if knowledge.is_news(&record) {
            self.records.insert(key(&record), record);
        }
    }

    fn gone(&mut self, record: &RecordRef, knowledge: &mut Knowledge) {
        knowledge.forget(record);
        let key = key(record);
        let waiting = self.records.get(&key);
        if waiting.is_some_and(|waiting| waiting.uid == record.uid) {
            self.records.remove(&key);
        }
    }
}
