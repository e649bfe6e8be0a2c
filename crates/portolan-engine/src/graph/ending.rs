//! What follows from a unit's end: which units become ready, are skipped or are cancelled.

use super::{Effects, Graph, Plan, Stage, UnitId};
use crate::life::{Life, Over, Queued};
use crate::{Failure, Outcome, WaitError};

impl Graph {
    /// Records a unit's end and everything that follows from it.
    pub(crate) fn close(&mut self, id: UnitId, over: Over, effects: &mut Effects) {
        let mut closing = vec![(id, over)];
        while let Some((id, over)) = closing.pop() {
            self.leave(id);
            self.open -= 1;
            let node = &mut self.nodes[id];
            node.stage = Stage::Ended(over);
            node.token = None;
            for wait in std::mem::take(&mut node.waits) {
                self.has_read(wait.on, effects);
            }
            for need in std::mem::take(&mut self.nodes[id].needs) {
                self.has_read(need, effects);
            }
            self.settle(id, &mut closing, effects);
        }
    }

    /// Tells everyone who waited for a unit that it ended.
    fn settle(&mut self, id: UnitId, closing: &mut Vec<(UnitId, Over)>, effects: &mut Effects) {
        for waiter in std::mem::take(&mut self.nodes[id].waiters) {
            self.rouse(waiter.from);
            effects.wake.push(waiter.waker);
        }
        for by in std::mem::take(&mut self.nodes[id].needed_by) {
            if let Stage::Waiting { missing, .. } = &mut self.nodes[by].stage {
                *missing -= 1;
                if *missing == 0 {
                    closing.extend(self.judge(by, effects).map(|over| (by, over)));
                }
            }
        }
    }

    /// Decides what becomes of a unit whose needs have all ended: it gets ready, or it ends here.
    pub(super) fn judge(&mut self, id: UnitId, effects: &mut Effects) -> Option<Over> {
        let verdict = self.verdict(id);
        let (plan, life) = self.take_waiting(id)?;
        if let Some(outcome) = verdict {
            effects.discard.push(plan.unit);
            return Some(life.end(outcome));
        }
        self.ready(id, plan, Life::Queued(life));
        None
    }

    fn take_waiting(&mut self, id: UnitId) -> Option<(Box<Plan>, Queued)> {
        let stage = &mut self.nodes[id].stage;
        match std::mem::replace(stage, Stage::Absent) {
            Stage::Waiting { plan, life, .. } => Some((plan, life)),
            other => {
                *stage = other;
                None
            }
        }
    }

    /// How a unit ends because of its needs, if it does.
    ///
    /// The first failed need in the order given decides, whichever failed first: the same on every machine.
    fn verdict(&self, id: UnitId) -> Option<Outcome> {
        let mut is_cancelled = false;
        for need in &self.nodes[id].needs {
            match self.settled(*need)? {
                // Who needs a unit whose output was let go may need it for its order only.
                Ok(_) | Err(WaitError::Released { .. }) => {}
                Err(WaitError::Unavailable { because, .. }) => {
                    return Some(Outcome::Skipped { because });
                }
                Err(_) => is_cancelled = true,
            }
        }
        is_cancelled.then_some(Outcome::Cancelled)
    }

    /// Ends every unit that has not started and whose token is cancelled.
    pub(crate) fn sweep_cancelled(&mut self, effects: &mut Effects) {
        for id in 0..self.nodes.len() {
            let node = &mut self.nodes[id];
            let has_not_started = matches!(node.stage, Stage::Waiting { .. } | Stage::Ready { .. });
            if !has_not_started || !node.is_cancelled() {
                continue;
            }
            let stage = std::mem::replace(&mut node.stage, Stage::Absent);
            let (plan, life) = match stage {
                Stage::Waiting { plan, life, .. } => (plan, Life::Queued(life)),
                Stage::Ready { plan, life } => {
                    self.active -= 1;
                    (plan, life)
                }
                other => {
                    node.stage = other;
                    continue;
                }
            };
            effects.discard.push(plan.unit);
            self.close(id, life.end(Outcome::Cancelled), effects);
        }
    }

    /// Gives up units that are asked for when nobody is left who could add them.
    pub(super) fn give_up_unmet(&mut self, effects: &mut Effects) {
        while self.active == 0 && self.open > 0 {
            let Some(id) = self.unmet.pop() else { return };
            if matches!(self.nodes[id].stage, Stage::Absent) {
                self.nodes[id].is_asked = false;
                self.refuse_waiters(id, effects);
                self.fail_needing(id, effects);
            }
        }
    }

    fn refuse_waiters(&mut self, id: UnitId, effects: &mut Effects) {
        for waiter in std::mem::take(&mut self.nodes[id].waiters) {
            let waits = &mut self.nodes[waiter.from].waits;
            if let Some(wait) = waits.iter_mut().find(|wait| wait.ticket == waiter.ticket) {
                wait.is_refused = true;
            }
            self.rouse(waiter.from);
            effects.wake.push(waiter.waker);
        }
    }

    fn fail_needing(&mut self, id: UnitId, effects: &mut Effects) {
        let missing = WaitError::Missing {
            key: self.nodes[id].key.clone(),
        };
        for by in self.nodes[id].needed_by.clone() {
            if let Some((plan, life)) = self.take_waiting(by) {
                effects.discard.push(plan.unit);
                let over = life.end(Outcome::Failed(Failure::from(missing.clone())));
                self.close(by, over, effects);
            }
        }
    }
}
