//! What a trigger does about an event, and about time that passes.

use jiff::Timestamp;
use portolan_digest::FieldHasher;

use super::config::BlockedPolicy;
use super::memory::{Checkpoint, TriggerLedger, TriggerMemory, Trip};
use super::refusal::{Blocked, Mismatch, Refusal};
use super::window::Pending;
use super::{Trigger, WindowState};
use crate::event::{CauseChain, EventView, FleetEvent};
use crate::rate::{BucketRule, RunBudget, TokenBucket};
use crate::span::later;

/// What a trigger does about an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Reaction {
    /// The event does not count for it.
    NoMatch(Mismatch),
    /// The event counts for it but changes nothing, or a firing does not start.
    Refused(Refusal),
    /// The event was counted; more are needed.
    Counted {
        /// Events in the fullest window.
        have: usize,
        /// Events that are needed.
        need: usize,
    },
    /// It fires when no further event comes.
    Waiting {
        /// When it fires if nothing comes.
        until: Timestamp,
    },
    /// It fires when it can start.
    Held(Blocked),
    /// It fires too often, and is switched off from now on.
    Tripped(TripAlert),
    /// A run is to be started.
    Fired(Box<Firing>),
}

/// A run to start. It starts once, whoever asks for it: its name follows from the trigger, the group and the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// The name of the firing and of its run: created if it does not exist.
    pub id: String,
    /// The uid of the trigger.
    pub trigger: String,
    /// The name of the group.
    pub group: String,
    /// How many events led to it.
    pub count: u64,
    /// The last of them, from which the inputs of the run are made.
    pub event: FleetEvent,
    /// The chain of the run.
    pub causes: CauseChain,
    /// What is stored in one transaction with the run.
    pub checkpoint: Checkpoint,
}

/// A trigger was switched off because it fired too often; told once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the trigger {trigger} fired more than {burst} times in a short time and is switched off")]
pub struct TripAlert {
    /// The uid of the trigger.
    pub trigger: String,
    /// The group whose firing was too much.
    pub group: String,
    /// Since when it is switched off.
    pub since: Timestamp,
    /// When it is switched on again; only by hand without it.
    pub until: Option<Timestamp>,
    /// How many firings at once are not too many.
    pub burst: u32,
    /// What is stored in one transaction with the alert.
    pub ledger: TriggerLedger,
}

/// What a trigger has to know to start a run.
#[derive(Debug)]
pub struct Surroundings<'b> {
    /// The time.
    pub now: Timestamp,
    /// How many runs of this trigger are active.
    pub active: u32,
    /// What all triggers may start together.
    pub budget: &'b mut RunBudget,
}

/// Why a firing does not start.
enum NoStart {
    Blocked(Blocked),
    Refused(Refusal),
    Tripped,
}

impl Trigger {
    /// Takes note of an event.
    pub fn observe(
        &self,
        memory: &mut TriggerMemory,
        view: &EventView<'_>,
        around: &mut Surroundings<'_>,
    ) -> Reaction {
        if let Err(mismatch) = self.matching(view) {
            return Reaction::NoMatch(mismatch);
        }
        let event = view.event();
        let group = self.group_name(event);
        let counted = self
            .loops(event)
            .and_then(|()| self.count_in(memory, &group, event, around.now));
        match counted {
            Err(refusal) => Reaction::Refused(refusal),
            Ok(Some(reaction)) => reaction,
            Ok(None) => self
                .poll(memory, &group, around)
                .unwrap_or(Reaction::Refused(Refusal::Duplicate)),
        }
    }

    /// Looks whether a firing of a group that waits can start; `None` if none waits.
    pub fn poll(
        &self,
        memory: &mut TriggerMemory,
        group: &str,
        around: &mut Surroundings<'_>,
    ) -> Option<Reaction> {
        let TriggerMemory { ledger, groups, .. } = &mut *memory;
        let window = groups.get_mut(group)?;
        let pending = window.pending.as_mut()?;
        let until = pending.due(self.wait, around.now);
        if around.now < until {
            return Some(Reaction::Waiting { until });
        }
        pending.is_held = true;
        let start = self.may_start(ledger, around);
        if let (Err(NoStart::Blocked(blocked)), BlockedPolicy::Hold) = (&start, self.blocked) {
            return Some(Reaction::Held(*blocked));
        }
        let pending = window.pending.take()?;
        Some(match start {
            Ok(()) => self.fire(memory, group, pending, around),
            Err(NoStart::Blocked(blocked)) => Reaction::Refused(Refusal::Blocked(blocked)),
            Err(NoStart::Refused(refusal)) => Reaction::Refused(refusal),
            Err(NoStart::Tripped) => Reaction::Tripped(self.alert(memory, group, around.now)),
        })
    }

    /// Counts an event in its group; `None` if a firing waits then.
    fn count_in(
        &self,
        memory: &mut TriggerMemory,
        group: &str,
        event: &FleetEvent,
        now: Timestamp,
    ) -> Result<Option<Reaction>, Refusal> {
        let window = memory.group(self, group, now)?;
        let number = event.number();
        if window.has_seen(number) {
            return Err(Refusal::Duplicate);
        }
        if let Some(pending) = &mut window.pending {
            pending.add(event, now);
            window.spend(number);
            return Ok(None);
        }
        if let Some(until) = self
            .cooldown
            .and_then(|cooldown| window.cools_until(cooldown, now))
        {
            window.spend(number);
            return Err(Refusal::Cooldown(until));
        }
        if self.count > 1 {
            window.in_order(event)?;
        }
        match window.count(event, self.count, self.within) {
            Err(have) => Ok(Some(Reaction::Counted {
                have,
                need: self.count,
            })),
            Ok(full) => {
                window.pending = Some(Pending {
                    window: full.window,
                    count: full.count,
                    since: now,
                    last: now,
                    event: Box::new(event.clone()),
                    causes: std::mem::take(&mut window.causes),
                    is_held: false,
                });
                Ok(None)
            }
        }
    }

    fn may_start(
        &self,
        ledger: &mut TriggerLedger,
        around: &Surroundings<'_>,
    ) -> Result<(), NoStart> {
        let now = around.now;
        if let Some(refusal) = self.tripped(ledger, now) {
            return Err(NoStart::Refused(refusal));
        }
        if let Some(limit) = self.per_hour
            && let Some(until) = ledger.recent.blocked_until(limit, now)
        {
            let most = limit.most;
            return Err(NoStart::Refused(Refusal::PerHour { most, until }));
        }
        if let Some(blocked) = self.blocked(around) {
            return Err(NoStart::Blocked(blocked));
        }
        let has_token = ledger.bucket.has_token(self.trip, now);
        has_token.then_some(()).ok_or(NoStart::Tripped)
    }

    /// Why no run can start at the moment.
    pub(super) fn blocked(&self, around: &Surroundings<'_>) -> Option<Blocked> {
        let mut windows = self.windows.iter();
        if !self.windows.is_empty() && !windows.any(|window| window.is_open(around.now)) {
            return Some(Blocked::Closed);
        }
        if around.active >= self.max_active {
            return Some(Blocked::Active(around.active));
        }
        let budget = around.budget.blocked_until(around.now);
        budget.map(|_| Blocked::Budget(around.budget.most()))
    }

    /// Whether the trigger is switched off; it is switched on again when its time has come.
    pub(super) fn tripped(&self, ledger: &mut TriggerLedger, now: Timestamp) -> Option<Refusal> {
        let trip = ledger.trip.as_mut()?;
        trip.since = trip.since.min(now);
        let (since, until) = (trip.since, self.reset.map(|span| later(trip.since, span)));
        if until.is_some_and(|until| until <= now) {
            ledger.trip = None;
            ledger.bucket = TokenBucket::default();
            return None;
        }
        trip.refused += 1;
        Some(Refusal::Tripped { since, until })
    }

    fn alert(&self, memory: &mut TriggerMemory, group: &str, now: Timestamp) -> TripAlert {
        memory.ledger.trip = Some(Trip {
            since: now,
            refused: 1,
        });
        let BucketRule { burst, .. } = self.trip;
        TripAlert {
            trigger: self.uid.clone(),
            group: group.to_owned(),
            since: now,
            until: self.reset.map(|span| later(now, span)),
            burst,
            ledger: memory.ledger.clone(),
        }
    }

    fn fire(
        &self,
        memory: &mut TriggerMemory,
        group: &str,
        pending: Pending,
        around: &mut Surroundings<'_>,
    ) -> Reaction {
        let now = around.now;
        around.budget.note(now);
        around.active += 1;
        let ledger = &mut memory.ledger;
        ledger.bucket.take(self.trip, now);
        if let Some(limit) = self.per_hour {
            ledger.recent.note(limit, now);
        }
        ledger.fired += 1;
        if let Some(window) = memory.groups.get_mut(group) {
            window.fired = Some(now);
        }
        let id = self.firing_id(group, pending.window);
        Reaction::Fired(Box::new(Firing {
            causes: pending.causes.with(&self.uid, &id),
            id,
            trigger: self.uid.clone(),
            group: group.to_owned(),
            count: pending.count,
            event: *pending.event,
            checkpoint: memory.checkpoint(group),
        }))
    }

    /// The name of a firing: the same for everybody who saw the same events.
    fn firing_id(&self, group: &str, window: u64) -> String {
        let mut hasher = FieldHasher::of("firing");
        hasher
            .add(&self.uid)
            .add(group)
            .bytes(&window.to_be_bytes());
        let mut id = hasher.finish().hex();
        id.truncate(32);
        id
    }
}

impl Pending {
    /// Adds an event to a firing that waits.
    fn add(&mut self, event: &FleetEvent, now: Timestamp) {
        self.count += 1;
        self.last = now;
        if event.causes.depth() > self.causes.depth() {
            self.causes = event.causes.clone();
        }
        *self.event = event.clone();
    }
}

impl WindowState {
    /// Whether a firing waits.
    pub fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }
}
