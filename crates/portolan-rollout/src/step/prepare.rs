//! Pods of the new revision start; it has no traffic yet.

use super::{Cause, Pass};
use crate::history::Actor;
use crate::phase::{HoldReason, Outcome, Phase};
use crate::spec::GateMoment;
use crate::status::Decision;

impl Pass<'_> {
    pub(super) fn prepare(&mut self) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let deadline = canary.plan.strategy.progress_deadline.seconds();
        let needed = self.needed_replicas();
        if !self.is_ready_for_phase() {
            if canary.unready_seconds >= deadline {
                self.give_up_on_pods();
            } else {
                self.hold_for_pods(needed);
            }
            return;
        }
        if canary.decision.is_some() && self.observed.problems.is_empty() {
            self.enter_promoting();
            return;
        }
        if let Some((reason, message)) = self.blocked() {
            self.hold(reason, message);
            return;
        }
        if !self.routes_are_in_force() {
            self.hold(HoldReason::Routes, "the routes are not in force yet");
            return;
        }
        if let Err(message) = self.ask_gates(GateMoment::Start) {
            self.hold(HoldReason::Gate, message);
            return;
        }
        self.begin_steps();
    }

    fn begin_steps(&mut self) {
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return;
        };
        let first = canary.current_step();
        canary.is_routed = first.is_exposed();
        self.begin_step();
        self.enter(
            Phase::Shifting,
            None,
            Cause {
                reason: "Started",
                message: format!("the new revision gets {} % of the traffic", first.weight),
                actor: Actor::Operator,
            },
        );
    }

    /// Starts to count anew: time, requests and gates are those of a step.
    pub(super) fn begin_step(&mut self) {
        let now = self.now;
        if let Some(canary) = self.status.canary.as_deref_mut() {
            canary.is_routed |= canary.current_step().is_exposed();
            canary.is_growing = false;
            canary.is_resumed = false;
            canary.step_seconds = 0;
            canary.step_requests = 0;
            canary.is_verified = None;
            canary.agreed.clear();
            canary.routes_changed_at = now;
            canary.begin_part();
        }
    }

    /// Rolls back because pods did not get ready in time.
    pub(super) fn give_up_on_pods(&mut self) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let deadline = canary.plan.strategy.progress_deadline;
        let trouble = self.observed.slots.get(canary.slot).trouble.as_ref();
        let because = trouble.map_or(String::new(), |trouble| format!(": {}", trouble.message));
        self.begin_roll_back(Decision {
            outcome: Outcome::RolledBack,
            reason: "NotReady".to_owned(),
            message: format!("its pods were not ready within {deadline}{because}"),
            actor: Actor::Operator,
        });
    }
}
