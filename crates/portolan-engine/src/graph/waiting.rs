//! Running units that ask for the outputs of others.

use std::task::Waker;

use super::{Effects, Graph, Place, Stage, UnitId, Wait, Waiter, cycle};
use crate::unit::Output;
use crate::{Key, Outcome, WaitError};

/// What a question for an output came to.
pub(crate) enum Asked {
    Settled(Result<Output, WaitError>),
    Waiting { on: UnitId, ticket: u64 },
}

impl Graph {
    /// Asks for an output on behalf of a running unit.
    pub(crate) fn ask(
        &mut self,
        from: UnitId,
        key: &Key,
        waker: &Waker,
        effects: &mut Effects,
    ) -> Asked {
        let on = self.intern(key);
        let is_sync = match &self.nodes[from].stage {
            Stage::Running { place, .. } => matches!(place, Place::Thread),
            // A context that outlived its unit.
            _ => return Asked::Settled(Err(WaitError::Cancelled { key: key.clone() })),
        };
        if let Some(settled) = self.settled(on) {
            self.release_if_read(on, effects);
            return Asked::Settled(settled);
        }
        if is_sync {
            return Asked::Settled(Err(WaitError::NotReady { key: key.clone() }));
        }
        if let Some(path) = cycle::path(self, &[on], from) {
            return Asked::Settled(Err(self.name_cycle(from, &path)));
        }
        self.demand(on, effects);
        if let Some(settled) = self.settled(on) {
            return Asked::Settled(settled);
        }
        self.tickets += 1;
        let ticket = self.tickets;
        self.nodes[from].waits.push(Wait {
            ticket,
            on,
            is_refused: false,
        });
        self.nodes[on].readers += 1;
        self.nodes[on].waiters.push(Waiter {
            ticket,
            from,
            waker: waker.clone(),
        });
        Asked::Waiting { on, ticket }
    }

    /// Looks again after an [`Asked::Waiting`].
    pub(crate) fn look(
        &mut self,
        from: UnitId,
        on: UnitId,
        ticket: u64,
        waker: &Waker,
        effects: &mut Effects,
    ) -> Option<Result<Output, WaitError>> {
        let is_refused = |wait: &Wait| wait.ticket == ticket && wait.is_refused;
        let settled = if self.nodes[from].waits.iter().any(is_refused) {
            Some(Err(WaitError::Missing {
                key: self.nodes[on].key.clone(),
            }))
        } else {
            self.settled(on)
        };
        if settled.is_some() {
            self.stop_waiting(from, on, ticket, effects);
        } else if let Some(waiter) = self.nodes[on]
            .waiters
            .iter_mut()
            .find(|waiter| waiter.ticket == ticket)
        {
            waiter.waker.clone_from(waker);
        }
        settled
    }

    /// Ends a wait that nobody polls any more.
    pub(crate) fn stop_waiting(
        &mut self,
        from: UnitId,
        on: UnitId,
        ticket: u64,
        effects: &mut Effects,
    ) {
        let waits = &mut self.nodes[from].waits;
        let before = waits.len();
        waits.retain(|wait| wait.ticket != ticket);
        let was_waiting = waits.len() < before;
        self.nodes[on]
            .waiters
            .retain(|waiter| waiter.ticket != ticket);
        if was_waiting {
            self.has_read(on, effects);
        }
    }

    /// The output of a unit that ended, without waiting.
    pub(crate) fn peek(&self, key: &str) -> Option<Result<Output, WaitError>> {
        self.settled(*self.ids.get(key)?)
    }

    pub(super) fn settled(&self, id: UnitId) -> Option<Result<Output, WaitError>> {
        let node = &self.nodes[id];
        let key = || node.key.clone();
        match &node.stage {
            Stage::Ended(over) => Some(match &over.outcome {
                Outcome::Done(output) => output
                    .held()
                    .ok_or_else(|| WaitError::Released { key: key() }),
                Outcome::Failed(_) => Err(WaitError::Unavailable {
                    key: key(),
                    because: key(),
                }),
                Outcome::Skipped { because } => Err(WaitError::Unavailable {
                    key: key(),
                    because: because.clone(),
                }),
                Outcome::Cancelled => Err(WaitError::Cancelled { key: key() }),
            }),
            _ => None,
        }
    }
}
