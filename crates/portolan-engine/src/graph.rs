//! Which unit waits for which, and which may run now.
//!
//! ```text
//! Absent ─add lazy─▶ Dormant ─asked for─▶ Waiting ─needs done─▶ Ready ─place free─▶ Running ─▶ Ended
//!    └──────────────── add ──────────────────▲  └─ a need failed, cancelled ────────────────────▲
//! ```
//!
//! Everything here happens under one lock and calls no code of units: what must happen outside the lock is collected
//! in [`Effects`]. Walks are loops, never recursion, so only memory limits the depth.

mod cycle;
mod ending;
mod places;
mod release;
mod repeat;
mod waiting;

use std::collections::HashMap;
use std::task::Waker;

use tokio_util::sync::CancellationToken;

use crate::journal::RunJournal;
use crate::life::{Life, Over, Queued};
use crate::unit::{Class, Limits, Output, Task};
use crate::{Key, Outcome, WaitError};

use places::Places;
pub(crate) use places::{Job, Place};
use repeat::Repeat;
pub(crate) use waiting::Asked;

/// A unit's place in the graph.
pub(crate) type UnitId = usize;

/// All units of a run.
pub(crate) struct Graph {
    journal: RunJournal,
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
    /// Units that need this one and have not ended, and waits for it that nobody has looked at since it ended.
    readers: usize,
    is_transient: bool,
    is_asked: bool,
    /// What it takes to queue it again after its end.
    repeat: Option<Box<Repeat>>,
}

enum Stage {
    /// Others speak of it; nobody added it.
    Absent,
    /// Lazy and not asked for.
    Dormant(Box<Plan>),
    Waiting {
        plan: Box<Plan>,
        life: Queued,
        missing: usize,
    },
    Ready {
        plan: Box<Plan>,
        life: Life,
    },
    Running {
        class: Class,
        place: Place,
        /// How many places it takes.
        weight: usize,
    },
    Ended(Over),
}

/// What is to be done, and the reason if it can never be. It lies in a box, because nodes outlive it by far.
pub(crate) struct Plan {
    pub(crate) unit: Task,
    doom: Option<WaitError>,
}

/// A unit that got its place and must be started.
pub(crate) struct Launch {
    pub(crate) id: UnitId,
    pub(crate) unit: Task,
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

/// What has to be done after the lock is given back.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) wake: Vec<Waker>,
    pub(crate) spawn: Vec<Launch>,
    /// How many threads to put to work on the `cpu` queue.
    pub(crate) drainers: usize,
    /// Work that will not be done; dropping it runs foreign code.
    pub(crate) discard: Vec<Task>,
    /// Outputs that nobody in the run will read any more; dropping them runs foreign code.
    pub(crate) released: Vec<Output>,
    pub(crate) is_over: bool,
}

// === impl Graph: growing ===

impl Graph {
    pub(crate) fn new(journal: RunJournal, limits: &Limits) -> Self {
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
        unit: Task,
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
        let repeat = Repeat::of(&unit, &self.nodes[id].needs, parent).map(Box::new);
        let node = &mut self.nodes[id];
        node.repeat = repeat;
        node.token = Some(parent.child_token());
        node.is_transient = unit.is_transient;
        node.stage = Stage::Dormant(Box::new(Plan { unit, doom }));
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
        let needs: Vec<UnitId> = needs.iter().map(|key| self.intern(key)).collect();
        self.link(id, &needs);
    }

    fn link(&mut self, id: UnitId, needs: &[UnitId]) {
        let mut linked = Vec::with_capacity(needs.len());
        for &need in needs {
            if !linked.contains(&need) {
                linked.push(need);
                self.nodes[need].readers += 1;
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
            self.nodes[need].readers -= 1;
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

    fn queue(&mut self, id: UnitId, plan: Box<Plan>, effects: &mut Effects) {
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

// === impl Graph: looking from outside ===

impl Graph {
    /// The token of a unit that was added and has not ended.
    pub(crate) fn token(&self, key: &Key) -> Option<CancellationToken> {
        self.nodes[*self.ids.get(key)?].token.clone()
    }

    /// Takes the ends of all units out, and the units that nobody asked for.
    pub(crate) fn take_ends(&mut self) -> (Vec<(Key, Over)>, Vec<Task>) {
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
            readers: 0,
            is_transient: false,
            is_asked: false,
            repeat: None,
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
