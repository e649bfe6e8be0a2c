//! Why a rollout does not go on, if it does not.

use super::Pass;
use crate::history::Actor;
use crate::observed::TroubleKind;
use crate::phase::{HoldReason, Phase};
use crate::status::Hold;

impl Pass<'_> {
    /// Stays in the phase and says why. A canary with traffic is then `Holding`.
    pub(super) fn hold(&mut self, reason: HoldReason, message: impl Into<String>) {
        let message = message.into();
        let known = self.status.hold.as_ref().map(|hold| hold.reason);
        if self.status.phase.is_stepping() {
            self.status.phase = Phase::Holding;
        }
        self.status.hold = Some(Hold {
            reason,
            message: message.clone(),
        });
        // Pods that start and routes that spread are part of every rollout, and nothing to write down.
        let is_usual = matches!(reason, HoldReason::NotReady | HoldReason::Routes);
        if known != Some(reason) && !is_usual {
            self.note(reason.name(), message, Actor::Operator);
        }
    }

    /// Goes on: nothing is waited for but time.
    pub(super) fn go_on(&mut self) {
        if self.status.phase.is_stepping() {
            self.status.phase = Phase::Shifting;
        }
        self.status.hold = None;
    }

    /// Returns why nothing may go forward, whatever was measured.
    pub(super) fn blocked(&self) -> Option<(HoldReason, String)> {
        if self.spec.paused {
            let message = "spec.paused is true; set it to false to go on".to_owned();
            return Some((HoldReason::Paused, message));
        }
        if let Some(problem) = self.observed.problems.first() {
            return Some((HoldReason::Problem, problem.message.clone()));
        }
        let is_paused = self
            .status
            .canary
            .as_ref()
            .is_some_and(|canary| canary.is_paused);
        is_paused.then(|| {
            let message = "paused by a token; resume, promote or abort it".to_owned();
            (HoldReason::Paused, message)
        })
    }

    /// Holds because the new revision's pods are not ready.
    pub(super) fn hold_for_pods(&mut self, needed: u32) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let slot = self.observed.slots.get(canary.slot);
        let ready = slot.ready_of(&canary.revision);
        let mut message = format!("{ready} of {needed} pods of the new revision are ready");
        let mut reason = HoldReason::NotReady;
        if let Some(trouble) = &slot.trouble {
            message = format!("{message}: {}", trouble.message);
            if trouble.kind == TroubleKind::NoCapacity {
                reason = HoldReason::NoCapacity;
            }
        }
        self.hold(reason, message);
    }
}
