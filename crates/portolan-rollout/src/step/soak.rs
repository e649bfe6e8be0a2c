//! The new revision is the stable one and still watched; the old one keeps a small share to compare with.

use super::{Cause, Pass};
use crate::history::Actor;
use crate::phase::{HoldReason, Phase};
use crate::spec::GateMoment;

impl Pass<'_> {
    pub(super) fn soak(&mut self) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        if !canary.is_ordered() && self.goes_back() {
            return;
        }
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let is_over = canary.step_seconds >= canary.plan.strategy.soak.seconds();
        if !is_over && !canary.is_ordered() {
            self.go_on();
            return;
        }
        if let Some((reason, message)) = self.blocked() {
            self.hold(reason, message);
            return;
        }
        if let Err(message) = self.ask_gates(GateMoment::End) {
            self.hold(HoldReason::Gate, message);
            return;
        }
        self.end_soak();
    }

    /// Gives the new revision all traffic and keeps the old pods for a while.
    pub(super) fn end_soak(&mut self) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let window = canary.plan.strategy.rollback_window;
        self.status.keep_previous_until = Some(self.now.after(window));
        let serves_target = self.status.target
            == self
                .status
                .stable
                .as_ref()
                .map(|stable| stable.revision.clone());
        let phase = if serves_target {
            Phase::Stable
        } else {
            Phase::RolledBack
        };
        self.enter(
            phase,
            None,
            Cause {
                reason: "Finished",
                message: "it serves all traffic".to_owned(),
                actor: Actor::Operator,
            },
        );
        self.status.canary = None;
    }
}
