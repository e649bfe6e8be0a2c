//! What must hold whenever a step begins, and in the end.

use portolan_fleet::{BarrierScope, NodeEnd, NodeProgress, RunState, Stage};

use crate::{Agent, NODES, World};

impl World {
    pub(crate) fn replay(&self) -> String {
        format!(
            "PORTOLAN_SEED={} cargo test -p portolan-fleet --test simulation",
            self.seed
        )
    }

    /// A step begins only where the store says so, behind barriers that everybody who must has come to.
    pub(crate) fn check_begin(&self, node: usize, step: usize) {
        let progress = &self.stored.nodes[&self.plan.nodes[node]];
        let NodeProgress::Working { phase, .. } = progress else {
            unreachable!(
                "{}: n{node} begins step {step} as {progress:?}",
                self.replay()
            );
        };
        let batch = |node: usize| {
            (0..self.plan.batches.len()).find(|batch| {
                RunState::batch_nodes(&self.plan, *batch).contains(&self.plan.nodes[node])
            })
        };
        assert!(
            matches!(self.stored.stage, Stage::Stopping { .. })
                || batch(node) == Some(self.stored.batch),
            "{}: n{node} is not in the current batch",
            self.replay()
        );
        if self.throttled == Some(step) {
            let at_it = |agent: &&Agent| agent.begun.contains(&step) && !agent.done.contains(&step);
            let others = self.agents.iter().filter(at_it).count();
            assert!(others < 2, "{}: {others} nodes are at it", self.replay());
        }
        if self.first_step == Some(step) {
            assert!(
                self.is_first(node),
                "{}: n{node} is not the first",
                self.replay()
            );
        }
        let is_gated = self.plan.gate.is_some() && self.stored.phase == 0;
        assert!(
            !is_gated || batch(node).is_none_or(|batch| self.opened >= batch),
            "{}: n{node} begins behind a gate that is closed",
            self.replay()
        );
        let Some(barrier) = self.barriers[step] else {
            return;
        };
        assert!(
            *phase > barrier,
            "{}: n{node} passes barrier {barrier}",
            self.replay()
        );
        for other in 0..NODES {
            let is_done = matches!(
                self.stored.nodes[&self.plan.nodes[other]],
                NodeProgress::Done(_)
            );
            let is_concerned =
                self.plan.barriers[barrier] == BarrierScope::Run || batch(other) == batch(node);
            let is_behind = |before: usize| {
                let skips = self.first_step == Some(before) && !self.is_first(other);
                skips || self.agents[other].done.contains(&before)
            };
            let has_come = (0..step).all(is_behind);
            assert!(
                is_done || !is_concerned || has_come,
                "{}: n{node} passes barrier {barrier} before n{other}",
                self.replay()
            );
        }
    }

    pub(crate) fn check_end(&self) {
        let is_over = matches!(self.stored.stage, Stage::Ended(_));
        assert!(
            is_over,
            "{}: the run does not end: {:?}",
            self.replay(),
            self.stored
        );
        if let Some(step) = self.first_step {
            let all: u32 = self.agents.iter().map(|agent| agent.executions[step]).sum();
            assert!(
                all <= 1,
                "{}: step {step} was begun {all} times",
                self.replay()
            );
        }
        for (node, agent) in self.agents.iter().enumerate() {
            let most = agent.executions.iter().copied().max().unwrap_or_default();
            assert!(
                most <= 1,
                "{}: a step of n{node} was begun {most} times",
                self.replay()
            );
            let progress = &self.stored.nodes[&self.plan.nodes[node]];
            let NodeProgress::Done(end) = progress else {
                unreachable!("{}: n{node} has no end: {progress:?}", self.replay());
            };
            let was_begun = agent.executions[0] > 0;
            if *end == NodeEnd::NotBegun {
                assert!(!was_begun, "{}: n{node} was begun", self.replay());
            }
        }
    }
}
