//! A revision that the spec did not ask for before.

use super::{Cause, Pass};
use crate::history::Actor;
use crate::metric_state::MetricState;
use crate::phase::{Outcome, Phase};
use crate::plan::Plan;
use crate::revision::Revision;
use crate::slot::Slot;
use crate::status::{Canary, Decision, Fence, Placed};

impl Pass<'_> {
    /// Looks whether the spec asks for another revision, and begins with it. A changed generation alone is no reason,
    /// and without one nothing is even compared.
    pub(super) fn notice_revision(&mut self) {
        self.status.observed_generation = self.observed.generation;
        let fence = self.fence();
        let Some(template) = self.observed.template.as_ref() else {
            return;
        };
        if self.status.target.is_some() && (fence == self.status.fence || !self.may_change_target())
        {
            return;
        }
        if let Err(message) = self.check_plan() {
            self.invalid = Some(message);
            return;
        }
        let content = Revision::of(template, &fence.config);
        let is_same = |revision: &Revision| revision.is_of(template, &fence.config);
        if self.is_target(&content, is_same) {
            self.status.fence = fence;
            return;
        }
        // A revision that is known keeps the name it has, whatever scheme that is of.
        let known = self.known_revision(|revision| is_same(revision) == Some(true));
        let revision = known.unwrap_or(content);
        self.status.fence = fence;
        self.status.target = Some(revision.clone());
        self.status.target_here = None;
        self.begin_with(revision);
    }

    /// Returns whether some content is what the spec asked for before. A target that a newer operator named cannot be
    /// compared; what is found then is taken for it, once, so that going back to an older operator starts nothing.
    fn is_target(
        &mut self,
        content: &Revision,
        is_same: impl Fn(&Revision) -> Option<bool>,
    ) -> bool {
        let Some(target) = &self.status.target else {
            return false;
        };
        is_same(target).unwrap_or_else(|| {
            let here = &mut self.status.target_here;
            here.get_or_insert_with(|| content.clone()) == content
        })
    }

    fn known_revision(&self, is_same: impl Fn(&Revision) -> bool) -> Option<Revision> {
        let known = [&self.status.stable, &self.status.previous].into_iter();
        let mut known = known.flatten().map(|placed| &placed.revision);
        known.find(|revision| is_same(revision)).cloned()
    }

    /// What the target would be made of now.
    fn fence(&self) -> Fence {
        let mut config = Vec::new();
        if self.spec.track_config {
            config.clone_from(&self.observed.config);
            config.sort();
        }
        Fence {
            generation: self.observed.generation,
            workload_generation: self
                .observed
                .workload
                .as_ref()
                .map(|workload| workload.generation),
            config,
        }
    }

    /// While traffic is on its way back, or over to the new revision, a change has to wait; it is noticed afterwards.
    fn may_change_target(&self) -> bool {
        let takes_over = self
            .status
            .canary
            .as_ref()
            .is_some_and(|canary| canary.takes_over);
        // Zero pods are asked for and some still answer: what they run is not changed under them.
        let is_shutting_down = self.wanted_replicas() == 0 && !self.stable_is_away();
        match self.status.phase {
            Phase::Initializing => true,
            _ if is_shutting_down => false,
            Phase::RollingBack => false,
            Phase::Promoting => !takes_over && !self.spec.paused,
            _ => !self.spec.paused,
        }
    }

    fn begin_with(&mut self, revision: Revision) {
        let is_stable = self
            .status
            .stable
            .as_ref()
            .is_some_and(|stable| stable.revision == revision);
        let is_previous = self
            .status
            .previous
            .as_ref()
            .is_some_and(|previous| previous.revision == revision);
        match self.status.phase {
            Phase::Initializing => {
                self.status.stable = Some(Placed {
                    revision,
                    slot: self.status.stable_slot(),
                });
            }
            Phase::Soaking if is_previous => self.revert(),
            _ if is_stable && self.status.canary.is_some() => self.revert(),
            _ if is_stable => self.settle(),
            _ => self.replace_canary(revision),
        }
    }

    /// The user took the new revision back.
    fn revert(&mut self) {
        self.begin_roll_back(Decision {
            outcome: Outcome::Reverted,
            reason: "Reverted".to_owned(),
            message: "the spec went back to the revision before".to_owned(),
            actor: Actor::Spec,
        });
    }

    /// The spec asks for what serves already.
    fn settle(&mut self) {
        self.enter(
            Phase::Stable,
            None,
            Cause {
                reason: "Reverted",
                message: "the spec asks for the revision that serves".to_owned(),
                actor: Actor::Spec,
            },
        );
    }

    /// Ends what runs and starts the new revision, unless it was refused before.
    fn replace_canary(&mut self, revision: Revision) {
        if self.status.phase == Phase::Soaking {
            self.end_soak();
        } else if let Some(canary) = self.status.canary.take() {
            let cause = Cause {
                reason: "Superseded",
                message: format!("{revision} took its place"),
                actor: Actor::Spec,
            };
            let old = Some(canary.revision);
            self.record(self.status.phase, old, Some(Outcome::Superseded), cause);
        }
        if let Some(why) = self.status.refused(&revision) {
            let message = format!("this revision was refused before ({why}); retry it by a token");
            self.enter(
                Phase::RolledBack,
                None,
                Cause {
                    reason: "Refused",
                    message,
                    actor: Actor::Operator,
                },
            );
            return;
        }
        self.start(revision, None);
    }

    /// Starts a revision in the free slot. A decision that is made already skips its steps.
    pub(super) fn start(&mut self, revision: Revision, decision: Option<Decision>) {
        if self.wanted_replicas() == 0 {
            // Pods that still answer requests go with the revision that they came with.
            if self.stable_is_away() {
                self.replace_without_pods(revision);
            }
            return;
        }
        let attempt = self.count_attempt(&revision);
        let slot = self.free_slot();
        let canary = self.new_canary(revision, slot, attempt, decision);
        let message = format!("{} starts in slot {slot}", canary.revision);
        let actor = canary
            .decision
            .as_ref()
            .map_or(Actor::Spec, |decision| decision.actor);
        self.status.canary = Some(Box::new(canary));
        self.status.keep_previous_until = None;
        self.enter(
            Phase::Preparing,
            None,
            Cause {
                reason: "Preparing",
                message,
                actor,
            },
        );
    }

    fn new_canary(
        &self,
        revision: Revision,
        slot: Slot,
        attempt: u32,
        decision: Option<Decision>,
    ) -> Canary {
        let plan = self.new_plan();
        let metrics = plan.analysis.metrics_or_default().into_iter();
        let metrics = metrics.map(|metric| {
            let settings = plan.analysis.settings(&metric, attempt, 0.0);
            let state = MetricState::new(&metric, &settings);
            (metric.name, state)
        });
        Canary {
            revision,
            slot,
            attempt,
            metrics: metrics.collect(),
            plan,
            step: 0,
            is_growing: false,
            is_routed: false,
            takes_over: false,
            is_paused: false,
            is_resumed: false,
            decision,
            ticked_at: self.now,
            step_seconds: 0,
            run_seconds: 0,
            unready_seconds: 0,
            part_seconds: 0,
            step_requests: 0,
            routes_changed_at: self.now,
            is_verified: None,
            agreed: Vec::new(),
            replaced_pod: None,
        }
    }

    fn new_plan(&self) -> Plan {
        let referred = self.observed.analysis.as_ref();
        Plan {
            strategy: self.spec.strategy.clone(),
            analysis: referred.unwrap_or(&self.spec.analysis).clone(),
            gates: self.spec.gates.clone(),
        }
    }

    /// Refuses settings that no test has, before anything starts by them.
    fn check_plan(&self) -> Result<(), String> {
        let analysis = self.new_plan().analysis;
        for metric in analysis.metrics_or_default() {
            let settings = analysis.settings(&metric, 1, 0.0);
            let checked = settings.check();
            checked.map_err(|error| format!("spec.analysis, metric {}: {error}", metric.name))?;
        }
        Ok(())
    }

    /// With no pods there is nothing to try out: the new revision is the stable one when pods are asked for again.
    fn replace_without_pods(&mut self, revision: Revision) {
        if let Some(stable) = &mut self.status.stable {
            stable.revision = revision;
        }
        self.enter(
            Phase::Stable,
            Some(Outcome::PromotedUnproven),
            Cause {
                reason: "NoPods",
                message: "zero replicas are asked for, so nothing can be tried out".to_owned(),
                actor: Actor::Spec,
            },
        );
    }
}
