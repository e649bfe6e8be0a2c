//! What the operator knows: enough to go on after a restart as if there had been none.

use std::collections::BTreeMap;

use portolan_judge::NoiseEstimate;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::config::{ConfigRef, ConfigVersion};
use crate::history::{Actor, Record};
use crate::metric_state::MetricState;
use crate::phase::{HoldReason, Outcome, Phase};
use crate::plan::Plan;
use crate::revision::Revision;
use crate::slot::{Slot, Slots};
use crate::time::Time;
use crate::tokens::ActedOn;
use crate::traffic::Traffic;

/// The version of the status that is written here. A newer one is left alone.
pub const SCHEMA: u32 = 1;

/// The status of an `IstioCanaryDeployment`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of this form.
    pub schema: u32,
    /// The newest generation of the spec that was looked at.
    #[serde(default)]
    pub observed_generation: i64,
    /// Where the rollout stands.
    pub phase: Phase,
    /// Why it does not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The share of the traffic of the new revision, in percent.
    #[serde(default)]
    pub weight: u8,
    /// The revision that serves, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable: Option<Placed>,
    /// The revision that is tried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Box<Canary>>,
    /// Whether both revisions get requests to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The revision that was stable before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Placed>,
    /// Until when the pods of the one before are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_previous_until: Option<Time>,
    /// What each slot is to run.
    #[serde(default)]
    pub slots: Slots<Option<SlotPlan>>,
    /// Until when each slot is left alone, because it had traffic until shortly before.
    #[serde(default)]
    pub busy_until: Slots<Option<Time>>,
    /// What the routes are to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// The slot that the application's own Service is to select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apex: Option<Slot>,
    /// The revision that the spec asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Revision>,
    /// What the target would be called here, if a newer operator named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_here: Option<Revision>,
    /// What that revision was made of; while it is the same, nothing starts.
    #[serde(default)]
    pub fence: Fence,
    /// Revisions that were tried, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The pods that the Deployment had that the spec refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_replicas: Option<u32>,
    /// Tokens that were acted on.
    #[serde(default)]
    pub tokens: ActedOn,
    /// How much arms of the same revision differ, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub noise: BTreeMap<String, NoiseEstimate>,
    /// What happened, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Record>,
    /// The number of the last record that was told to everybody.
    #[serde(default)]
    pub delivered: u64,
    /// What other programs read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The pods of the stable slot, for the scale subresource.
    #[serde(default)]
    pub replicas: u32,
    /// The selector of the stable slot's pods, for the scale subresource.
    #[serde(default)]
    pub selector: String,
}

/// What a canary is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Comparison {
    /// The old revision, at the same time and with requests of the same kind.
    OldRevision,
    /// Nothing: only promises, thresholds and the health of its pods judge it.
    None,
}

/// A revision in a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The revision.
    pub revision: Revision,
    /// Its slot.
    pub slot: Slot,
}

/// What a slot is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotPlan {
    /// The revision.
    pub revision: Revision,
    /// How many pods; the least number if they are scaled automatically.
    pub replicas: u32,
}

/// Why a rollout does not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// One word for it.
    pub reason: HoldReason,
    /// What it waits for.
    pub message: String,
}

/// What the target revision was made of. Equal fences mean that nobody changed anything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fence {
    /// The generation of the object.
    pub generation: i64,
    /// The generation of the Deployment that it refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_generation: Option<i64>,
    /// The tracked configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<ConfigVersion>,
}

/// A revision that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// The revision.
    pub revision: Revision,
    /// How often.
    pub attempts: u32,
    /// Why it is not tried again without being asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A revision that is tried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// The revision.
    pub revision: Revision,
    /// Its slot.
    pub slot: Slot,
    /// Which attempt at this revision it is, from 1.
    pub attempt: u32,
    /// What it goes through.
    pub plan: Plan,
    /// The index of its step.
    pub step: usize,
    /// Whether pods are started for the next step.
    #[serde(default)]
    pub is_growing: bool,
    /// Whether any request could have reached it.
    #[serde(default)]
    pub is_routed: bool,
    /// Whether it is to take over all traffic.
    #[serde(default)]
    pub takes_over: bool,
    /// Whether a token holds it.
    #[serde(default)]
    pub is_paused: bool,
    /// Whether a person ended the step that waits for one.
    #[serde(default)]
    pub is_resumed: bool,
    /// How it is going to end, once that is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// When time was last counted.
    pub ticked_at: Time,
    /// Seconds of this step that were watched.
    #[serde(default)]
    pub step_seconds: u64,
    /// Seconds with traffic that were watched, without pauses.
    #[serde(default)]
    pub run_seconds: u64,
    /// Seconds in a row in which pods were not ready.
    #[serde(default)]
    pub unready_seconds: u64,
    /// Seconds since the evidence began a new part.
    #[serde(default)]
    pub part_seconds: u64,
    /// Requests of this step.
    #[serde(default)]
    pub step_requests: u64,
    /// When the routes last changed; counts of that moment are of two splits and mean nothing.
    pub routes_changed_at: Time,
    /// Whether requests are split as the routes say; unknown until there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_verified: Option<bool>,
    /// Gates of this step that agreed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreed: Vec<String>,
    /// What was measured, by metric.
    #[serde(default)]
    pub metrics: BTreeMap<String, MetricState>,
    /// A pod that alone spoke against the revision and was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_pod: Option<String>,
}

/// How a canary is going to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// How it ends.
    pub outcome: Outcome,
    /// One word for the cause.
    pub reason: String,
    /// The cause in a sentence.
    pub message: String,
    /// Who caused it.
    pub actor: Actor,
}

impl Status {
    /// Returns the status of an object that was never looked at.
    pub(crate) fn new() -> Self {
        Self {
            schema: SCHEMA,
            observed_generation: 0,
            phase: Phase::Initializing,
            hold: None,
            weight: 0,
            stable: None,
            canary: None,
            comparison: None,
            previous: None,
            keep_previous_until: None,
            slots: Slots::default(),
            busy_until: Slots::default(),
            traffic: None,
            apex: None,
            target: None,
            target_here: None,
            fence: Fence::default(),
            tried: Vec::new(),
            workload_replicas: None,
            tokens: ActedOn::default(),
            noise: BTreeMap::new(),
            history: Vec::new(),
            delivered: 0,
            conditions: Vec::new(),
            replicas: 0,
            selector: String::new(),
        }
    }

    /// Returns the slot of the stable revision.
    pub fn stable_slot(&self) -> Slot {
        self.stable.as_ref().map_or(Slot::A, |stable| stable.slot)
    }

    /// Returns whether a revision is not to be tried without being asked to.
    pub fn refused(&self, revision: &Revision) -> Option<&str> {
        let tried = self.tried.iter().find(|tried| tried.revision == *revision);
        tried.and_then(|tried| tried.refused.as_deref())
    }

    /// Returns whether a revision is needed: it runs, may run again by `undo`, or is asked for.
    pub fn needs(&self, revision: &Revision) -> bool {
        let placed = [&self.stable, &self.previous].into_iter().flatten();
        let mut placed = placed.map(|placed| &placed.revision);
        let mut planned = [&self.slots.a, &self.slots.b].into_iter().flatten();
        placed.any(|needed| needed == revision)
            || planned.any(|plan| plan.revision == *revision)
            || self.target.as_ref() == Some(revision)
            || self
                .canary
                .as_ref()
                .is_some_and(|canary| canary.revision == *revision)
    }

    /// Returns the configuration that the target revision uses.
    pub fn target_config(&self) -> impl Iterator<Item = &ConfigRef> {
        self.fence.config.iter().map(|version| &version.config)
    }
}

impl Canary {
    /// Returns the step that it is in.
    pub fn current_step(&self) -> crate::plan::PlannedStep {
        self.plan.step_at(self.step)
    }

    /// Begins a new part of the evidence of every metric, so that a later regression is found by itself.
    pub(crate) fn begin_part(&mut self) {
        self.part_seconds = 0;
        self.metrics.values_mut().for_each(MetricState::begin_part);
    }

    /// Returns whether it is in its last step.
    pub fn is_in_last_step(&self) -> bool {
        self.step + 1 >= self.plan.steps().len()
    }

    /// Returns whether a person asked for this promotion, so that nothing has to be proven.
    pub fn is_ordered(&self) -> bool {
        let decision = self.decision.as_ref();
        decision.is_some_and(|decision| decision.actor == Actor::Token)
    }
}
