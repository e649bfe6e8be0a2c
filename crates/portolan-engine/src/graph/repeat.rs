//! Units that are queued again after they ended, with those that were skipped because of them.

use tokio_util::sync::CancellationToken;

use super::{Effects, Graph, Plan, Stage, UnitId};
use crate::unit::{Task, Work};
use crate::{Key, Outcome, Retry};

/// What it takes to queue a unit again.
pub(super) struct Repeat {
    work: Work,
    retry: Retry,
    is_graceful: bool,
    weight: usize,
    needs: Vec<UnitId>,
    parent: CancellationToken,
}

impl Repeat {
    /// Nothing for a unit that cannot be repeated or does not ask for it: its work would be kept in vain.
    pub(super) fn of(unit: &Task, needs: &[UnitId], parent: &CancellationToken) -> Option<Self> {
        if !unit.is_repeatable {
            return None;
        }
        Some(Self {
            work: unit.work.again()?,
            retry: unit.retry?,
            is_graceful: unit.is_graceful,
            weight: unit.weight,
            needs: needs.to_vec(),
            parent: parent.clone(),
        })
    }

    fn task(&self) -> Option<Task> {
        Some(Task {
            work: self.work.again()?,
            retry: Some(self.retry),
            is_lazy: false,
            is_graceful: self.is_graceful,
            is_transient: false,
            is_repeatable: true,
            weight: self.weight,
        })
    }
}

impl Graph {
    /// Queues a unit again that failed or was cancelled, with those that were skipped because of it. Returns their keys, that
    /// unit's first; none if it cannot be repeated.
    pub(crate) fn repeat(&mut self, key: &Key, effects: &mut Effects) -> Vec<Key> {
        let Some(&id) = self.ids.get(key) else {
            return Vec::new();
        };
        let is_over =
            |outcome: &Outcome| matches!(outcome, Outcome::Failed(_) | Outcome::Cancelled);
        if !self.ended_as(id, is_over) {
            return Vec::new();
        }
        let ids = self.with_skipped(id);
        // None of them has ended from here on, so that each waits for the others.
        for &id in &ids {
            let node = &mut self.nodes[id];
            let Some((task, repeat)) = node.repeat.as_ref().and_then(|it| Some((it.task()?, it)))
            else {
                continue;
            };
            let needs = repeat.needs.clone();
            node.token = Some(repeat.parent.child_token());
            node.is_asked = false;
            node.stage = Stage::Dormant(Box::new(Plan {
                unit: task,
                doom: None,
            }));
            self.nodes[id].needs = needs;
        }
        for &id in &ids {
            let needs = std::mem::take(&mut self.nodes[id].needs);
            self.link(id, &needs);
        }
        for &id in &ids {
            self.demand(id, effects);
        }
        ids.iter().map(|id| self.nodes[*id].key.clone()).collect()
    }

    /// A unit and all that were skipped because of it, directly or not.
    fn with_skipped(&self, id: UnitId) -> Vec<UnitId> {
        let mut ids = vec![id];
        let mut looked = 0;
        while let Some(&need) = ids.get(looked) {
            looked += 1;
            for (other, node) in self.nodes.iter().enumerate() {
                let needs_it = node
                    .repeat
                    .as_ref()
                    .is_some_and(|repeat| repeat.needs.contains(&need));
                let is_skipped = |outcome: &Outcome| {
                    matches!(outcome, Outcome::Skipped { .. } | Outcome::Cancelled)
                };
                if needs_it && !ids.contains(&other) && self.ended_as(other, is_skipped) {
                    ids.push(other);
                }
            }
        }
        ids
    }

    /// Whether a unit that can be repeated ended in a certain way.
    fn ended_as(&self, id: UnitId, is_it: impl Fn(&Outcome) -> bool) -> bool {
        let node = &self.nodes[id];
        node.repeat.is_some() && matches!(&node.stage, Stage::Ended(over) if is_it(&over.outcome))
    }
}
