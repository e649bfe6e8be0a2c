//! Which slots of a schedule fire, as a pure function of what was decided before and of the time.
//!
//! ```text
//!  considered          now − 60 s          now
//! ─────┼────────────────────┼───────────────┼──▶
//!      │ missed: skip, once │    in time    │
//! ```
//!
//! The clock may stand, jump or go back. A slot that has fired is remembered as done and never fires again; a slot that
//! was only passed over by a jump of the clock can still fire when its time comes.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::config::{Concurrency, MissedPolicy, ScheduleSpec};
use super::{Schedule, ScheduleError};
use crate::span::{earlier, since};

/// How late a slot may be and still be in time: owners of a schedule change within some seconds, a process restarts
/// within a minute.
const IN_TIME: Duration = Duration::from_mins(1);

/// Runs of done slots that are remembered; a gap between two is a time when slots were missed.
const MAX_RANGES: usize = 32;

/// Missed slots are counted up to here.
const MAX_COUNTED: usize = 1_000;

/// A schedule with its policies and the name that its slots are known by.
#[derive(Debug, Clone)]
pub struct CronSchedule {
    uid: String,
    schedule: Schedule,
    missed: MissedPolicy,
    concurrency: Concurrency,
    deadline: Option<Duration>,
}

/// What has to be remembered about a schedule: stored together with the runs that a step starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleState {
    /// The schedule that it is about; another one begins anew.
    schedule: String,
    /// Slots up to here have been considered.
    considered: Timestamp,
    /// Slots that are done, the earliest first.
    done: Vec<SlotRange>,
    /// Slots up to here are not considered again, even when the clock goes back: more is not remembered.
    floor: Timestamp,
    /// A slot that starts when the active run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting: Option<Timestamp>,
}

/// Slots that are done, from one to another, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRange {
    first: Timestamp,
    last: Timestamp,
}

/// What a step decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleStep {
    /// The state to store, in one transaction with the runs; equal to the one before if nothing was decided.
    pub state: ScheduleState,
    /// Runs to start.
    pub firings: Vec<SlotFiring>,
    /// Slots that do not start.
    pub skipped: Vec<SkippedSlot>,
    /// When the next slot is.
    pub next: Option<Timestamp>,
}

/// A run to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotFiring {
    /// The name of the slot: a run with this name is started once, whoever asks for it.
    pub id: String,
    /// When the slot is.
    pub slot: Timestamp,
    /// How late it starts.
    pub late: Duration,
    /// Active runs that are cancelled first.
    pub replaces: Vec<String>,
}

/// Slots that do not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedSlot {
    /// The last of them.
    pub slot: Timestamp,
    /// How many there are.
    pub count: usize,
    /// Whether there are more than were counted.
    pub is_more: bool,
    /// Why they do not start.
    pub reason: SkipReason,
}

/// Why a slot does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// Nobody was there at its time.
    #[error("missed: nothing could start it at its time")]
    Missed,
    /// A later slot starts for it.
    #[error("the slot of {0} starts for it")]
    CoveredBy(Timestamp),
    /// A run of the same job is active.
    #[error("the run {0} of the same job is still active")]
    Active(String),
    /// It is later than its deadline allows.
    #[error("it would start later than its deadline allows")]
    TooLate,
}

// === impl CronSchedule ===

impl CronSchedule {
    /// Reads a spec; `uid` is that of the object that has it.
    ///
    /// # Errors
    /// When the expression or the zone cannot be read.
    pub fn new(uid: &str, spec: &ScheduleSpec) -> Result<Self, ScheduleError> {
        Ok(Self {
            uid: uid.to_owned(),
            schedule: Schedule::parse(&spec.schedule, spec.time_zone.as_deref())?,
            missed: spec.missed,
            concurrency: spec.concurrency,
            deadline: spec.deadline.map(|deadline| deadline.0),
        })
    }

    /// The slots.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The state of a schedule that begins now: earlier slots are not its own.
    pub fn begin(&self, now: Timestamp) -> ScheduleState {
        ScheduleState {
            schedule: self.schedule.text().to_owned(),
            considered: now,
            done: Vec::new(),
            floor: Timestamp::MIN,
            waiting: None,
        }
    }

    /// Decides which slots start now. `active` are the runs of earlier slots that have not ended; when one ends, the
    /// caller steps again, because a slot may wait for that.
    ///
    /// Whoever must not start anything, because the job is suspended or a certificate has expired, does not step; what
    /// becomes of the slots in between is then for the policy of missed slots.
    ///
    /// ```
    /// use portolan_trigger::{CronSchedule, ScheduleSpec};
    ///
    /// let spec: ScheduleSpec = serde_json::from_str(r#"{"schedule": "0 * * * *", "missed": "once"}"#)?;
    /// let job = CronSchedule::new("uid", &spec)?;
    /// let state = job.begin("2026-11-18T09:30:00Z".parse()?);
    /// // The server was away for four hours: one run for the four slots.
    /// let step = job.step(&state, "2026-11-18T13:20:00Z".parse()?, &[]);
    /// assert_eq!(step.firings.len(), 1);
    /// assert_eq!(step.firings[0].id, "uid/2026-11-18T13:00:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step(&self, before: &ScheduleState, now: Timestamp, active: &[String]) -> ScheduleStep {
        let mut turn = Turn {
            job: self,
            now,
            active,
            state: self.current(before, now),
            firings: Vec::new(),
            skipped: Vec::new(),
        };
        turn.decide();
        let after = turn.now.max(turn.state.floor);
        ScheduleStep {
            next: self.next_open(&turn.state, after),
            state: turn.state,
            firings: turn.firings,
            skipped: turn.skipped,
        }
    }

    /// The state for this schedule and this time.
    fn current(&self, before: &ScheduleState, now: Timestamp) -> ScheduleState {
        let mut state = before.clone();
        if state.schedule != self.schedule.text() {
            self.schedule.text().clone_into(&mut state.schedule);
            state.considered = now;
            state.waiting = None;
        }
        if now < state.considered {
            // The clock went back. What is done is known; all else may come again.
            state.considered = now.max(state.floor);
        }
        state
    }

    fn next_open(&self, state: &ScheduleState, after: Timestamp) -> Option<Timestamp> {
        let mut next = self.schedule.next_after(after)?;
        while let Some(range) = state.range_of(next) {
            next = self.schedule.next_after(range.last)?;
        }
        Some(next)
    }

    fn id(&self, slot: Timestamp) -> String {
        format!("{}/{slot}", self.uid)
    }
}

// === impl ScheduleState ===

impl ScheduleState {
    fn range_of(&self, slot: Timestamp) -> Option<&SlotRange> {
        let mut ranges = self.done.iter();
        ranges.find(|range| range.first <= slot && slot <= range.last)
    }

    /// Whether a done slot is after this one, but not after now.
    fn is_covered(&self, slot: Timestamp, now: Timestamp) -> bool {
        let mut ranges = self.done.iter();
        ranges.any(|range| range.first <= now && range.last.min(now) >= slot)
    }

    /// Remembers that a slot is done.
    fn settle(&mut self, slot: Timestamp, schedule: &Schedule) {
        if self.range_of(slot).is_some() {
            return;
        }
        let at = self.done.partition_point(|range| range.last < slot);
        let follows = |one: Timestamp, next: Timestamp| schedule.next_after(one) == Some(next);
        let below = at.checked_sub(1).and_then(|at| self.done.get(at)).copied();
        let above = self.done.get(at).copied();
        let below = below.filter(|range| follows(range.last, slot));
        let above = above.filter(|range| follows(slot, range.first));
        let merged = SlotRange {
            first: below.map_or(slot, |range| range.first),
            last: above.map_or(slot, |range| range.last),
        };
        let from = at - usize::from(below.is_some());
        let to = at + usize::from(above.is_some());
        self.done.splice(from..to, [merged]);
        while self.done.len() > MAX_RANGES {
            let oldest = self.done.remove(0);
            self.floor = self.floor.max(oldest.last);
        }
    }
}

/// One step under way.
struct Turn<'a> {
    job: &'a CronSchedule,
    now: Timestamp,
    active: &'a [String],
    state: ScheduleState,
    firings: Vec<SlotFiring>,
    skipped: Vec<SkippedSlot>,
}

impl Turn<'_> {
    fn decide(&mut self) {
        let schedule = &self.job.schedule;
        let in_time = self.job.deadline.map_or(IN_TIME, |most| most.min(IN_TIME));
        let begin = earlier(self.now, in_time);
        let considered = self.state.considered;
        let before = just_before(begin);
        let due: Vec<Timestamp> = schedule.slots(considered.max(before), self.now).collect();
        let missed = (considered < before)
            .then(|| schedule.last_slot(considered, before))
            .flatten();
        let open: Vec<Timestamp> = due
            .iter()
            .copied()
            .filter(|slot| self.state.range_of(*slot).is_none())
            .collect();
        // Before something starts that covers it, so that it is told.
        let candidate = missed.filter(|slot| !self.state.is_covered(*slot, self.now));
        self.start_due(&open);
        self.make_up((missed, candidate), considered, before);
        if let Some(newest) = due.last().copied().or(missed) {
            self.state.considered = newest;
        }
    }

    /// Starts the slots that are in time.
    fn start_due(&mut self, open: &[Timestamp]) {
        match (self.job.concurrency, open) {
            (_, []) => {}
            (Concurrency::Allow, open) => open.iter().for_each(|slot| self.fire(*slot)),
            (Concurrency::Replace, [covered @ .., newest]) => {
                for slot in covered {
                    self.settle(*slot, SkipReason::CoveredBy(*newest));
                }
                self.fire(*newest);
            }
            (Concurrency::Forbid, open) => {
                for slot in open {
                    match self.active_run() {
                        None => self.fire(*slot),
                        Some(_) if self.job.missed == MissedPolicy::Once => self.wait(*slot),
                        Some(run) => self.settle(*slot, SkipReason::Active(run)),
                    }
                }
            }
        }
    }

    /// Makes up for slots that were not started in time, or says that they are skipped.
    fn make_up(
        &mut self,
        (missed, candidate): (Option<Timestamp>, Option<Timestamp>),
        considered: Timestamp,
        before: Timestamp,
    ) {
        let fired = self.firings.last().map(|firing| firing.slot);
        let makes_up = self.job.missed == MissedPolicy::Once;
        let reason = match (candidate, fired) {
            _ if !makes_up => Some(SkipReason::Missed),
            (Some(_), Some(fired)) => Some(SkipReason::CoveredBy(fired)),
            _ => None,
        };
        if let (Some(missed), Some(reason)) = (missed, reason) {
            self.report_missed(missed, considered, before, reason);
        } else if let Some(candidate) = candidate {
            self.cover(candidate, considered);
            self.wait(candidate);
        }
        self.start_waiting();
    }

    /// Says that one slot starts for those that were missed before it.
    fn cover(&mut self, candidate: Timestamp, considered: Timestamp) {
        let before = just_before(candidate);
        let reason = if self.is_too_late(candidate) {
            SkipReason::TooLate
        } else {
            SkipReason::CoveredBy(candidate)
        };
        if let Some(last) = self.job.schedule.last_slot(considered, before) {
            self.report_missed(last, considered, before, reason);
        }
    }

    fn is_too_late(&self, slot: Timestamp) -> bool {
        let late = since(slot, self.now);
        self.job.deadline.is_some_and(|deadline| late > deadline)
    }

    /// Starts the slot that waits, if it can start.
    fn start_waiting(&mut self) {
        let Some(slot) = self.state.waiting else {
            return;
        };
        if self.state.is_covered(slot, self.now) || self.job.missed == MissedPolicy::Skip {
            self.state.waiting = None;
            return;
        }
        if self.is_too_late(slot) {
            self.settle(slot, SkipReason::TooLate);
        } else if self.job.concurrency != Concurrency::Forbid || self.active_run().is_none() {
            self.fire(slot);
        }
    }

    /// The run that keeps the next one from starting.
    fn active_run(&self) -> Option<String> {
        let fired = self.firings.last().map(|firing| firing.id.clone());
        fired.or_else(|| self.active.first().cloned())
    }

    fn wait(&mut self, slot: Timestamp) {
        let waiting = self.state.waiting;
        self.state.waiting = Some(waiting.map_or(slot, |waiting| waiting.max(slot)));
    }

    fn fire(&mut self, slot: Timestamp) {
        let replaces = match self.job.concurrency {
            Concurrency::Replace => self.active.to_vec(),
            Concurrency::Forbid | Concurrency::Allow => Vec::new(),
        };
        self.firings.push(SlotFiring {
            id: self.job.id(slot),
            slot,
            late: since(slot, self.now),
            replaces,
        });
        self.done(slot);
    }

    fn settle(&mut self, slot: Timestamp, reason: SkipReason) {
        self.skipped.push(SkippedSlot {
            slot,
            count: 1,
            is_more: false,
            reason,
        });
        self.done(slot);
    }

    fn done(&mut self, slot: Timestamp) {
        self.state.settle(slot, &self.job.schedule);
        if self.state.waiting.is_some_and(|waiting| waiting <= slot) {
            self.state.waiting = None;
        }
    }

    /// Reports slots that were passed over; they are not done, so that a clock that is set right can still reach them.
    fn report_missed(
        &mut self,
        slot: Timestamp,
        considered: Timestamp,
        before: Timestamp,
        reason: SkipReason,
    ) {
        let all = self.job.schedule.slots(considered, before);
        let open = all
            .take(MAX_COUNTED + 1)
            .filter(|slot| self.state.range_of(*slot).is_none());
        let count = open.count();
        if count > 0 {
            self.skipped.push(SkippedSlot {
                slot,
                count: count.min(MAX_COUNTED),
                is_more: count > MAX_COUNTED,
                reason,
            });
        }
    }
}

fn just_before(moment: Timestamp) -> Timestamp {
    let instant = jiff::SignedDuration::from_nanos(1);
    moment.checked_sub(instant).unwrap_or(Timestamp::MIN)
}
