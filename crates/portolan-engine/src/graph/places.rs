//! Which units may run now: the places of each class, and the units that wait for one.
//!
//! A synchronous unit runs on a thread that has a place and takes one unit after another. An asynchronous unit has
//! its own place. It gives the place back when it waits for another unit, and must get one again before it continues.
//! So the limits apply to what really runs, and a waiting unit never blocks the unit that it waits for.

use std::collections::VecDeque;
use std::task::Waker;

use super::{Effects, Graph, Launch, Plan, Stage, UnitId};
use crate::life::{Life, Over};
use crate::unit::{Class, Limits, Task};

/// Where a running unit stands.
#[derive(Debug)]
pub(crate) enum Place {
    /// It runs on a thread that has the place.
    Thread,
    /// It has a place of its own.
    Own,
    /// It waits for other units and has given its place back.
    Idle,
    /// What it waited for has ended; it has not looked yet.
    Roused,
    /// It stands in line for a place.
    InLine(Waker),
    /// It rests before another attempt.
    Resting,
}

/// What a thread of the `cpu` class does next.
pub(crate) enum Job {
    Unit(Launch),
    Compute(Box<dyn FnOnce() + Send>),
}

pub(super) struct Places {
    cpu: Line,
    io: Line,
    process: Line,
    computes: VecDeque<Box<dyn FnOnce() + Send>>,
}

/// The places of one class.
struct Line {
    limit: usize,
    taken: usize,
    /// Running units that want a place back come before units that have not started.
    again: VecDeque<UnitId>,
    starts: VecDeque<UnitId>,
}

// === impl Graph: taking and giving places ===

impl Graph {
    /// Puts a unit in line for its start.
    pub(super) fn ready(&mut self, id: UnitId, plan: Box<Plan>, life: Life) {
        let class = plan.unit.work.class();
        self.nodes[id].stage = Stage::Ready { plan, life };
        self.active += 1;
        self.places.line(class).starts.push_back(id);
    }

    /// Counts a unit whose wait is over as one that goes on.
    pub(super) fn rouse(&mut self, id: UnitId) {
        if let Stage::Running { place, .. } = &mut self.nodes[id].stage
            && matches!(place, Place::Idle)
        {
            *place = Place::Roused;
            self.active += 1;
        }
    }

    /// Gives back whatever a unit that stops running holds.
    pub(super) fn leave(&mut self, id: UnitId) {
        if let Stage::Running {
            class,
            place,
            weight,
        } = &self.nodes[id].stage
        {
            if matches!(place, Place::Own) {
                self.places.line(*class).taken -= weight;
            }
            if !matches!(place, Place::Idle) {
                self.active -= 1;
            }
        }
    }

    /// Whether an asynchronous unit may go on; if not, it is woken when it may.
    pub(crate) fn may_run(&mut self, id: UnitId, waker: &Waker) -> bool {
        self.rouse(id);
        let Stage::Running {
            class,
            place,
            weight,
        } = &mut self.nodes[id].stage
        else {
            return true;
        };
        match place {
            Place::Roused => {
                let line = self.places.line(*class);
                if line.has_room(*weight) {
                    line.taken += *weight;
                    *place = Place::Own;
                    return true;
                }
                *place = Place::InLine(waker.clone());
                line.again.push_back(id);
                false
            }
            Place::InLine(before) => {
                before.clone_from(waker);
                false
            }
            Place::Thread | Place::Own | Place::Idle | Place::Resting => true,
        }
    }

    /// Takes an asynchronous unit's place back if it only waits for other units now.
    pub(crate) fn pend(&mut self, id: UnitId) {
        let waits = &self.nodes[id].waits;
        let is_idle = !waits.is_empty()
            && waits
                .iter()
                .all(|wait| !wait.is_refused && !self.nodes[wait.on].has_ended());
        if let Stage::Running {
            class,
            place,
            weight,
        } = &mut self.nodes[id].stage
            && is_idle
            && matches!(place, Place::Own)
        {
            *place = Place::Idle;
            self.places.line(*class).taken -= *weight;
            self.active -= 1;
        }
    }

    /// Takes a failed unit's place back until its next attempt.
    pub(crate) fn rest(&mut self, id: UnitId) {
        self.leave(id);
        if let Stage::Running { place, .. } = &mut self.nodes[id].stage {
            *place = Place::Resting;
            self.active += 1;
        }
    }

    /// Puts a rested unit in line for its next attempt.
    pub(crate) fn wake_rested(&mut self, id: UnitId, unit: Task, life: Life) {
        self.active -= 1;
        self.ready(id, Box::new(Plan { unit, doom: None }), life);
    }

    /// Puts a closure in line for the `cpu` class.
    pub(crate) fn compute(&mut self, work: Box<dyn FnOnce() + Send>) {
        self.active += 1;
        self.places.computes.push_back(work);
    }

    pub(crate) fn computed(&mut self) {
        self.active -= 1;
    }
}

// === impl Graph: handing places out ===

impl Graph {
    /// Does what has become possible; called at the end of every change.
    pub(crate) fn advance(&mut self, effects: &mut Effects) {
        if !self.is_started {
            return;
        }
        self.give_up_unmet(effects);
        self.hire(effects);
        self.hand_out(Class::Io, effects);
        self.hand_out(Class::Process, effects);
        effects.is_over = self.open == 0;
    }

    /// Asks for as many threads as there is work for.
    fn hire(&mut self, effects: &mut Effects) {
        let work = self.places.cpu.starts.len() + self.places.computes.len();
        let line = &mut self.places.cpu;
        let hired = work.min(line.limit - line.taken);
        line.taken += hired;
        effects.drainers += hired;
    }

    /// The next job for a thread, which gives its place back if there is none.
    pub(crate) fn next_job(&mut self) -> Option<Job> {
        if let Some(work) = self.places.computes.pop_front() {
            return Some(Job::Compute(work));
        }
        while let Some(id) = self.places.cpu.starts.pop_front() {
            if let Some(launch) = self.launch(id, Place::Thread) {
                return Some(Job::Unit(launch));
            }
        }
        self.places.cpu.taken -= 1;
        None
    }

    /// Records a synchronous unit's end and finds the thread's next job before others are called for it.
    pub(crate) fn close_and_next(
        &mut self,
        id: UnitId,
        over: Over,
        effects: &mut Effects,
    ) -> Option<Job> {
        self.close(id, over, effects);
        self.next_job()
    }

    /// Hands places to units in the order in which they stand. One that needs several waits for them, and those behind it
    /// with it: else a heavy unit would never get its turn.
    fn hand_out(&mut self, class: Class, effects: &mut Effects) {
        loop {
            let line = self.places.line(class);
            let (again, start) = (line.again.front().copied(), line.starts.front().copied());
            let Some(id) = again.or(start) else { return };
            let weight = self.weight_of(id);
            let line = self.places.line(class);
            if !line.has_room(weight) {
                return;
            }
            if again.is_some() {
                line.again.pop_front();
                self.grant(id, effects);
            } else {
                line.starts.pop_front();
                if let Some(launch) = self.launch(id, Place::Own) {
                    self.places.line(class).taken += weight;
                    effects.spawn.push(launch);
                }
            }
        }
    }

    /// How many places a unit in line takes; one that was cancelled there takes none.
    fn weight_of(&mut self, id: UnitId) -> usize {
        match &self.nodes[id].stage {
            Stage::Ready { plan, .. } => {
                let (weight, class) = (plan.unit.weight, plan.unit.work.class());
                weight.min(self.places.line(class).limit)
            }
            Stage::Running { weight, .. } => *weight,
            _ => 0,
        }
    }

    /// Gives a place to a unit in line, unless it was cancelled while it stood there.
    fn grant(&mut self, id: UnitId, effects: &mut Effects) {
        if let Stage::Running {
            class,
            place,
            weight,
        } = &mut self.nodes[id].stage
            && let Place::InLine(waker) = place
        {
            effects.wake.push(waker.clone());
            *place = Place::Own;
            self.places.line(*class).taken += *weight;
        }
    }

    /// Marks a ready unit as running, unless it was cancelled while it stood in line.
    fn launch(&mut self, id: UnitId, place: Place) -> Option<Launch> {
        let weight = self.weight_of(id);
        let node = &mut self.nodes[id];
        match std::mem::replace(&mut node.stage, Stage::Absent) {
            Stage::Ready { plan, life } => {
                node.stage = Stage::Running {
                    class: plan.unit.work.class(),
                    place,
                    weight,
                };
                let token = node.token.clone()?;
                Some(Launch {
                    id,
                    unit: plan.unit,
                    life,
                    token,
                })
            }
            other => {
                node.stage = other;
                None
            }
        }
    }
}

impl Line {
    fn has_room(&self, weight: usize) -> bool {
        self.taken + weight <= self.limit
    }
}

// === impl Places ===

impl Places {
    pub(super) fn new(limits: &Limits) -> Self {
        let line = |class| Line {
            limit: limits.of(class),
            taken: 0,
            again: VecDeque::new(),
            starts: VecDeque::new(),
        };
        Self {
            cpu: line(Class::Cpu),
            io: line(Class::Io),
            process: line(Class::Process),
            computes: VecDeque::new(),
        }
    }

    fn line(&mut self, class: Class) -> &mut Line {
        match class {
            Class::Cpu => &mut self.cpu,
            Class::Io => &mut self.io,
            Class::Process => &mut self.process,
        }
    }
}
