//! Which unit waits for which, and which may run now.
//!
//! ```text
//! Absent ─add lazy─▶ Dormant ─asked for─▶ Waiting ─needs done─▶ Ready ─place free─▶ Running ─▶ Ended
//!    └──────────────── add ──────────────────▲  └─ a need failed, cancelled ────────────────────▲
//! ```
//!
//! Everything here happens under one lock and runs no foreign code: what must happen outside is collected in
//! [`Effects`]. Walks are loops, never recursion, so that depth is limited by memory only.

mod cycle;
mod places;

use std::collections::HashMap;
use std::task::Waker;

use tokio_util::sync::CancellationToken;

use crate::life::{Life, Over, Queued};
use crate::unit::{Class, Limits, Output, Unit};
use crate::{Failure, Journal, Key, Outcome, WaitError};

use places::Places;
pub(crate) use places::{Job, Place};

/// A unit's place in the graph.
pub(crate) type UnitId = usize;

/// All units of a run.
pub(crate) struct Graph {
    journal: Journal,
    ids: HashMap<Key, UnitId>,
    nodes: Vec<Node>,
    places: Places,
    /// Units that were queued and have not ended.
    open: usize,
    /// Units that go on without anybody else's end: ready, running, resting. Zero means that nobody will add units.
    active: usize,
    /// Units that are asked for and that nobody has added yet.
    unmet: Vec<UnitId>,
    tickets: u64,
    is_started: bool,
}

struct Node {
    key: Key,
    stage: Stage,
    /// Called off by this; there from being added to the end.
    token: Option<CancellationToken>,
    needs: Vec<UnitId>,
    /// Units that need this one and have not ended.
    needed_by: Vec<UnitId>,
    /// Outputs this unit waits for while it runs.
    waits: Vec<Wait>,
    waiters: Vec<Waiter>,
    is_asked: bool,
}

enum Stage {
    /// Others speak of it; nobody added it.
    Absent,
    /// Lazy and not asked for.
    Dormant(Plan),
    Waiting {
        plan: Plan,
        life: Queued,
        missing: usize,
    },
    Ready {
        plan: Plan,
        life: Life,
    },
    Running {
        class: Class,
        place: Place,
    },
    Ended(Over),
}

/// What is to be done, and the reason if it can never be.
pub(crate) struct Plan {
    pub(crate) unit: Unit,
    doom: Option<WaitError>,
}

/// A unit that got its place and must be started.
pub(crate) struct Launch {
    pub(crate) id: UnitId,
    pub(crate) unit: Unit,
    pub(crate) life: Life,
    pub(crate) token: CancellationToken,
}

struct Wait {
    ticket: u64,
    on: UnitId,
    /// Nobody is left who could add what is waited for.
    is_refused: bool,
}

struct Waiter {
    ticket: u64,
    from: UnitId,
    waker: Waker,
}

/// What a question for an output came to.
pub(crate) enum Asked {
    Settled(Result<Output, WaitError>),
    Waiting { on: UnitId, ticket: u64 },
}

/// What has to be done after the lock is given back.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) wake: Vec<Waker>,
    pub(crate) spawn: Vec<Launch>,
    /// How many threads to put to work on the `cpu` queue.
    pub(crate) drainers: usize,
    /// Work that will not be done; dropping it runs foreign code.
    pub(crate) discard: Vec<Unit>,
    pub(crate) is_over: bool,
}

// === impl Graph: growing ===

impl Graph {
    pub(crate) fn new(journal: Journal, limits: &Limits) -> Self {
        Self {
            journal,
            ids: HashMap::new(),
            nodes: Vec::new(),
            places: Places::new(limits),
            open: 0,
            active: 0,
            unmet: Vec::new(),
            tickets: 0,
            is_started: false,
        }
    }

    /// Lets units run from now on.
    pub(crate) fn start(&mut self) {
        self.is_started = true;
    }

    /// Adds a unit; returns whether the key is new.
    pub(crate) fn add(
        &mut self,
        key: &Key,
        needs: &[Key],
        unit: Unit,
        parent: &CancellationToken,
        effects: &mut Effects,
    ) -> bool {
        let id = self.intern(key);
        if !matches!(self.nodes[id].stage, Stage::Absent) {
            if !unit.is_lazy {
                self.demand(id, effects);
            }
            effects.discard.push(unit);
            return false;
        }
        let is_wanted = !unit.is_lazy || self.nodes[id].is_asked;
        self.link_needs(id, needs);
        let doom = self.cycle_through(id);
        if doom.is_some() {
            self.unlink_needs(id);
        }
        let node = &mut self.nodes[id];
        node.token = Some(parent.child_token());
        node.stage = Stage::Dormant(Plan { unit, doom });
        if is_wanted {
            self.demand(id, effects);
        }
        true
    }

    /// The id of a key, made up if it is new.
    fn intern(&mut self, key: &Key) -> UnitId {
        if let Some(id) = self.ids.get(key) {
            return *id;
        }
        let id = self.nodes.len();
        self.ids.insert(key.clone(), id);
        self.nodes.push(Node::absent(key.clone()));
        id
    }

    fn link_needs(&mut self, id: UnitId, needs: &[Key]) {
        let mut linked = Vec::with_capacity(needs.len());
        for key in needs {
            let need = self.intern(key);
            if !linked.contains(&need) {
                linked.push(need);
                if !self.nodes[need].has_ended() {
                    self.nodes[need].needed_by.push(id);
                }
            }
        }
        self.nodes[id].needs = linked;
    }

    fn unlink_needs(&mut self, id: UnitId) {
        for need in std::mem::take(&mut self.nodes[id].needs) {
            self.nodes[need].needed_by.retain(|by| *by != id);
        }
    }

    /// The cycle that a new unit's needs close, if any. A unit nobody waits for closes none.
    fn cycle_through(&self, id: UnitId) -> Option<WaitError> {
        let node = &self.nodes[id];
        if node.needed_by.is_empty() && node.waiters.is_empty() {
            return None;
        }
        let path = cycle::path(self, &node.needs, id)?;
        Some(self.name_cycle(id, &path))
    }

    fn name_cycle(&self, id: UnitId, path: &[UnitId]) -> WaitError {
        let ids = std::iter::once(&id).chain(path);
        WaitError::Cycle {
            cycle: ids.map(|id| self.nodes[*id].key.clone()).collect(),
        }
    }

    /// Queues a dormant unit and everything dormant that it needs.
    fn demand(&mut self, id: UnitId, effects: &mut Effects) {
        let mut asked = vec![id];
        while let Some(id) = asked.pop() {
            let node = &mut self.nodes[id];
            let first_time = !std::mem::replace(&mut node.is_asked, true);
            match std::mem::replace(&mut node.stage, Stage::Absent) {
                Stage::Dormant(plan) => {
                    asked.extend(node.needs.iter().rev());
                    self.queue(id, plan, effects);
                }
                Stage::Absent if first_time => self.unmet.push(id),
                other => node.stage = other,
            }
        }
    }

    fn queue(&mut self, id: UnitId, plan: Plan, effects: &mut Effects) {
        let node = &self.nodes[id];
        let life = Queued::new(&self.journal, &node.key);
        self.open += 1;
        if let Some(doom) = plan.doom {
            effects.discard.push(plan.unit);
            return self.close(id, life.end(Outcome::Failed(doom.into())), effects);
        }
        if node.is_cancelled() {
            effects.discard.push(plan.unit);
            return self.close(id, life.end(Outcome::Cancelled), effects);
        }
        let missing = node
            .needs
            .iter()
            .filter(|need| !self.nodes[**need].has_ended())
            .count();
        self.nodes[id].stage = Stage::Waiting {
            plan,
            life,
            missing,
        };
        if missing == 0
            && let Some(over) = self.judge(id, effects)
        {
            self.close(id, over, effects);
        }
    }
}

// === impl Graph: ending ===

impl Graph {
    /// Records a unit's end and everything that follows from it.
    pub(crate) fn close(&mut self, id: UnitId, over: Over, effects: &mut Effects) {
        let mut closing = vec![(id, over)];
        while let Some((id, over)) = closing.pop() {
            self.leave(id);
            self.open -= 1;
            let node = &mut self.nodes[id];
            node.stage = Stage::Ended(over);
            node.waits = Vec::new();
            node.token = None;
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
    fn judge(&mut self, id: UnitId, effects: &mut Effects) -> Option<Over> {
        let verdict = self.verdict(id);
        let (plan, life) = self.take_waiting(id)?;
        if let Some(outcome) = verdict {
            effects.discard.push(plan.unit);
            return Some(life.end(outcome));
        }
        self.ready(id, plan, Life::Queued(life));
        None
    }

    fn take_waiting(&mut self, id: UnitId) -> Option<(Plan, Queued)> {
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
                Ok(_) => {}
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
    fn give_up_unmet(&mut self, effects: &mut Effects) {
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

// === impl Graph: waiting ===

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
            self.stop_waiting(from, on, ticket);
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
    pub(crate) fn stop_waiting(&mut self, from: UnitId, on: UnitId, ticket: u64) {
        self.nodes[from].waits.retain(|wait| wait.ticket != ticket);
        self.nodes[on]
            .waiters
            .retain(|waiter| waiter.ticket != ticket);
    }

    /// The output of a unit that ended, without waiting.
    pub(crate) fn peek(&self, key: &Key) -> Option<Result<Output, WaitError>> {
        self.settled(*self.ids.get(key)?)
    }

    fn settled(&self, id: UnitId) -> Option<Result<Output, WaitError>> {
        let node = &self.nodes[id];
        let key = || node.key.clone();
        match &node.stage {
            Stage::Ended(over) => Some(match &over.outcome {
                Outcome::Done(output) => Ok(output.clone()),
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

// === impl Graph: looking from outside ===

impl Graph {
    /// The token of a unit that was added and has not ended.
    pub(crate) fn token(&self, key: &Key) -> Option<CancellationToken> {
        self.nodes[*self.ids.get(key)?].token.clone()
    }

    /// Takes the ends of all units out, and the units that nobody asked for.
    pub(crate) fn take_ends(&mut self) -> (Vec<(Key, Over)>, Vec<Unit>) {
        let mut unasked = Vec::new();
        let mut ends = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            match std::mem::replace(&mut node.stage, Stage::Absent) {
                Stage::Ended(over) => ends.push((node.key.clone(), over)),
                Stage::Dormant(plan) => unasked.push(plan.unit),
                _ => {}
            }
        }
        (ends, unasked)
    }

    /// Whether the run still goes on; a context that outlives it can do nothing.
    pub(crate) fn is_open(&self) -> bool {
        self.open > 0 || !self.is_started
    }
}

// === impl Node ===

impl Node {
    fn absent(key: Key) -> Self {
        Self {
            key,
            stage: Stage::Absent,
            token: None,
            needs: Vec::new(),
            needed_by: Vec::new(),
            waits: Vec::new(),
            waiters: Vec::new(),
            is_asked: false,
        }
    }

    fn is_cancelled(&self) -> bool {
        self.token
            .as_ref()
            .is_some_and(CancellationToken::is_cancelled)
    }

    fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }
}
