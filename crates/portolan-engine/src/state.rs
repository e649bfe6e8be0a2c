//! Where every unit stands: a pure fold over the journal's records.
//!
//! Anyone who has a state at number N and folds the events after N has the state at the newest number, whether the
//! events came from the ring, from a file or over the network.

use std::collections::HashMap;

use crate::Key;
use crate::wire::{Event, Progress, Record};

/// Where every unit stands after the event with number [`State::seq`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    seq: u64,
    units: HashMap<Key, UnitState>,
}

/// Where one unit stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    /// What it is doing or how it ended.
    pub phase: Phase,
    /// The number of attempts that began.
    pub attempts: u32,
    /// The newest progress of the running or last attempt.
    pub progress: Option<Progress>,
    /// How many log lines are in the journal.
    pub lines: u64,
    /// How many log lines were left out.
    pub dropped_lines: u64,
    /// Microseconds from first start to end, once it ended.
    pub took_us: u64,
}

/// What a unit is doing or how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It waits for its needs or a free place.
    Queued,
    /// An attempt runs.
    Running,
    /// It rests before another attempt.
    Retrying {
        /// Why the last attempt failed.
        error: String,
    },
    /// It ended well.
    Done,
    /// It ended badly, by itself.
    Failed {
        /// Why.
        error: String,
    },
    /// It could not be done because another unit failed.
    Skipped {
        /// The unit whose failure is the root of it.
        because: Key,
    },
    /// It was called off.
    Cancelled,
}

// === impl State ===

impl State {
    /// An empty state whose next event has the given number.
    pub(crate) fn starting_at(first: u64) -> Self {
        Self {
            seq: first.saturating_sub(1),
            units: HashMap::new(),
        }
    }

    /// The number of the last event that was folded in.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Folds one record in. A second `Queued` for a key starts that unit afresh.
    pub fn apply(&mut self, record: &Record) {
        self.seq = record.seq;
        if record.event == Event::Queued {
            self.units.insert(record.key.clone(), UnitState::queued());
        } else if let Some(unit) = self.units.get_mut(&record.key) {
            unit.apply(&record.event);
        } else {
            // The unit's beginning lies before the oldest event that is still kept.
            let mut unit = UnitState::queued();
            unit.apply(&record.event);
            self.units.insert(record.key.clone(), unit);
        }
    }

    /// One unit, if it was ever queued.
    pub fn get(&self, key: &Key) -> Option<&UnitState> {
        self.units.get(key)
    }

    /// The number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// All units in the order of their keys.
    pub fn units(&self) -> Vec<(&Key, &UnitState)> {
        let mut units: Vec<_> = self.units.iter().collect();
        units.sort_unstable_by_key(|(key, _)| *key);
        units
    }
}

impl<'a> FromIterator<&'a Record> for State {
    fn from_iter<I: IntoIterator<Item = &'a Record>>(records: I) -> Self {
        let mut state = Self::default();
        records.into_iter().for_each(|record| state.apply(record));
        state
    }
}

// === impl UnitState ===

impl UnitState {
    fn queued() -> Self {
        Self {
            phase: Phase::Queued,
            attempts: 0,
            progress: None,
            lines: 0,
            dropped_lines: 0,
            took_us: 0,
        }
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Queued => *self = Self::queued(),
            Event::Started { attempt } => {
                self.attempts = *attempt;
                self.progress = None;
                self.phase = Phase::Running;
            }
            Event::Progress(progress) => self.progress = Some(progress.clone()),
            Event::Log { .. } => self.lines += 1,
            Event::Dropped { lines, .. } => self.dropped_lines += lines,
            Event::Retrying { error, .. } => {
                self.phase = Phase::Retrying {
                    error: error.clone(),
                }
            }
            Event::Done { took_us } => self.end(Phase::Done, *took_us),
            Event::Failed { error, took_us } => {
                self.end(
                    Phase::Failed {
                        error: error.clone(),
                    },
                    *took_us,
                );
            }
            Event::Skipped { because, took_us } => {
                self.end(
                    Phase::Skipped {
                        because: because.clone(),
                    },
                    *took_us,
                );
            }
            Event::Cancelled { took_us } => self.end(Phase::Cancelled, *took_us),
        }
    }

    fn end(&mut self, phase: Phase, took_us: u64) {
        self.phase = phase;
        self.took_us = took_us;
    }
}

impl Phase {
    /// Whether the unit ended.
    pub fn is_end(&self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Retrying { .. })
    }
}
