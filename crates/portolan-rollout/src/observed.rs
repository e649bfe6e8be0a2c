//! What is seen of the world when a decision is made.
//!
//! The operator fills it in, from watches and from Prometheus. It holds no content of a Secret.

use std::collections::{BTreeMap, BTreeSet};

use portolan_judge::{Arm, Interval};
use serde_json::Value;

use crate::config::{ConfigRef, ConfigVersion};
use crate::revision::Revision;
use crate::slot::{Slot, Slots};
use crate::spec::Analysis;
use crate::time::Time;
use crate::tokens::Tokens;
use crate::traffic::Traffic;

/// What is seen of the world.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// `metadata.name` of the object.
    pub name: String,
    /// `metadata.generation` of the object.
    pub generation: i64,
    /// Tokens among its annotations.
    pub tokens: Tokens,
    /// The pod template: of the spec, or of the Deployment that it refers to. `None` if that does not exist.
    pub template: Option<Value>,
    /// The Deployment that the spec refers to.
    pub workload: Option<Workload>,
    /// Tracked `ConfigMaps` and Secrets.
    pub config: Vec<ConfigVersion>,
    /// Copies of configuration that exist, by revision.
    pub copies: BTreeSet<(Revision, ConfigRef)>,
    /// Revisions that are kept as objects.
    pub revisions: BTreeSet<Revision>,
    /// Both slots.
    pub slots: Slots<ObservedSlot>,
    /// What the routes say; `None` if there are none.
    pub traffic: Option<Traffic>,
    /// Whether the routes are in force: accepted by every parent at their newest generation.
    pub routes_accepted: bool,
    /// The slot that the application's own Service selects.
    pub apex: Option<Slot>,
    /// What metrics answered since the last decision, by name.
    pub metrics: BTreeMap<String, Measurement>,
    /// What gates answered, by the key they were asked with.
    pub gates: BTreeMap<String, GateAnswer>,
    /// The analysis that the spec refers to.
    pub analysis: Option<Analysis>,
    /// What makes it impossible to go on.
    pub problems: Vec<Problem>,
    /// Ways by which traffic gets past the routes, in words.
    pub bypasses: Vec<String>,
    /// The number of the last record in the history that was told to everybody.
    pub delivered: u64,
    /// Whether the object has the operator's finalizer.
    pub has_finalizer: bool,
    /// Set when the object is being deleted.
    pub deletion: Option<Deletion>,
}

/// A slot as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedSlot {
    /// The revision of its Deployment.
    pub revision: Option<Revision>,
    /// How many pods it is asked to have; the least number if it is scaled automatically.
    pub replicas: u32,
    /// How many pods of that revision are ready.
    pub ready: u32,
    /// How many ready endpoints its Service has.
    pub endpoints: u32,
    /// Names of its pods.
    pub pods: BTreeSet<String>,
    /// What keeps pods from being ready.
    pub trouble: Option<Trouble>,
}

/// What keeps pods from being ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of trouble.
    pub kind: TroubleKind,
    /// What Kubernetes says.
    pub message: String,
}

/// A kind of trouble with pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// Containers end again and again.
    CrashLoop,
    /// An image cannot be had.
    ImagePull,
    /// No room on any node, or no quota.
    NoCapacity,
    /// Anything else.
    Other,
}

/// A Deployment that the spec refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its `metadata.generation`.
    pub generation: i64,
    /// How many pods it is asked to have.
    pub replicas: u32,
    /// How many of them are ready.
    pub ready: u32,
}

/// What a metric answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Measurement {
    /// Requests of both arms between two moments.
    Counts {
        /// The first moment.
        from: Time,
        /// The second moment.
        to: Time,
        /// Requests of the new revision.
        canary: Arm,
        /// Requests of the old revision.
        stable: Arm,
        /// Two groups of pods of the old revision, to learn how much arms differ by themselves.
        same_revision: Option<Interval>,
        /// Who counted, as the label `reporter` says; `None` for counters of the user.
        counted_by: Option<String>,
    },
    /// A number.
    Value {
        /// When it was measured.
        at: Time,
        /// The number.
        value: f64,
    },
    /// The query was answered and found nothing: there were no requests.
    Nothing,
    /// The query was answered with something that is no number, such as zero divided by zero.
    NotANumber,
    /// The server did not answer in time.
    Slow,
    /// The server cannot be reached or refuses the query.
    Down(String),
}

/// What a gate answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateAnswer {
    /// It agrees.
    Open,
    /// It does not agree, or it could not be asked.
    Closed(String),
}

/// Something that must be put right by a person before a rollout can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// One word for it, as in a condition.
    pub reason: String,
    /// What it is and what to do.
    pub message: String,
}

/// The object is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// Since when.
    pub since: Time,
    /// Whether its whole namespace goes.
    pub with_namespace: bool,
}

/// A deletion never waits longer than this.
const LONGEST_DELETION: u64 = 60;

impl Deletion {
    /// Returns whether the object is to go now, whatever could not be done.
    pub fn is_overdue(&self, now: Time) -> bool {
        self.with_namespace || now.since(self.since) >= LONGEST_DELETION
    }
}

impl ObservedSlot {
    /// Returns how many pods of a revision are ready in this slot.
    pub fn ready_of(&self, revision: &Revision) -> u32 {
        match &self.revision {
            Some(own) if own == revision => self.ready,
            _ => 0,
        }
    }
}
