//! All traffic goes back to the old revision.

use super::{Cause, Pass};
use crate::history::Actor;
use crate::phase::{HoldReason, Outcome, Phase};
use crate::revision::Revision;
use crate::status::{Decision, Tried};

/// So many revisions are remembered as tried.
const REMEMBERED: usize = 10;

impl Pass<'_> {
    /// Decides to go back. The routes follow in the same step.
    pub(super) fn begin_roll_back(&mut self, decision: Decision) {
        if self.status.phase == Phase::Soaking {
            let Some(previous) = self.status.previous.take() else {
                return;
            };
            self.status.stable = Some(previous);
        }
        let now = self.now;
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return;
        };
        canary.takes_over = false;
        canary.routes_changed_at = now;
        canary.decision = Some(decision.clone());
        self.enter(
            Phase::RollingBack,
            None,
            Cause {
                reason: "RollingBack",
                message: decision.message,
                actor: decision.actor,
            },
        );
    }

    /// Waits until the routes are in force and the new revision has answered its last request.
    pub(super) fn roll_back(&mut self) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let slot = canary.slot;
        let decision = canary.decision.clone();
        let Some(decision) = decision else {
            return;
        };
        self.plan_apex();
        let apex_is_home = self.observed.apex.is_none_or(|apex| apex != slot);
        if !self.routes_are_in_force() || !apex_is_home {
            self.hold(HoldReason::Routes, "the routes are not in force yet");
            return;
        }
        if self.is_busy(slot) {
            self.go_on();
            return;
        }
        self.end_roll_back(decision);
    }

    fn end_roll_back(&mut self, decision: Decision) {
        let Some(revision) = self.subject() else {
            return;
        };
        let serves_target = self.status.target
            == self
                .status
                .stable
                .as_ref()
                .map(|stable| stable.revision.clone());
        if !serves_target && self.status.target.as_ref() == Some(&revision) {
            self.refuse(&revision, &decision.message);
        }
        let phase = if serves_target {
            Phase::Stable
        } else {
            Phase::RolledBack
        };
        self.enter(
            phase,
            Some(decision.outcome),
            Cause {
                reason: outcome_reason(decision.outcome),
                message: decision.message,
                actor: decision.actor,
            },
        );
        self.status.canary = None;
    }

    /// Remembers that a revision is not to be tried again without being asked to.
    pub(super) fn refuse(&mut self, revision: &Revision, why: &str) {
        let why = why.to_owned();
        let known = self.status.tried.iter_mut();
        match known.into_iter().find(|tried| tried.revision == *revision) {
            Some(tried) => tried.refused = Some(why),
            None => self.remember(Tried {
                revision: revision.clone(),
                attempts: 0,
                refused: Some(why),
            }),
        }
    }

    /// Counts an attempt at a revision; returns which one it is.
    pub(super) fn count_attempt(&mut self, revision: &Revision) -> u32 {
        let known = self.status.tried.iter();
        let known = known.into_iter().find(|tried| tried.revision == *revision);
        let attempts = known.map_or(0, |tried| tried.attempts).saturating_add(1);
        self.remember(Tried {
            revision: revision.clone(),
            attempts,
            refused: None,
        });
        attempts
    }

    fn remember(&mut self, tried: Tried) {
        let revision = tried.revision.clone();
        self.status.tried.retain(|known| known.revision != revision);
        self.status.tried.push(tried);
        let too_many = self.status.tried.len().saturating_sub(REMEMBERED);
        self.status.tried.drain(..too_many);
    }

    /// Who made the decision about the canary.
    pub(super) fn decided_by(&self) -> Actor {
        let canary = self.status.canary.as_deref();
        let decision = canary.and_then(|canary| canary.decision.as_ref());
        decision.map_or(Actor::Operator, |decision| decision.actor)
    }
}

fn outcome_reason(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Promoted => "Promoted",
        Outcome::PromotedUnproven => "PromotedUnproven",
        Outcome::RolledBack => "RolledBack",
        Outcome::Aborted => "Aborted",
        Outcome::Reverted => "Reverted",
        Outcome::Superseded => "Superseded",
        Outcome::Undone => "Undone",
    }
}
