//! All triggers of a shard together: an event meets those that ask for it, and firings that wait are started in time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use crate::event::{EventView, FleetEvent};
use crate::index::TriggerIndex;
use crate::rate::RunBudget;
use crate::trigger::{
    Checkpoint, Reaction, Surroundings, Trigger, TriggerExplanation, TriggerMemory,
};

/// The number of active runs of a trigger, by its uid.
pub type ActiveRuns<'a> = dyn Fn(&str) -> u32 + 'a;

/// All triggers of a shard, with what they remember.
#[derive(Debug)]
pub struct Reactor {
    index: TriggerIndex,
    entries: BTreeMap<u32, ReactorEntry>,
    numbers: HashMap<String, u32>,
    next: u32,
    /// Firings that wait for more events, by the moment they are due.
    due: BTreeSet<(Timestamp, u32, String)>,
    /// Firings that wait until they can start.
    held: BTreeSet<(u32, String)>,
    ticked: Option<Timestamp>,
    budget: RunBudget,
    counts: ReactorCounts,
}

#[derive(Debug)]
struct ReactorEntry {
    trigger: Trigger,
    memory: TriggerMemory,
}

/// What became of events so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReactorCounts {
    /// Events that were observed.
    pub events: u64,
    /// Triggers that were asked about them.
    pub candidates: u64,
    /// Conditions that had no value.
    pub broken_conditions: u64,
    /// Firings.
    pub fired: u64,
    /// Refusals, by their code.
    pub refused: BTreeMap<&'static str, u64>,
}

/// What a trigger did.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerReport {
    /// The uid of the trigger.
    pub trigger: String,
    /// The name of the group.
    pub group: String,
    /// What it did.
    pub reaction: Reaction,
}

impl Reactor {
    /// A reactor without triggers that starts at most so many runs a minute.
    pub fn new(budget: RunBudget) -> Self {
        Self {
            index: TriggerIndex::default(),
            entries: BTreeMap::new(),
            numbers: HashMap::new(),
            next: 0,
            due: BTreeSet::new(),
            held: BTreeSet::new(),
            ticked: None,
            budget,
            counts: ReactorCounts::default(),
        }
    }

    /// Adds a trigger with what it remembers, or replaces the one of the same uid.
    pub fn insert(&mut self, trigger: Trigger, memory: TriggerMemory) {
        self.remove(trigger.uid());
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.index.insert(number, &trigger);
        self.numbers.insert(trigger.uid().to_owned(), number);
        // What waited when it was stored is looked at by the next tick.
        let waiting = memory.waiting_groups();
        self.held.extend(waiting.map(|group| (number, group)));
        let entry = ReactorEntry { trigger, memory };
        self.entries.insert(number, entry);
    }

    /// Removes a trigger and gives what it remembered.
    pub fn remove(&mut self, uid: &str) -> Option<TriggerMemory> {
        let number = self.numbers.remove(uid)?;
        let entry = self.entries.remove(&number)?;
        self.index.remove(number, &entry.trigger);
        self.due.retain(|(_, of, _)| *of != number);
        self.held.retain(|(of, _)| *of != number);
        Some(entry.memory)
    }

    /// Switches a trigger on again; whether there is one of this uid.
    pub fn reset(&mut self, uid: &str) -> bool {
        let number = self.numbers.get(uid);
        let entry = number.and_then(|number| self.entries.get_mut(number));
        entry.is_some_and(|entry| {
            entry.memory.reset();
            true
        })
    }

    /// What became of events so far.
    pub fn counts(&self) -> &ReactorCounts {
        &self.counts
    }

    /// Shows an event to the triggers that ask for it, and gives what those did for which it counts.
    ///
    /// A firing has to be stored before the next event is observed: what the trigger remembers already counts it.
    pub fn observe(
        &mut self,
        event: &FleetEvent,
        now: Timestamp,
        active: &ActiveRuns<'_>,
    ) -> Vec<TriggerReport> {
        let view = EventView::new(event);
        let mut reports = Vec::new();
        self.counts.events += 1;
        for number in self.index.candidates(&event.namespace, &event.kind) {
            let Some(entry) = self.entries.get_mut(&number) else {
                continue;
            };
            self.counts.candidates += 1;
            let mut around = Surroundings {
                now,
                active: active(entry.trigger.uid()),
                budget: &mut self.budget,
            };
            let ReactorEntry { trigger, memory } = entry;
            let reaction = trigger.observe(memory, &view, &mut around);
            self.counts.add(&reaction);
            if let Reaction::NoMatch(_) = reaction {
                continue;
            }
            let group = trigger.group_name(event);
            if let Reaction::Waiting { until } = reaction {
                self.due.insert((until, number, group.clone()));
            }
            if let Reaction::Held(_) = reaction {
                self.held.insert((number, group.clone()));
            }
            reports.push(TriggerReport {
                trigger: trigger.uid().to_owned(),
                group,
                reaction,
            });
        }
        reports
    }

    /// What is to be stored about a group of a trigger; `None` if nothing is remembered about it.
    pub fn checkpoint(&self, uid: &str, group: &str) -> Option<Checkpoint> {
        let number = self.numbers.get(uid)?;
        self.entries.get(number)?.memory.remembered(group)
    }

    /// What a trigger remembers; `None` if there is none of this uid.
    pub fn memory(&self, uid: &str) -> Option<&TriggerMemory> {
        let number = self.numbers.get(uid)?;
        self.entries.get(number).map(|entry| &entry.memory)
    }

    /// Takes over how many runs triggers may start in a minute.
    pub fn set_budget(&mut self, runs_per_minute: u32) {
        if self.budget.most() != runs_per_minute {
            self.budget = RunBudget::per_minute(runs_per_minute);
        }
    }

    /// Starts the firings whose time has come, and those that can start now.
    pub fn tick(&mut self, now: Timestamp, active: &ActiveRuns<'_>) -> Vec<TriggerReport> {
        let mut ready: BTreeSet<(u32, String)> = std::mem::take(&mut self.held);
        // A clock that went back does not make firings wait longer: all are asked when they are due now.
        let went_back = self.ticked.is_some_and(|ticked| now < ticked);
        self.ticked = Some(now);
        while let Some((until, number, group)) = self.due.pop_first() {
            if until > now && !went_back {
                self.due.insert((until, number, group));
                break;
            }
            ready.insert((number, group));
        }
        let mut started: HashMap<u32, u32> = HashMap::new();
        let mut reports = Vec::new();
        for (number, group) in ready {
            let Some(ReactorEntry { trigger, memory }) = self.entries.get_mut(&number) else {
                continue;
            };
            let begun = started.entry(number).or_default();
            let mut around = Surroundings {
                now,
                active: active(trigger.uid()).saturating_add(*begun),
                budget: &mut self.budget,
            };
            let Some(reaction) = trigger.poll(memory, &group, &mut around) else {
                continue;
            };
            match &reaction {
                Reaction::Waiting { until } => {
                    self.due.insert((*until, number, group));
                    continue;
                }
                Reaction::Held(_) => {
                    self.held.insert((number, group));
                    continue;
                }
                Reaction::Fired(_) => *begun += 1,
                _ => {}
            }
            self.counts.add(&reaction);
            reports.push(TriggerReport {
                trigger: trigger.uid().to_owned(),
                group,
                reaction,
            });
        }
        reports
    }

    /// When the next firing that waits for more events is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _, _)| *due)
    }

    /// Firings that wait until they can start.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// What each trigger that asks for an event would do about it, and why. Nothing changes.
    pub fn explain(
        &self,
        event: &FleetEvent,
        now: Timestamp,
        active: &ActiveRuns<'_>,
    ) -> Vec<(String, TriggerExplanation)> {
        let view = EventView::new(event);
        let mut found = Vec::new();
        let mut budget = self.budget.clone();
        for number in self.index.candidates(&event.namespace, &event.kind) {
            let Some(ReactorEntry { trigger, memory }) = self.entries.get(&number) else {
                continue;
            };
            let around = Surroundings {
                now,
                active: active(trigger.uid()),
                budget: &mut budget,
            };
            let explained = trigger.explain(memory, &view, &around);
            found.push((trigger.uid().to_owned(), explained));
        }
        found
    }
}

impl ReactorCounts {
    fn add(&mut self, reaction: &Reaction) {
        match reaction {
            Reaction::NoMatch(crate::trigger::Mismatch::Condition(_)) => {
                self.broken_conditions += 1;
            }
            Reaction::Refused(refusal) => *self.refused.entry(refusal.code()).or_default() += 1,
            Reaction::Tripped(_) => *self.refused.entry("tripped").or_default() += 1,
            Reaction::Fired(_) => self.fired += 1,
            _ => {}
        }
    }
}
