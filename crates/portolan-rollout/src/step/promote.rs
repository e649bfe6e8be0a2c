//! The new revision grows to full size, takes all traffic, and then the application's own Service.

use super::{Cause, Pass};
use crate::phase::{HoldReason, Phase};
use crate::status::Placed;

impl Pass<'_> {
    pub(super) fn enter_promoting(&mut self) {
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return;
        };
        canary.is_paused = false;
        canary.is_growing = false;
        canary.unready_seconds = 0;
        let decision = canary.decision.clone();
        let message = decision.map_or_else(String::new, |decision| decision.message);
        let actor = self.decided_by();
        self.enter(
            Phase::Promoting,
            None,
            Cause {
                reason: "Promoting",
                message,
                actor,
            },
        );
    }

    pub(super) fn promote(&mut self) {
        let is_ordered = self
            .status
            .canary
            .as_ref()
            .is_some_and(|canary| canary.is_ordered());
        if !is_ordered && self.goes_back() {
            return;
        }
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let slot = canary.slot;
        if !canary.takes_over {
            if !self.is_ready_for_phase() {
                self.wait_for_full_size();
                return;
            }
            if let Some((reason, message)) = self.blocked() {
                self.hold(reason, message);
                return;
            }
            self.take_over();
        }
        if !self.routes_are_in_force() {
            self.hold(HoldReason::Routes, "the routes are not in force yet");
            return;
        }
        self.plan_apex();
        if self.observed.apex != Some(slot) {
            self.hold(
                HoldReason::Routes,
                "the application's Service does not select it yet",
            );
            return;
        }
        self.change_roles();
    }

    fn wait_for_full_size(&mut self) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let deadline = canary.plan.strategy.progress_deadline.seconds();
        if canary.unready_seconds >= deadline {
            self.give_up_on_pods();
            return;
        }
        let needed = self.needed_replicas();
        self.hold_for_pods(needed);
    }

    fn take_over(&mut self) {
        let now = self.now;
        if let Some(canary) = self.status.canary.as_deref_mut() {
            canary.takes_over = true;
            canary.is_routed = true;
            canary.routes_changed_at = now;
            canary.begin_part();
        }
    }

    /// The new revision is the stable one from now on. No pod is touched.
    fn change_roles(&mut self) {
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return;
        };
        canary.step_seconds = 0;
        canary.unready_seconds = 0;
        canary.agreed.clear();
        let promoted = Placed {
            revision: canary.revision.clone(),
            slot: canary.slot,
        };
        let decision = canary.decision.clone();
        self.status.previous = self.status.stable.replace(promoted);
        self.status.keep_previous_until = None;
        let actor = self.decided_by();
        let (outcome, message) = decision.map_or((None, String::new()), |decision| {
            (Some(decision.outcome), decision.message)
        });
        self.enter(
            Phase::Soaking,
            outcome,
            Cause {
                reason: "Promoted",
                message,
                actor,
            },
        );
    }
}
