//! The decisions of a run over many nodes.

use super::{
    BarrierScope, Cancel, GateState, NodeEnd, NodeEvent, NodeProgress, Observed, RunEffect, RunEnd,
    RunPlan, RunState, Stage, UnreachablePolicy,
};
use crate::outcome::NodeState;

/// The next state of a run, and what to do once that state is stored.
pub fn advance(
    plan: &RunPlan,
    state: &RunState,
    observed: &Observed,
) -> (RunState, Vec<RunEffect>) {
    let mut run = Advance {
        plan,
        observed,
        state: state.clone(),
        effects: Vec::new(),
    };
    run.take_reports();
    run.judge_silence();
    run.take_cancel();
    run.resume();
    // Each pass opens at most one door; there are no more doors than batches, gates and barriers.
    for _ in 0..=2 * plan.batches.len() * (plan.barriers.len() + 2) {
        if !run.pass() {
            break;
        }
    }
    run.give_permits();
    (run.state, run.effects)
}

struct Advance<'a> {
    plan: &'a RunPlan,
    observed: &'a Observed,
    state: RunState,
    effects: Vec<RunEffect>,
}

impl Advance<'_> {
    /// Reports about a node's current phase count; any other one is late.
    fn take_reports(&mut self) {
        for report in &self.observed.reports {
            let now = self.observed.now;
            let Some(progress) = self.state.nodes.get_mut(&report.node) else {
                continue;
            };
            let NodeProgress::Working { phase, heard } = progress else {
                continue;
            };
            if *phase != report.phase {
                continue;
            }
            match &report.event {
                NodeEvent::Alive => *heard = now,
                NodeEvent::AtBarrier { barrier, state } => {
                    if (*phase..self.plan.barriers.len()).contains(barrier) {
                        *progress = NodeProgress::Waiting {
                            barrier: *barrier,
                            state: *state,
                        };
                    }
                }
                NodeEvent::WantsPermit(step) => {
                    *heard = now;
                    if self.state.permits.ask(step, &report.node) {
                        let (node, step) = (report.node.clone(), step.clone());
                        self.effects.push(RunEffect::Permit { node, step });
                    }
                }
                NodeEvent::GivesPermit(step) => {
                    *heard = now;
                    self.state.permits.give_back(step, &report.node);
                }
                NodeEvent::Ended(state) => {
                    *progress = NodeProgress::Done(NodeEnd::State(*state));
                    self.effects.push(RunEffect::Release(report.node.clone()));
                }
            }
        }
    }

    /// A node at work that is silent is unknown only when no step of it can run any more.
    fn judge_silence(&mut self) {
        let now = self.observed.now;
        let limit = match self.plan.unreachable {
            UnreachablePolicy::Wait(time) => self.plan.silence_limit.max(time),
            _ => self.plan.silence_limit,
        };
        for (node, progress) in &mut self.state.nodes {
            let NodeProgress::Working { heard, .. } = progress else {
                continue;
            };
            let is_silent = now.saturating_sub(*heard) > limit;
            if is_silent && !self.observed.connected.contains(node) {
                *progress = NodeProgress::Done(NodeEnd::State(NodeState::Unknown));
                self.effects.push(RunEffect::Release(node.clone()));
            }
        }
    }

    /// Free permits go to those that wait. A node that is not at work needs none.
    fn give_permits(&mut self) {
        for (node, progress) in &self.state.nodes {
            if !matches!(progress, NodeProgress::Working { .. }) {
                self.state.permits.release(node);
            }
        }
        for (node, step) in self.state.permits.give(&self.plan.throttles) {
            self.effects.push(RunEffect::Permit { node, step });
        }
    }

    fn take_cancel(&mut self) {
        let Some(cancel) = self.observed.cancel else {
            return;
        };
        let is_harder = self.state.cancel != Some(Cancel::Now);
        if is_harder && !matches!(self.state.stage, Stage::Ended(_)) {
            self.state.cancel = Some(cancel);
            self.stop("cancelled".to_owned(), Some(cancel));
        }
    }

    fn resume(&mut self) {
        if self.observed.resume && matches!(self.state.stage, Stage::Stalled { .. }) {
            self.state.gate.refusals = 0;
            self.state.gate.ask_at = self.observed.now;
            self.state.queued_since = None;
            let batch = RunState::batch_nodes(self.plan, self.state.batch);
            let has_begun = batch
                .iter()
                .any(|node| self.state.nodes.get(node) != Some(&NodeProgress::Queued));
            self.state.stage = if has_begun {
                Stage::Gate
            } else {
                Stage::Reserving
            };
        }
    }

    /// Takes one step forward; says whether another one may be possible.
    fn pass(&mut self) -> bool {
        if self.state.failures() > self.plan.max_failures && !self.is_ending() {
            let reason = format!(
                "{} nodes failed, {} are allowed",
                self.state.failures(),
                self.plan.max_failures
            );
            let how = self.plan.stops_on_failure.then_some(Cancel::Drain);
            self.stop(reason, how);
            return true;
        }
        match self.state.stage.clone() {
            Stage::Reserving => self.reserve(),
            Stage::Running => self.run_batch(),
            Stage::Gate => self.pass_gate(),
            Stage::Stopping { .. } => {
                self.end_waiting();
                self.end_if_all_done()
            }
            Stage::Stalled { .. } | Stage::Ended(_) => false,
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.state.stage, Stage::Stopping { .. } | Stage::Ended(_))
    }

    /// Begins a batch when no other run holds one of its nodes.
    fn reserve(&mut self) -> bool {
        let batch = RunState::batch_nodes(self.plan, self.state.batch);
        if batch.is_empty() {
            return self.end_if_all_done();
        }
        let needed = batch.iter().chain(&self.plan.delegates);
        let holder = needed
            .into_iter()
            .find_map(|node| self.observed.held.get(node));
        if let Some(holder) = holder {
            let since = *self.state.queued_since.get_or_insert(self.observed.now);
            if self.observed.now.saturating_sub(since) > self.plan.queue_limit {
                self.state.stage = Stage::Stalled {
                    reason: format!("behind the run {holder}"),
                };
            }
            return false;
        }
        self.state.queued_since = None;
        // Always in the same order, so that two runs cannot hold what the other one waits for.
        let mut nodes = batch.to_vec();
        nodes.extend(self.plan.delegates.iter().cloned());
        nodes.sort();
        nodes.dedup();
        self.effects.push(RunEffect::Reserve(nodes));
        self.choose_first(batch);
        for node in batch {
            if self.state.nodes.get(node) == Some(&NodeProgress::Queued) {
                self.begin(node);
            }
        }
        self.state.stage = Stage::Running;
        true
    }

    /// The first node that can be reached, in the order of the run; one that is waited for if none can.
    fn choose_first(&mut self, batch: &[String]) {
        if self.state.first.is_some() {
            return;
        }
        let is_allowed = |node: &&String| !self.observed.denied.contains(*node);
        let is_connected = |node: &&String| self.observed.connected.contains(*node);
        let mut allowed = batch.iter().filter(is_allowed);
        let first = allowed.clone().find(is_connected);
        let waits = matches!(self.plan.unreachable, UnreachablePolicy::Wait(_));
        self.state.first = first.or_else(|| allowed.next().filter(|_| waits)).cloned();
    }

    fn begin(&mut self, node: &str) {
        let is_connected = self.observed.connected.contains(node);
        let progress = match self.plan.unreachable {
            _ if self.observed.denied.contains(node) => {
                self.effects.push(RunEffect::Deny(node.to_owned()));
                NodeProgress::Done(NodeEnd::State(NodeState::Failed))
            }
            UnreachablePolicy::Fail if !is_connected => {
                NodeProgress::Done(NodeEnd::State(NodeState::Unreachable))
            }
            UnreachablePolicy::Skip if !is_connected => {
                NodeProgress::Done(NodeEnd::State(NodeState::Skipped))
            }
            _ => {
                self.effects.push(RunEffect::Dispatch {
                    node: node.to_owned(),
                    phase: self.state.phase,
                });
                NodeProgress::Working {
                    phase: self.state.phase,
                    heard: self.observed.now,
                }
            }
        };
        if matches!(progress, NodeProgress::Done(_)) {
            self.effects.push(RunEffect::Release(node.to_owned()));
        }
        self.state.nodes.insert(node.to_owned(), progress);
    }

    /// A batch has passed its phase when none of its nodes is at work.
    fn run_batch(&mut self) -> bool {
        let batch = RunState::batch_nodes(self.plan, self.state.batch);
        let is_working = batch.iter().any(|node| {
            matches!(
                self.state.nodes.get(node),
                Some(NodeProgress::Working { .. })
            )
        });
        if is_working {
            return false;
        }
        if let Some(barrier) = self.state.first_barrier(batch)
            && self.plan.barriers.get(barrier) == Some(&BarrierScope::Batch)
        {
            self.dispatch_waiting(barrier + 1);
            return true;
        }
        if self.state.batch + 1 < self.plan.batches.len() {
            if let Some(gate) = &self.plan.gate {
                self.state.stage = Stage::Gate;
                self.state.gate = GateState {
                    number: self.state.gate.number + 1,
                    refusals: 0,
                    question: self.state.gate.question + 1,
                    ask_at: self.observed.now,
                    is_open: !gate.is_asked,
                    why: None,
                };
                return true;
            }
            return self.next_batch();
        }
        self.next_phase()
    }

    /// The next batch begins when the gate said yes and somebody approved, if that is needed.
    fn pass_gate(&mut self) -> bool {
        let Some(plan) = &self.plan.gate else {
            return self.next_batch();
        };
        let gate = &mut self.state.gate;
        let answer = self.observed.gate.as_ref();
        if let Some(answer) = answer.filter(|answer| answer.question == gate.question)
            && !gate.is_open
        {
            gate.is_open = answer.refusal.is_none();
            gate.why.clone_from(&answer.refusal);
            gate.question += 1;
            gate.ask_at = self.observed.now + plan.interval;
            gate.refusals += u32::from(!gate.is_open);
        }
        if gate.refusals > plan.retries {
            let after = self.state.batch + 1;
            let why = gate.why.as_deref().unwrap_or("it said no");
            let reason = format!("the gate after batch {after} does not open: {why}");
            self.state.stage = Stage::Stalled { reason };
            return false;
        }
        if !gate.is_open {
            if gate.ask_at <= self.observed.now {
                let question = gate.question;
                self.effects.push(RunEffect::AskGate { question });
            }
            return false;
        }
        if plan.needs_approval && self.observed.approved_gate < gate.number {
            return false;
        }
        self.next_batch()
    }

    fn next_batch(&mut self) -> bool {
        self.state.batch += 1;
        self.state.stage = if self.state.phase == 0 {
            Stage::Reserving
        } else {
            self.dispatch_waiting(self.state.phase);
            Stage::Running
        };
        true
    }

    /// Every batch has passed: the barrier opens for all that wait at it, batch by batch.
    fn next_phase(&mut self) -> bool {
        let Some(barrier) = self.state.first_barrier(&self.plan.nodes) else {
            return self.end_if_all_done();
        };
        self.state.phase = barrier + 1;
        self.state.batch = 0;
        self.state.stage = Stage::Running;
        self.dispatch_waiting(self.state.phase);
        true
    }

    /// Lets the nodes of the current batch that wait at a barrier below `phase` go on.
    fn dispatch_waiting(&mut self, phase: usize) {
        let now = self.observed.now;
        for node in RunState::batch_nodes(self.plan, self.state.batch) {
            if let Some(progress) = self.state.nodes.get_mut(node)
                && matches!(progress, NodeProgress::Waiting { barrier, .. } if *barrier < phase)
            {
                if self.observed.denied.contains(node) {
                    *progress = NodeProgress::Done(NodeEnd::State(NodeState::Failed));
                    self.effects.push(RunEffect::Deny(node.clone()));
                    self.effects.push(RunEffect::Release(node.clone()));
                    continue;
                }
                *progress = NodeProgress::Working { phase, heard: now };
                self.effects.push(RunEffect::Dispatch {
                    node: node.clone(),
                    phase,
                });
            }
        }
    }

    /// Begins no more nodes. With `how`, nodes at work are told to end, too.
    fn stop(&mut self, reason: String, how: Option<Cancel>) {
        for (node, progress) in &mut self.state.nodes {
            match progress {
                NodeProgress::Queued => *progress = NodeProgress::Done(NodeEnd::NotBegun),
                NodeProgress::Working { .. } => {
                    if let Some(how) = how {
                        let node = node.clone();
                        self.effects.push(RunEffect::Stop { node, how });
                    }
                }
                NodeProgress::Waiting { .. } | NodeProgress::Done(_) => {}
            }
        }
        self.end_waiting();
        self.state.stage = Stage::Stopping { reason };
    }

    /// Nodes at a barrier that will not open have taken whole phases and take no more.
    fn end_waiting(&mut self) {
        for (node, progress) in &mut self.state.nodes {
            if let NodeProgress::Waiting { state, .. } = progress {
                *progress = NodeProgress::Done(NodeEnd::State(*state));
                self.effects.push(RunEffect::Release(node.clone()));
            }
        }
    }

    fn end_if_all_done(&mut self) -> bool {
        let is_done = |progress: &NodeProgress| matches!(progress, NodeProgress::Done(_));
        if !self.state.nodes.values().all(is_done) {
            return false;
        }
        let end = if self.state.cancel.is_some() {
            RunEnd::Cancelled
        } else if self.state.failures() > 0 {
            RunEnd::Failed
        } else {
            RunEnd::Succeeded
        };
        self.state.stage = Stage::Ended(end);
        false
    }
}
