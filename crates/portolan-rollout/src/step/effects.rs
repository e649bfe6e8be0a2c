//! What is to be done: the differences between what the status says and what is there.

use std::collections::BTreeSet;

use super::Pass;
use crate::config::MISSING;
use crate::effect::Effect;
use crate::phase::Phase;
use crate::revision::Revision;
use crate::slot::Slot;

/// So many revisions are kept as objects.
const KEPT_REVISIONS: usize = 10;

impl Pass<'_> {
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.guard_deletion(&mut effects);
        self.direct_traffic(&mut effects);
        if self.observed.problems.is_empty() {
            self.keep_revisions(&mut effects);
            self.fill_slots(&mut effects);
        }
        self.replace_pod(&mut effects);
        self.hold_workload(&mut effects);
        effects.append(&mut self.questions);
        self.tell(&mut effects);
        self.look_again(&mut effects);
        effects
    }

    /// The finalizer is there while a deletion has something to wait for, and not longer.
    fn guard_deletion(&mut self, effects: &mut Vec<Effect>) {
        let is_split = self.status.canary.as_deref().is_some_and(|canary| {
            let reaches = |traffic: crate::traffic::Traffic| traffic.reaches(canary.slot);
            let is_reached = self.status.traffic.is_some_and(reaches)
                || self.observed.traffic.is_some_and(reaches);
            is_reached && self.status.phase != Phase::Soaking
        });
        // Routes of the user stay when the object goes, and would lead to Services that go with it.
        let has_users_routes = self.spec.virtual_service_ref.is_some()
            && (self.status.traffic.is_some() || self.observed.traffic.is_some());
        let is_needed = is_split || has_users_routes || self.status.workload_replicas.is_some();
        match (is_needed, self.observed.has_finalizer) {
            (true, false) => effects.push(Effect::AddFinalizer),
            (false, true) => effects.push(Effect::RemoveFinalizer),
            _ => {}
        }
    }

    fn direct_traffic(&self, effects: &mut Vec<Effect>) {
        if let Some(traffic) = self
            .status
            .traffic
            .filter(|traffic| self.observed.traffic != Some(*traffic))
        {
            effects.push(Effect::WriteTraffic(traffic));
        }
        if let Some(slot) = self
            .status
            .apex
            .filter(|slot| self.observed.apex != Some(*slot))
        {
            effects.push(Effect::PointApex { slot });
        }
    }

    fn keep_revisions(&self, effects: &mut Vec<Effect>) {
        let Some(target) = &self.status.target else {
            return;
        };
        // Only what the spec says now can be written down; it is the target unless a change is still to be noticed.
        let template = self.observed.template.as_ref();
        let is_current = template
            .and_then(|template| target.is_of(template, &self.status.fence.config))
            .unwrap_or(false);
        if is_current && !self.observed.revisions.contains(target) {
            effects.push(Effect::SaveRevision {
                revision: target.clone(),
            });
        }
        for version in self
            .status
            .fence
            .config
            .iter()
            .filter(|version| version.hash != MISSING)
        {
            let copy = (target.clone(), version.config.clone());
            let is_unchanged = self.observed.config.contains(version);
            if is_unchanged && !self.observed.copies.contains(&copy) {
                effects.push(Effect::CopyConfig {
                    revision: copy.0,
                    config: copy.1,
                });
            }
        }
        let revisions = self.superfluous_revisions().into_iter();
        effects.extend(revisions.map(|revision| Effect::DeleteRevision { revision }));
    }

    /// Revisions beyond the limit that nothing needs: those never tried first, then those tried longest ago.
    fn superfluous_revisions(&self) -> Vec<Revision> {
        let kept: BTreeSet<&Revision> = self.observed.revisions.iter().collect();
        let too_many = kept.len().saturating_sub(KEPT_REVISIONS);
        let mut unneeded: Vec<&Revision> = kept
            .into_iter()
            .filter(|revision| !self.status.needs(revision))
            .collect();
        let tried_at = |revision: &Revision| {
            let tried = self.status.tried.iter();
            tried
                .into_iter()
                .position(|tried| tried.revision == *revision)
        };
        unneeded.sort_by_key(|revision| tried_at(revision));
        unneeded.into_iter().take(too_many).cloned().collect()
    }

    fn fill_slots(&self, effects: &mut Vec<Effect>) {
        for slot in Slot::BOTH {
            let Some(plan) = self.status.slots.get(slot) else {
                continue;
            };
            let seen = self.observed.slots.get(slot);
            let has_other = seen.revision.as_ref() != Some(&plan.revision);
            let is_reached = self
                .observed
                .traffic
                .is_some_and(|traffic| traffic.reaches(slot));
            let is_stable = slot == self.status.stable_slot();
            if has_other && seen.endpoints > 0 && is_reached && !is_stable {
                // Somebody else sent requests there; the routes are put back first.
                continue;
            }
            if has_other && plan.replicas > 0 {
                effects.push(Effect::ApplySlot {
                    slot,
                    revision: plan.revision.clone(),
                    replicas: plan.replicas,
                });
            } else if seen.revision.is_some() && seen.replicas != plan.replicas {
                effects.push(Effect::ScaleSlot {
                    slot,
                    replicas: plan.replicas,
                });
            } else if has_other && seen.revision.is_none() && is_stable {
                // An application of zero pods exists all the same.
                effects.push(Effect::ApplySlot {
                    slot,
                    revision: plan.revision.clone(),
                    replicas: 0,
                });
            }
        }
    }

    fn replace_pod(&self, effects: &mut Vec<Effect>) {
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let pods = &self.observed.slots.get(canary.slot).pods;
        if let Some(pod) = canary
            .replaced_pod
            .as_ref()
            .filter(|pod| pods.contains(*pod))
        {
            effects.push(Effect::ReplacePod { pod: pod.clone() });
        }
    }

    /// The Deployment that the spec refers to gives way once its successor serves.
    fn hold_workload(&self, effects: &mut Vec<Effect>) {
        let has_pods = self
            .observed
            .workload
            .as_ref()
            .is_some_and(|workload| workload.replicas > 0);
        let is_succeeded = self.status.phase != Phase::Initializing;
        if self.spec.workload_ref.is_some() && has_pods && is_succeeded {
            effects.push(Effect::HoldWorkload);
        }
    }

    fn tell(&self, effects: &mut Vec<Effect>) {
        let told = self.status.delivered;
        let news = self
            .status
            .history
            .iter()
            .filter(|record| record.number > told);
        effects.extend(news.cloned().map(Effect::Tell));
    }

    fn look_again(&self, effects: &mut Vec<Effect>) {
        let seconds = match (
            self.status.canary.as_deref(),
            self.status.keep_previous_until,
        ) {
            (Some(canary), _) => canary.plan.analysis.interval.seconds().max(1),
            (None, Some(until)) => until.since(self.now).max(1),
            (None, None) if self.is_draining() => self.drain().seconds().max(1),
            (None, None) => return,
        };
        effects.push(Effect::LookAgain { seconds });
    }

    fn is_draining(&self) -> bool {
        let busy = self.status.busy_until;
        busy.a.is_some() || busy.b.is_some()
    }
}
