//! The decisions of a run over many nodes.

use super::{
    BarrierScope, Cancel, NodeEnd, NodeEvent, NodeProgress, Observed, RunEffect, RunEnd, RunPlan,
    RunState, Stage, UnreachablePolicy,
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
    // Each pass opens at most one door; there are no more doors than batches and barriers.
    for _ in 0..=plan.batches.len() * (plan.barriers.len() + 2) {
        if !run.pass() {
            break;
        }
    }
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
            match report.event {
                NodeEvent::Alive => *heard = now,
                NodeEvent::AtBarrier { barrier, state } => {
                    if (*phase..self.plan.barriers.len()).contains(&barrier) {
                        *progress = NodeProgress::Waiting { barrier, state };
                    }
                }
                NodeEvent::Ended(state) => {
                    *progress = NodeProgress::Done(NodeEnd::State(state));
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
            self.state.gate_tries = 0;
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
        let holder = batch.iter().find_map(|node| self.observed.held.get(node));
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
        nodes.sort();
        self.effects.push(RunEffect::Reserve(nodes));
        for node in batch {
            if self.state.nodes.get(node) == Some(&NodeProgress::Queued) {
                self.begin(node);
            }
        }
        self.state.stage = Stage::Running;
        true
    }

    fn begin(&mut self, node: &str) {
        let is_connected = self.observed.connected.contains(node);
        let progress = match self.plan.unreachable {
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
            if self.plan.has_gate {
                self.state.stage = Stage::Gate;
                self.state.gate_tries = 0;
                self.effects.push(RunEffect::AskGate {
                    batch: self.state.batch,
                });
                return false;
            }
            return self.next_batch();
        }
        self.next_phase()
    }

    fn pass_gate(&mut self) -> bool {
        match self.observed.gate {
            // An answer opens the gate once: the next batch asks again.
            Some(true) if self.state.gate_tries < u32::MAX => {
                self.state.gate_tries = u32::MAX;
                self.next_batch()
            }
            Some(false) => {
                self.state.gate_tries += 1;
                if self.state.gate_tries > self.plan.gate_tries {
                    self.state.stage = Stage::Stalled {
                        reason: format!(
                            "the gate after batch {} does not open",
                            self.state.batch + 1
                        ),
                    };
                } else {
                    self.effects.push(RunEffect::AskGate {
                        batch: self.state.batch,
                    });
                }
                false
            }
            _ => {
                if self.observed.resume {
                    self.effects.push(RunEffect::AskGate {
                        batch: self.state.batch,
                    });
                }
                false
            }
        }
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
