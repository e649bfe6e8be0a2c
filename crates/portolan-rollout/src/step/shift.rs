//! The new revision gets traffic, step by step, and is judged.
//!
//! Reasons to go back come first, then reasons to wait, and only then the next step.

use super::{Cause, Pass};
use crate::history::Actor;
use crate::metric_state::{MetricState, MetricVerdict};
use crate::observed::TroubleKind;
use crate::phase::{HoldReason, Outcome, Phase};
use crate::spec::{GateMoment, Policy, StrategyType};
use crate::status::Decision;

impl Pass<'_> {
    pub(super) fn shift(&mut self) {
        if self.goes_back() || self.goes_over() || self.waits() {
            return;
        }
        self.next_step();
    }

    /// Rolls back if anything asks for it.
    pub(super) fn goes_back(&mut self) -> bool {
        if let Some(message) = self.bad_metric() {
            if !self.replaces_pod() {
                self.begin_roll_back(Decision {
                    outcome: Outcome::RolledBack,
                    reason: "Worse".to_owned(),
                    message,
                    actor: Actor::Operator,
                });
            }
            return true;
        }
        if let Some(message) = self.crash_loop() {
            self.begin_roll_back(Decision {
                outcome: Outcome::RolledBack,
                reason: "CrashLoop".to_owned(),
                message,
                actor: Actor::Operator,
            });
            return true;
        }
        let Some(canary) = self.status.canary.as_deref() else {
            return true;
        };
        if canary.unready_seconds >= canary.plan.strategy.progress_deadline.seconds() {
            self.give_up_on_pods();
            return true;
        }
        false
    }

    /// Returns what speaks against the new revision's pods. If those of the old one crash as well, it is nobody's fault.
    fn crash_loop(&self) -> Option<String> {
        let canary = self.status.canary.as_deref()?;
        let slot = self.observed.slots.get(canary.slot);
        let others = self.observed.slots.get(canary.slot.other());
        let trouble = slot.trouble.as_ref()?;
        let is_crash = trouble.kind == TroubleKind::CrashLoop && slot.endpoints == 0;
        (is_crash && others.trouble.is_none()).then(|| trouble.message.clone())
    }

    /// Goes to the promotion because a person or a policy said so.
    fn goes_over(&mut self) -> bool {
        let Some(canary) = self.status.canary.as_deref() else {
            return true;
        };
        if canary.decision.is_some() && self.observed.problems.is_empty() {
            self.enter_promoting();
            return true;
        }
        if self.blocked().is_some() {
            return false;
        }
        let analysis = &canary.plan.analysis;
        if self.stable_is_away() && analysis.on_stable_unhealthy == Policy::Promote {
            let message = "the old revision's pods are not ready, those of the new one are";
            self.decide_by_policy("StableUnhealthy", message.to_owned());
            return true;
        }
        if canary.run_seconds < canary.plan.strategy.max_duration.seconds() {
            return false;
        }
        let (policy, message) = self.policy_at_the_end();
        match policy {
            Policy::Hold => return false,
            Policy::Promote => self.decide_by_policy("OutOfTime", message),
            Policy::PromoteUnlessWorse if self.nothing_speaks_against_it() => {
                self.decide_by_policy("OutOfTime", message);
            }
            Policy::Rollback | Policy::PromoteUnlessWorse => self.begin_roll_back(Decision {
                outcome: Outcome::RolledBack,
                reason: "OutOfTime".to_owned(),
                message,
                actor: Actor::Policy,
            }),
        }
        true
    }

    /// Returns which policy decides when the time is over, and what was missing.
    fn policy_at_the_end(&self) -> (Policy, String) {
        let Some(canary) = self.status.canary.as_deref() else {
            return (Policy::Hold, String::new());
        };
        let (strategy, analysis) = (&canary.plan.strategy, &canary.plan.analysis);
        let after = strategy.max_duration;
        if self.verdict() == MetricVerdict::Blind {
            let message = format!("metrics could not be read and {after} are over");
            return (analysis.on_metrics_down, message);
        }
        if self.fewest_requests() < strategy.min_requests.max(1) {
            let message = format!("there were hardly any requests and {after} are over");
            return (analysis.on_no_traffic, message);
        }
        let message = format!("nothing is proven and {after} are over{}", self.excluded());
        (analysis.on_inconclusive, message)
    }

    /// Promotes without proof, as the user's policy says.
    pub(super) fn decide_by_policy(&mut self, reason: &str, message: String) {
        if let Some(canary) = self.status.canary.as_deref_mut() {
            canary.decision = Some(Decision {
                outcome: Outcome::PromotedUnproven,
                reason: reason.to_owned(),
                message,
                actor: Actor::Policy,
            });
        }
        self.enter_promoting();
    }

    /// Holds the step if anything has to be waited for.
    fn waits(&mut self) -> bool {
        match self.reason_to_wait() {
            Some((reason, message)) => {
                self.hold(reason, message);
                true
            }
            None => false,
        }
    }

    fn reason_to_wait(&mut self) -> Option<(HoldReason, String)> {
        use HoldReason::{Doubt, Inconclusive, Manual, NoData, NoTraffic, Routes, StableUnhealthy};
        if let Some(blocked) = self.blocked() {
            return Some(blocked);
        }
        let canary = self.status.canary.as_deref()?;
        let step = canary.current_step();
        if !self.is_ready_for_phase() {
            let slot = self.observed.slots.get(canary.slot);
            let message = format!("{} pods of the new revision are ready", slot.ready);
            return Some((HoldReason::NotReady, message));
        }
        if self.stable_is_away() {
            return Some((
                StableUnhealthy,
                "the old revision's pods are not ready".to_owned(),
            ));
        }
        if !self.routes_are_in_force() {
            return Some((Routes, "the routes are not in force yet".to_owned()));
        }
        if step.is_manual && !canary.is_resumed {
            return Some((
                Manual,
                "this step waits for a person to resume it".to_owned(),
            ));
        }
        if !step.is_manual && canary.step_seconds < step.seconds {
            return None;
        }
        let is_judged = canary.plan.strategy.strategy_type != StrategyType::BlueGreen;
        if !is_judged || !step.is_exposed() {
            return None;
        }
        let verdict = self.verdict();
        if verdict == MetricVerdict::Blind {
            return Some((NoData, self.silence()));
        }
        let (seen, least) = (canary.step_requests, canary.plan.strategy.min_requests);
        if seen < least && self.counts_requests() {
            let message = format!("{seen} of {least} requests of this step were seen");
            return Some((NoTraffic, message));
        }
        if canary.is_verified == Some(false) {
            return Some((
                Routes,
                "requests are not split as the routes say".to_owned(),
            ));
        }
        if verdict == MetricVerdict::Doubtful {
            let message = "something speaks against the new revision, not enough to decide";
            return Some((Doubt, message.to_owned()));
        }
        if canary.is_in_last_step() && verdict != MetricVerdict::Good {
            let message = format!("not yet proven{}", self.excluded());
            return Some((Inconclusive, message));
        }
        None
    }

    /// Goes to the next step, or to the promotion, when this one's time is over.
    fn next_step(&mut self) {
        self.go_on();
        let Some(canary) = self.status.canary.as_deref() else {
            return;
        };
        let step = canary.current_step();
        if !step.is_manual && canary.step_seconds < step.seconds {
            return;
        }
        if canary.is_in_last_step() {
            self.promote_by_proof();
            return;
        }
        if self.counts_last_window() {
            return;
        }
        if let Err(message) = self.ask_gates(GateMoment::Step) {
            self.hold(HoldReason::Gate, message);
            return;
        }
        self.grow_then_raise();
    }

    /// Returns whether the requests of a whole interval are being counted right now. A change of the weight would make them
    /// worthless: of a step of six intervals, one would be lost. Metrics that do not answer are not waited for.
    fn counts_last_window(&self) -> bool {
        let Some(canary) = self.status.canary.as_deref() else {
            return false;
        };
        let interval = canary.plan.analysis.interval.seconds().max(1);
        let is_open = |state: &MetricState| {
            let counted = state.counted_to().filter(|counted| *counted <= self.now);
            let begun = counted.map_or(canary.routes_changed_at, |counted| {
                counted.max(canary.routes_changed_at)
            });
            let age = self.now.since(begun);
            age > interval && age <= interval.saturating_mul(2)
        };
        let is_judged = canary.plan.strategy.strategy_type != StrategyType::BlueGreen;
        is_judged && canary.current_step().is_exposed() && canary.metrics.values().any(is_open)
    }

    /// Starts the pods of the next step first; its traffic follows when they are ready.
    fn grow_then_raise(&mut self) {
        if let Some(canary) = self.status.canary.as_deref_mut() {
            canary.is_growing = true;
        }
        if !self.is_ready_for_phase() {
            let needed = self.needed_replicas();
            self.hold_for_pods(needed);
            return;
        }
        let Some(canary) = self.status.canary.as_deref_mut() else {
            return;
        };
        canary.step += 1;
        let weight = canary.current_step().weight;
        self.begin_step();
        self.enter(
            Phase::Shifting,
            None,
            Cause {
                reason: "Raised",
                message: format!("the new revision gets {weight} % of the traffic"),
                actor: Actor::Operator,
            },
        );
    }

    fn promote_by_proof(&mut self) {
        if let Err(message) = self.ask_gates(GateMoment::Promote) {
            self.hold(HoldReason::Gate, message);
            return;
        }
        if self.verdict() != MetricVerdict::Good {
            // Only blue/green comes here without proof: all at once is what its user asked for.
            let message = "blue/green moves all traffic at once, without proof".to_owned();
            self.decide_by_policy("BlueGreen", message);
            return;
        }
        let message = format!("every metric is proven{}", self.excluded());
        if let Some(canary) = self.status.canary.as_deref_mut() {
            canary.decision = Some(Decision {
                outcome: Outcome::Promoted,
                reason: "Proven".to_owned(),
                message,
                actor: Actor::Operator,
            });
        }
        self.enter_promoting();
    }
}
