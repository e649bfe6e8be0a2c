//! The first revision: there is nothing to compare it with, and nothing to go back to.

use super::{Cause, Pass};
use crate::history::Actor;
use crate::phase::{HoldReason, Phase};
use crate::slot::Slot;

impl Pass<'_> {
    pub(super) fn initialize(&mut self) {
        if let Some(problem) = self.observed.problems.first() {
            self.hold(HoldReason::Problem, problem.message.clone());
            return;
        }
        let Some(stable) = &self.status.stable else {
            return;
        };
        let slot = self.observed.slots.get(stable.slot);
        let (ready, wanted) = (slot.ready_of(&stable.revision), self.wanted_replicas());
        if ready < wanted || (wanted > 0 && slot.endpoints == 0) {
            let mut message = format!("{ready} of {wanted} pods are ready");
            if let Some(trouble) = &slot.trouble {
                message = format!("{message}: {}", trouble.message);
            }
            self.hold(HoldReason::NotReady, message);
            return;
        }
        self.plan_apex();
        let apex_follows = self.observed.apex == Some(self.status.stable_slot());
        if wanted > 0 && !(self.routes_are_in_force() && apex_follows) {
            self.hold(HoldReason::Routes, "the routes are not in force yet");
            return;
        }
        self.enter(
            Phase::Stable,
            None,
            Cause {
                reason: "Initialized",
                message: "the first revision serves all traffic".to_owned(),
                actor: Actor::Operator,
            },
        );
    }

    /// Lets the pods of the revision before go when their time is over.
    pub(super) fn let_previous_go(&mut self) {
        let is_over = |until| self.now >= until;
        if self.status.keep_previous_until.is_some_and(is_over) {
            self.status.keep_previous_until = None;
        }
    }

    /// Returns the slot that the next revision goes to.
    pub(super) fn free_slot(&self) -> Slot {
        self.status.stable_slot().other()
    }
}
