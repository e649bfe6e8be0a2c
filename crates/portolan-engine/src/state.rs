//! The state of every run and unit: a pure fold over the journal's records.
//!
//! The state at number N plus the events after N give the newest state, whether the events come from the ring, from a
//! file or over the network. Only the newest of the runs that ended are kept, so the state of a server that runs for
//! months stays small.

use std::collections::{BTreeMap, HashMap};

use crate::report::Counts;
use crate::wire::{Event, Progress, Record};
use crate::{Key, RunId};

/// Where every run stands after the event with number [`State::seq`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    seq: u64,
    runs: BTreeMap<RunId, RunState>,
    keep: usize,
}

/// Where one run and its units stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunState {
    phase: RunPhase,
    units: HashMap<Key, UnitState>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPhase {
    /// It has not ended.
    Running,
    /// All of its units ended.
    Ended {
        /// How many units ended how.
        counts: Counts,
        /// Microseconds that it took.
        took_us: u64,
    },
    /// Its process ended before it: how the open units ended is not known.
    Interrupted,
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
    /// What it made, in short, as JSON; only of a unit that ended well and said so.
    pub summary: Option<String>,
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
    /// How many runs that ended are kept unless told otherwise.
    pub const KEPT_RUNS: usize = 64;

    /// An empty state that keeps so many runs that ended.
    pub fn keeping(runs: usize) -> Self {
        Self {
            seq: 0,
            runs: BTreeMap::new(),
            keep: runs,
        }
    }

    /// An empty state whose next event has the given number.
    pub(crate) fn starting_at(first: u64, keep: usize) -> Self {
        Self {
            seq: first.saturating_sub(1),
            ..Self::keeping(keep)
        }
    }

    /// The number of the last event that was folded in.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Folds one record in. A second `Queued` for a key of the same run starts that unit afresh.
    pub fn apply(&mut self, record: &Record) {
        self.seq = record.seq;
        if let Event::Published { .. } = record.event {
            return;
        }
        // A run whose beginning is forgotten is known from its first event that is not.
        let run = self.runs.entry(record.run).or_insert_with(RunState::begun);
        let has_ended = run.apply(&record.key, &record.event);
        if has_ended {
            self.forget();
        }
    }

    /// Counts one record without looking at it.
    pub(crate) fn pass(&mut self, record: &Record) {
        self.seq = record.seq;
    }

    /// One run, unless it never was or is forgotten.
    pub fn run(&self, run: RunId) -> Option<&RunState> {
        self.runs.get(&run)
    }

    /// The runs that are known, oldest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = (RunId, &RunState)> {
        self.runs.iter().map(|(id, run)| (*id, run))
    }

    /// The unit of a key in the newest run that has it.
    pub fn get(&self, key: &Key) -> Option<&UnitState> {
        self.runs.values().rev().find_map(|run| run.get(key))
    }

    /// The number of units of all runs that are known.
    pub fn len(&self) -> usize {
        self.runs.values().map(|run| run.units.len()).sum()
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The units of all runs that are known, in the order of their keys.
    pub fn units(&self) -> Vec<(&Key, &UnitState)> {
        let mut units: Vec<_> = self.runs.values().flat_map(|run| &run.units).collect();
        units.sort_by_key(|(key, _)| *key);
        units
    }

    /// Runs whose end has not been told.
    pub(crate) fn running(&self) -> Vec<RunId> {
        let running = |(id, run): (RunId, &RunState)| (!run.phase.is_end()).then_some(id);
        self.runs().filter_map(running).collect()
    }

    /// Forgets the oldest runs that ended when there are too many.
    fn forget(&mut self) {
        let ended = |(id, run): (RunId, &RunState)| run.phase.is_end().then_some(id);
        let ended: Vec<RunId> = self.runs().filter_map(ended).collect();
        let surplus = ended.len().saturating_sub(self.keep);
        for id in ended.iter().take(surplus) {
            self.runs.remove(id);
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::keeping(Self::KEPT_RUNS)
    }
}

impl<'a> FromIterator<&'a Record> for State {
    fn from_iter<I: IntoIterator<Item = &'a Record>>(records: I) -> Self {
        let mut state = Self::default();
        records.into_iter().for_each(|record| state.apply(record));
        state
    }
}

// === impl RunState ===

impl RunState {
    fn begun() -> Self {
        Self {
            phase: RunPhase::Running,
            units: HashMap::new(),
        }
    }

    /// Whether it goes on, or how it ended.
    pub fn phase(&self) -> &RunPhase {
        &self.phase
    }

    /// One unit, if it was ever queued.
    pub fn get(&self, key: &Key) -> Option<&UnitState> {
        self.units.get(key)
    }

    /// Its units in the order of their keys.
    pub fn units(&self) -> Vec<(&Key, &UnitState)> {
        let mut units: Vec<_> = self.units.iter().collect();
        units.sort_unstable_by_key(|(key, _)| *key);
        units
    }

    /// Folds one event in; returns whether it ended the run.
    fn apply(&mut self, key: &Key, event: &Event) -> bool {
        match event {
            Event::Began => {}
            Event::Interrupted => self.phase = RunPhase::Interrupted,
            Event::Ended {
                done,
                failed,
                skipped,
                cancelled,
                took_us,
            } => {
                let count = |units: u64| usize::try_from(units).unwrap_or(usize::MAX);
                let counts = Counts {
                    done: count(*done),
                    failed: count(*failed),
                    skipped: count(*skipped),
                    cancelled: count(*cancelled),
                };
                let took_us = *took_us;
                self.phase = RunPhase::Ended { counts, took_us };
            }
            Event::Queued => {
                self.units.insert(key.clone(), UnitState::queued());
            }
            event => match self.units.get_mut(key) {
                Some(unit) => unit.apply(event),
                // The unit's beginning lies before the oldest event that is still kept.
                None => {
                    let mut unit = UnitState::queued();
                    unit.apply(event);
                    self.units.insert(key.clone(), unit);
                }
            },
        }
        self.phase.is_end()
    }
}

impl RunPhase {
    /// Whether the run is over.
    pub fn is_end(&self) -> bool {
        *self != Self::Running
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
            summary: None,
        }
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Began | Event::Ended { .. } | Event::Interrupted | Event::Published { .. } => {}
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
            Event::Done { took_us, summary } => {
                self.summary.clone_from(summary);
                self.end(Phase::Done, *took_us);
            }
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
