//! One decision: from what is asked for, what is known and what is seen, to what is known next and what is to be done.
//!
//! ```text
//! spec ─────┐                                              ┌─▶ status (to be written first, with its resource version)
//! status ───┼─▶ step(…, now) ── commands, revision, ───────┤
//! observed ─┘                   measurements, phase        └─▶ effects (what differs between status and observed)
//! ```
//!
//! The status alone carries a rollout on. If effects are lost, or the process that carries them out, the next step finds
//! the same differences and asks for the same effects again. Nothing is done because a process "has just started".

mod clock;
mod commands;
mod conditions;
mod deletion;
mod effects;
mod gates;
mod hold;
mod initialize;
mod judge;
mod measure;
mod prepare;
mod promote;
mod revisions;
mod roll_back;
mod routes;
mod shift;
mod sizes;
mod soak;

use crate::effect::Effect;
use crate::history::{Actor, KEPT, Record};
use crate::observed::Observed;
use crate::phase::{Outcome, Phase};
use crate::revision::Revision;
use crate::spec::Spec;
use crate::status::{SCHEMA, Status};
use crate::time::Time;

/// Makes one decision. Returns the new status, equal to the old one if there is no news, and what is to be done.
pub fn step(
    spec: &Spec,
    status: Option<&Status>,
    observed: &Observed,
    now: Time,
) -> (Status, Vec<Effect>) {
    if let Some(newer) = status.filter(|status| status.schema > SCHEMA) {
        let schema = newer.schema;
        return (newer.clone(), vec![Effect::ReportNewerStatus { schema }]);
    }
    let mut pass = Pass::new(spec, status, observed, now);
    pass.count_time();
    if let Some(deletion) = observed.deletion {
        return pass.send_traffic_home(deletion);
    }
    let commands = pass.new_commands();
    pass.go_back_by(&commands);
    pass.notice_revision();
    pass.go_forward_by(&commands);
    pass.measure();
    pass.advance();
    pass.plan_routes();
    pass.plan_slots();
    pass.write_conditions();
    let effects = pass.effects();
    (pass.status, effects)
}

/// What one call of [`step`] works on.
#[derive(Debug)]
struct Pass<'a> {
    spec: &'a Spec,
    observed: &'a Observed,
    now: Time,
    /// The status as it is going to be.
    status: Status,
    /// Whether the object was never looked at before.
    is_first: bool,
    /// Gates that are to be asked.
    questions: Vec<Effect>,
    /// A command that was refused, and why.
    refused: Option<String>,
    /// Why nothing can be started by this spec.
    invalid: Option<String>,
}

/// What a record of the history says of its cause.
struct Cause {
    reason: &'static str,
    message: String,
    actor: Actor,
}

/// A step goes through at most so many phases: a canary whose pods are ready can be forced in one go.
const MOST_TRANSITIONS: usize = 8;

impl<'a> Pass<'a> {
    fn new(spec: &'a Spec, status: Option<&Status>, observed: &'a Observed, now: Time) -> Self {
        let mut known = status.cloned().unwrap_or_else(Status::new);
        known.delivered = known.delivered.max(observed.delivered);
        // What the referred Deployment had before it was held at zero.
        let workload = observed
            .workload
            .as_ref()
            .filter(|_| spec.workload_ref.is_some());
        if let Some(workload) = workload.filter(|workload| workload.replicas > 0) {
            known.workload_replicas = Some(workload.replicas);
        }
        Self {
            spec,
            observed,
            now,
            status: known,
            is_first: status.is_none(),
            questions: Vec::new(),
            refused: None,
            invalid: None,
        }
    }

    /// Goes from phase to phase as far as what was observed allows.
    fn advance(&mut self) {
        for _ in 0..MOST_TRANSITIONS {
            let before = self.position();
            match self.status.phase {
                Phase::Initializing => self.initialize(),
                Phase::Stable | Phase::RolledBack => self.let_previous_go(),
                Phase::Preparing => self.prepare(),
                Phase::Shifting | Phase::Holding => self.shift(),
                Phase::Promoting => self.promote(),
                Phase::Soaking => self.soak(),
                Phase::RollingBack => self.roll_back(),
            }
            if self.position() == before {
                return;
            }
        }
    }

    /// The phase and step, to see whether there was a transition.
    fn position(&self) -> (Phase, Option<usize>) {
        let step = self.status.canary.as_ref().map(|canary| canary.step);
        (self.status.phase, step)
    }

    /// Changes the phase and writes down why.
    fn enter(&mut self, phase: Phase, outcome: Option<Outcome>, cause: Cause) {
        let from = self.status.phase;
        self.status.phase = phase;
        self.status.hold = None;
        let revision = self.subject();
        self.record(from, revision, outcome, cause);
    }

    /// Writes something down that does not change the phase.
    fn note(&mut self, reason: &'static str, message: String, actor: Actor) {
        let cause = Cause {
            reason,
            message,
            actor,
        };
        let revision = self.subject();
        self.record(self.status.phase, revision, None, cause);
    }

    fn record(
        &mut self,
        from: Phase,
        revision: Option<Revision>,
        outcome: Option<Outcome>,
        cause: Cause,
    ) {
        let last = self.status.history.last().map_or(0, |record| record.number);
        let record = Record {
            number: last.max(self.status.delivered) + 1,
            at: self.now,
            from,
            to: self.status.phase,
            revision,
            weight: self.intended_weight(),
            outcome,
            reason: cause.reason.to_owned(),
            message: cause.message,
            actor: cause.actor,
            evidence: self.evidence(),
        };
        self.status.history.push(record);
        let too_many = self.status.history.len().saturating_sub(KEPT);
        self.status.history.drain(..too_many);
    }

    /// The revision that the rollout is about.
    fn subject(&self) -> Option<Revision> {
        let canary = self.status.canary.as_ref();
        let running = canary.map(|canary| canary.revision.clone());
        running.or_else(|| self.status.target.clone())
    }
}
