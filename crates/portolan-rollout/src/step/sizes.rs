//! How many pods each slot is to have.

use super::Pass;
use crate::phase::Phase;
use crate::plan::{PlannedStep, enough_for};
use crate::revision::Revision;
use crate::slot::Slot;
use crate::spec::Capacity;
use crate::status::{Canary, SlotPlan};

impl Pass<'_> {
    /// Returns how many pods the application is asked to have; the least number if it is scaled automatically.
    pub(super) fn wanted_replicas(&self) -> u32 {
        let is_said = self.spec.replicas.is_some() || self.spec.autoscaling.is_some();
        let of_workload = self.status.workload_replicas.filter(|_| !is_said);
        of_workload.unwrap_or_else(|| self.spec.wanted_replicas())
    }

    /// Returns how many pods it takes to answer all requests now.
    pub(super) fn full_size(&self) -> u32 {
        let wanted = self.wanted_replicas();
        if self.spec.autoscaling.is_none() {
            return wanted;
        }
        // The pods that answer the requests of now, in whichever slot they are.
        let [a, b] = Slot::BOTH.map(|slot| {
            let traffic = self
                .observed
                .traffic
                .filter(|traffic| traffic.share(slot) > 0);
            traffic.map_or(0, |_| self.observed.slots.get(slot).ready)
        });
        wanted.max(a.max(b))
    }

    /// Returns how many pods a slot needs for a share of the requests in percent.
    fn enough_for(&self, load: u8) -> u32 {
        enough_for(load, self.full_size())
    }

    fn pods_of_step(&self, step: &PlannedStep) -> u32 {
        step.replicas
            .unwrap_or_else(|| self.enough_for(step.load()))
    }

    /// Returns how many pods of the new revision must be ready for the phase to go on.
    pub(super) fn needed_replicas(&self) -> u32 {
        let Some(canary) = self.status.canary.as_deref() else {
            return 0;
        };
        match self.status.phase {
            Phase::Preparing => self.pods_of_step(&canary.current_step()).max(1),
            Phase::Shifting | Phase::Holding if canary.is_growing => self
                .pods_of_step(&canary.plan.step_at(canary.step + 1))
                .max(1),
            Phase::Promoting if !canary.takes_over => self.full_size().max(1),
            Phase::RollingBack => 0,
            _ => 1,
        }
    }

    /// Returns whether enough pods of the new revision are ready and can be reached.
    pub(super) fn is_ready_for_phase(&self) -> bool {
        let Some(canary) = self.status.canary.as_deref() else {
            return true;
        };
        let slot = self.observed.slots.get(canary.slot);
        slot.ready_of(&canary.revision).min(slot.endpoints) >= self.needed_replicas()
    }

    /// Returns whether nobody can reach the old revision.
    pub(super) fn stable_is_away(&self) -> bool {
        let slot = self.status.stable_slot();
        self.observed.slots.get(slot).endpoints == 0
    }

    /// Decides what each slot runs. A slot that answers requests keeps its revision and loses no pods.
    pub(super) fn plan_slots(&mut self) {
        for slot in Slot::BOTH {
            let Some(plan) = self.wanted_plan(slot) else {
                continue;
            };
            let known = self.status.slots.get(slot).as_ref();
            let takes_something_away = known.is_some_and(|known| {
                known.replicas > 0
                    && (known.revision != plan.revision || known.replicas > plan.replicas)
            });
            let is_stable = slot == self.status.stable_slot();
            if takes_something_away && !is_stable && self.is_busy(slot) {
                continue;
            }
            *self.status.slots.get_mut(slot) = Some(plan);
        }
        self.status.replicas = self.observed.slots.get(self.status.stable_slot()).ready;
        let (name, slot) = (&self.observed.name, self.status.stable_slot());
        self.status.selector = crate::objects::selector_text(name, slot);
    }

    fn wanted_plan(&self, slot: Slot) -> Option<SlotPlan> {
        let stable = self.status.stable.as_ref()?;
        if stable.slot == slot {
            return Some(plan(&stable.revision, self.stable_size()));
        }
        match self.status.canary.as_deref() {
            Some(canary) if canary.slot == slot => {
                Some(plan(&canary.revision, self.canary_size(canary)))
            }
            _ => self.leftover_plan(slot),
        }
    }

    /// The slot of neither the stable nor the new revision: pods of the one before are kept for a while.
    fn leftover_plan(&self, slot: Slot) -> Option<SlotPlan> {
        let previous = self
            .status
            .previous
            .as_ref()
            .filter(|previous| previous.slot == slot);
        let is_kept =
            self.status.phase == Phase::Soaking || self.status.keep_previous_until.is_some();
        if let Some(previous) = previous.filter(|_| is_kept) {
            let size = match self.capacity() {
                Capacity::Keep => self.wanted_replicas(),
                Capacity::ShrinkStable => self.enough_for(self.holdback()),
            };
            return Some(plan(&previous.revision, size));
        }
        let known = self.status.slots.get(slot).as_ref()?;
        Some(plan(&known.revision, 0))
    }

    fn stable_size(&self) -> u32 {
        let wanted = self.wanted_replicas();
        let Some(canary) = self.status.canary.as_deref() else {
            return wanted;
        };
        if self.status.phase == Phase::Soaking {
            // An autoscaler lowers its floor when all is over, not while everybody watches.
            let known = self.status.slots.get(canary.slot).as_ref();
            let floor = known.map_or(0, |known| known.replicas);
            let is_autoscaled = self.spec.autoscaling.is_some();
            return if is_autoscaled {
                wanted.max(floor)
            } else {
                wanted
            };
        }
        let is_shrunk =
            self.capacity() == Capacity::ShrinkStable && self.status.phase.is_stepping();
        if is_shrunk && self.routes_are_in_force() {
            let rest = 100_u8.saturating_sub(canary.current_step().weight);
            return self.enough_for(rest).min(wanted);
        }
        let known = self.status.slots.get(self.status.stable_slot()).as_ref();
        match known {
            Some(known) if is_shrunk => known.replicas.min(wanted),
            _ => wanted,
        }
    }

    fn canary_size(&self, canary: &Canary) -> u32 {
        let known = self.status.slots.get(canary.slot).as_ref();
        let known = known.filter(|known| known.revision == canary.revision);
        let known = known.map_or(0, |known| known.replicas);
        match self.status.phase {
            Phase::RollingBack => known,
            Phase::Promoting if canary.takes_over => known.max(self.wanted_replicas()),
            Phase::Preparing if canary.decision.is_none() => self.needed_replicas(),
            Phase::Preparing | Phase::Promoting => self.full_size(),
            _ => self
                .needed_replicas()
                .max(self.pods_of_step(&canary.current_step())),
        }
    }

    fn capacity(&self) -> Capacity {
        let canary = self.status.canary.as_deref();
        canary.map_or(self.spec.strategy.capacity, |canary| {
            canary.plan.strategy.capacity
        })
    }

    fn holdback(&self) -> u8 {
        let canary = self.status.canary.as_deref();
        canary.map_or(0, |canary| canary.plan.holdback())
    }
}

fn plan(revision: &Revision, replicas: u32) -> SlotPlan {
    SlotPlan {
        revision: revision.clone(),
        replicas,
    }
}
