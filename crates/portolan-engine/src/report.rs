//! How a run ended: one outcome per unit, root causes first.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::life::Over;
use crate::{Failure, Key, Outcome};

/// How a run ended.
#[derive(Debug)]
pub struct Report {
    units: BTreeMap<Key, UnitReport>,
    unasked: usize,
    took: Duration,
}

/// How one unit ended.
#[derive(Debug, Clone)]
pub struct UnitReport {
    /// The outcome.
    pub outcome: Outcome,
    /// How many attempts began; zero if the unit never started.
    pub attempts: u32,
    /// How long it took from its first start to its end.
    pub took: Duration,
}

/// A unit that failed by itself, and what it caused.
#[derive(Debug)]
pub struct Root<'a> {
    /// The failed unit.
    pub key: &'a Key,
    /// Why it failed.
    pub failure: &'a Failure,
    /// The units that were skipped because of it, in the order of their keys.
    pub caused: Vec<&'a Key>,
}

/// How many units ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Units that ended well.
    pub done: usize,
    /// Units that failed by themselves.
    pub failed: usize,
    /// Units that were skipped because of a failed one.
    pub skipped: usize,
    /// Units that were called off.
    pub cancelled: usize,
}

/// How many caused units the text of a report names; the rest is a number.
const NAMED_CAUSED: usize = 5;

impl Report {
    pub(crate) fn new(ends: Vec<(Key, Over)>, unasked: usize, took: Duration) -> Self {
        let units = ends
            .into_iter()
            .map(|(key, over)| (key, over.into()))
            .collect();
        Self {
            units,
            unasked,
            took,
        }
    }

    /// Whether every unit ended well.
    pub fn is_success(&self) -> bool {
        self.units.values().all(|unit| unit.outcome.is_done())
    }

    /// All units in the order of their keys.
    pub fn units(&self) -> impl ExactSizeIterator<Item = (&Key, &UnitReport)> {
        self.units.iter()
    }

    /// One unit, if it was queued.
    pub fn get(&self, key: &Key) -> Option<&UnitReport> {
        self.units.get(key)
    }

    /// What a unit made, if it ended well, made that type and its output is still kept.
    pub fn output<T: Send + Sync + 'static>(&self, key: &Key<T>) -> Option<Arc<T>> {
        match &self.units.get(key.as_str())?.outcome {
            Outcome::Done(output) => output.get(),
            _ => None,
        }
    }

    /// The units that failed by themselves in the order of their keys, each with what it caused.
    pub fn roots(&self) -> Vec<Root<'_>> {
        let mut caused = BTreeMap::<&Key, Vec<&Key>>::new();
        for (key, unit) in &self.units {
            if let Outcome::Skipped { because } = &unit.outcome {
                caused.entry(because).or_default().push(key);
            }
        }
        let failed = self
            .units
            .iter()
            .filter_map(|(key, unit)| match &unit.outcome {
                Outcome::Failed(failure) => Some((key, failure)),
                _ => None,
            });
        failed
            .map(|(key, failure)| Root {
                key,
                failure,
                caused: caused.remove(key).unwrap_or_default(),
            })
            .collect()
    }

    /// How many units ended how.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for unit in self.units.values() {
            match unit.outcome {
                Outcome::Done(_) => counts.done += 1,
                Outcome::Failed(_) => counts.failed += 1,
                Outcome::Skipped { .. } => counts.skipped += 1,
                Outcome::Cancelled => counts.cancelled += 1,
            }
        }
        counts
    }

    /// How many lazy units nobody asked for; they are not among the others.
    pub fn unasked(&self) -> usize {
        self.unasked
    }

    /// How long the run took.
    pub fn took(&self) -> Duration {
        self.took
    }
}

impl From<Over> for UnitReport {
    fn from(over: Over) -> Self {
        Self {
            outcome: over.outcome,
            attempts: over.attempts,
            took: Duration::from_micros(over.took_us),
        }
    }
}

/// Root causes with what they caused, then the counts.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for root in self.roots() {
            writeln!(f, "`{}` failed: {}", root.key, root.failure)?;
            for key in root.caused.iter().take(NAMED_CAUSED) {
                writeln!(f, "  skipped `{key}`")?;
            }
            if root.caused.len() > NAMED_CAUSED {
                writeln!(f, "  skipped {} more", root.caused.len() - NAMED_CAUSED)?;
            }
        }
        let Counts {
            done,
            failed,
            skipped,
            cancelled,
        } = self.counts();
        write!(
            f,
            "{done} done, {failed} failed, {skipped} skipped, {cancelled} cancelled"
        )
    }
}
