//! What is remembered of a rollout between two looks. All of it can be lost: it saves requests, and it holds answers that
//! have come and were not taken into account yet.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portolan_cluster::Resource;
use portolan_rollout::objects::RevisionContent;
use portolan_rollout::{ConfigRef, GateAnswer, Measurement, Problem, Revision, Time};
use serde_json::Value;

use crate::queue::Key;
use crate::rollout::Rollout;

/// What is remembered of all rollouts.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<Key, Arc<Mutex<Memo>>>>);

/// What is remembered of one rollout.
#[derive(Default)]
pub(crate) struct Memo {
    /// The rollout as the last write left it, until the watch has it.
    pub(crate) written: Option<Rollout>,
    /// Answers of metrics that were not taken into account yet.
    pub(crate) measured: BTreeMap<String, Measurement>,
    pub(crate) is_measuring: bool,
    /// The end of windows that cannot be counted, by metric: the next one begins after them.
    pub(crate) uncounted: BTreeMap<String, Time>,
    /// When the last measurement ended, whatever it answered.
    pub(crate) measured_at: Option<Instant>,
    pub(crate) gates: BTreeMap<String, AskedGate>,
    /// The number of the last record that was told to everybody.
    pub(crate) delivered: u64,
    pub(crate) is_telling: bool,
    /// The number of the last record that was published to a fleet server.
    pub(crate) announced: u64,
    /// What was applied, to see when there is nothing to do.
    pub(crate) applied: BTreeMap<ObjectId, Applied>,
    /// Objects that could not be applied.
    pub(crate) refused: BTreeMap<ObjectId, Refused>,
    /// Hashes of configuration by resource version.
    pub(crate) hashes: BTreeMap<ConfigRef, (String, String)>,
    /// The Deployment that the spec refers to, by resource version.
    pub(crate) workload: Option<(String, Value)>,
    /// What revisions are made of.
    pub(crate) contents: BTreeMap<Revision, RevisionContent>,
    /// The last template that was tried on the API server, and what that has against it.
    pub(crate) tried: Option<(Revision, Option<Problem>)>,
    /// What the rollout refers to.
    pub(crate) interests: Vec<Interest>,
    /// How often in a row something went wrong.
    pub(crate) failures: u32,
}

/// One of the objects of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectId {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// What was applied.
pub(crate) struct Applied {
    /// A hash of what was wanted.
    pub(crate) wanted: u64,
    /// The generation that it became; the resource version of kinds that have none.
    pub(crate) version: String,
    /// The generation of the rollout that asked for it.
    pub(crate) generation: i64,
}

/// An object that could not be applied.
#[derive(Clone)]
pub(crate) struct Refused {
    pub(crate) problem: Problem,
    pub(crate) resource: Resource,
    pub(crate) wanted: Value,
    pub(crate) generation: i64,
    pub(crate) checked: Instant,
}

/// A gate that is or was asked.
pub(crate) struct AskedGate {
    pub(crate) answer: Option<GateAnswer>,
    pub(crate) is_asking: bool,
    pub(crate) since: Instant,
}

/// An object that is not the rollout's own, and that it depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Interest {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Memory {
    pub(crate) fn of(&self, key: &Key) -> Arc<Mutex<Memo>> {
        let mut all = lock(&self.0);
        Arc::clone(all.entry(key.clone()).or_default())
    }

    pub(crate) fn forget(&self, key: &Key) {
        lock(&self.0).remove(key);
    }

    /// Forgets everything: somebody else acted in the meantime, or will.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// Locks what no panic can leave half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
