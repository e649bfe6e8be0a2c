//! What the routes and the application's own Service are to say.

use super::Pass;
use crate::phase::Phase;
use crate::slot::{Slot, Slots};
use crate::time::Span;
use crate::traffic::Traffic;

impl Pass<'_> {
    /// Returns what the rollout asks for, as if every slot were ready.
    pub(super) fn intended_traffic(&self) -> Option<Traffic> {
        let stable = self.status.stable.as_ref()?.slot;
        let Some(canary) = self.status.canary.as_deref() else {
            return Some(Traffic::only(stable));
        };
        let is_sticky = canary.plan.strategy.sticky_sessions.is_some();
        let of_step = || canary.current_step().traffic(canary.slot, is_sticky);
        Some(match self.status.phase {
            Phase::Shifting | Phase::Holding => of_step(),
            Phase::Promoting if canary.takes_over => {
                Traffic::split(stable, self.holdback_in(stable))
            }
            Phase::Promoting if canary.is_routed => of_step(),
            Phase::Soaking => match &self.status.previous {
                Some(previous) => Traffic::split(previous.slot, self.holdback_in(previous.slot)),
                None => Traffic::only(stable),
            },
            _ => Traffic::only(stable),
        })
    }

    /// Returns the share that the old revision keeps, to compare with: none if it cannot answer, or if a person ordered the
    /// promotion and nothing is judged.
    fn holdback_in(&self, slot: Slot) -> u8 {
        let canary = self
            .status
            .canary
            .as_deref()
            .filter(|canary| !canary.is_ordered());
        let answers = self.observed.slots.get(slot).endpoints > 0;
        canary
            .filter(|_| answers)
            .map_or(0, |canary| canary.plan.holdback())
    }

    /// Returns the share of the new revision in percent, as it is intended.
    pub(super) fn intended_weight(&self) -> u8 {
        let canary = self.status.canary.as_deref();
        let slot = canary.map(|canary| canary.slot);
        let traffic = self.intended_traffic();
        slot.zip(traffic)
            .map_or(0, |(slot, traffic)| traffic.share(slot))
    }

    /// Returns whether the routes say what they should, and whoever carries them out has accepted it.
    pub(super) fn routes_are_in_force(&self) -> bool {
        let intended = self.intended_traffic();
        intended.is_some() && self.observed.traffic == intended && self.observed.routes_accepted
    }

    /// Decides what is written into the routes: what is intended, as far as slots are ready.
    pub(super) fn plan_routes(&mut self) {
        self.plan_apex();
        let Some(intended) = self.intended_traffic() else {
            return;
        };
        let traffic = Traffic::protected(
            intended,
            self.observed.traffic,
            self.ready(),
            self.trusted(),
        );
        self.let_slots_drain(traffic);
        if traffic != self.status.traffic {
            self.status.traffic = traffic;
            let now = self.now;
            if let Some(canary) = self.status.canary.as_deref_mut() {
                canary.routes_changed_at = now;
            }
        }
        let canary = self.status.canary.as_deref();
        let share = |slot| traffic.map_or(0, |traffic| traffic.share(slot));
        self.status.weight = canary.map_or(0, |canary| share(canary.slot));
    }

    /// Slots whose Service has ready endpoints.
    fn ready(&self) -> Slots<bool> {
        let slots = &self.observed.slots;
        Slots {
            a: slots.a.endpoints > 0,
            b: slots.b.endpoints > 0,
        }
    }

    /// Slots that may get all requests if the other one is not ready: what is stable, what was stable before, and a canary
    /// that had requests already.
    fn trusted(&self) -> Slots<bool> {
        let mut trusted = Slots::default();
        if let Some(stable) = &self.status.stable {
            *trusted.get_mut(stable.slot) = true;
        }
        if let Some(previous) = &self.status.previous {
            let runs = self.observed.slots.get(previous.slot).revision.as_ref();
            if runs == Some(&previous.revision) {
                *trusted.get_mut(previous.slot) = true;
            }
        }
        if let Some(canary) = self
            .status
            .canary
            .as_deref()
            .filter(|canary| canary.is_routed)
        {
            *trusted.get_mut(canary.slot) = true;
        }
        trusted
    }

    /// A slot that has just lost its requests is left alone until it has answered the last of them.
    fn let_slots_drain(&mut self, next: Option<Traffic>) {
        let until = self.now.after(self.drain());
        for slot in Slot::BOTH {
            let reaches =
                |traffic: Option<Traffic>| traffic.is_some_and(|traffic| traffic.reaches(slot));
            let had_requests = reaches(self.status.traffic) || reaches(self.observed.traffic);
            let busy = self.status.busy_until.get_mut(slot);
            if reaches(next) {
                *busy = None;
            } else if had_requests {
                *busy = Some(until);
            } else if busy.is_some_and(|until| self.now >= until) {
                *busy = None;
            }
        }
    }

    /// Returns whether a slot may still be answering requests.
    pub(super) fn is_busy(&self, slot: Slot) -> bool {
        let reaches =
            |traffic: &Option<Traffic>| traffic.is_some_and(|traffic| traffic.reaches(slot));
        let is_draining = self
            .status
            .busy_until
            .get(slot)
            .is_some_and(|until| self.now < until);
        is_draining || reaches(&self.status.traffic) || reaches(&self.observed.traffic)
    }

    /// How long a slot needs to answer its last requests.
    pub(super) fn drain(&self) -> Span {
        let canary = self.status.canary.as_deref();
        canary.map_or(self.spec.strategy.drain, |canary| {
            canary.plan.strategy.drain
        })
    }

    /// Makes the application's own Service follow the traffic, but only to a slot that is ready at full size: clients
    /// outside of the mesh go by it.
    pub(super) fn plan_apex(&mut self) {
        let Some(stable) = &self.status.stable else {
            return;
        };
        let canary = self.status.canary.as_deref();
        let takes_over =
            canary.filter(|canary| canary.takes_over && self.status.phase == Phase::Promoting);
        let (slot, revision) = match takes_over {
            Some(canary) => (canary.slot, &canary.revision),
            None => (stable.slot, &stable.revision),
        };
        let seen = self.observed.slots.get(slot);
        let able = seen.ready_of(revision).min(seen.endpoints);
        if able > 0 && able >= self.full_size() {
            self.status.apex = Some(slot);
        }
    }
}
