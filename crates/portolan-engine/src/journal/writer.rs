//! The right to append to a journal: held by a run, for its units and itself.

use super::Journal;
use crate::report::Counts;
use crate::wire::Event;
use crate::{JournalOptions, Key, RunId};

/// The key of events about a run as a whole.
const RUN_KEY: &str = "run";

/// A journal as one run writes it.
#[derive(Debug, Clone)]
pub(crate) struct RunJournal {
    journal: Journal,
    run: RunId,
}

impl RunJournal {
    /// Begins a run. Runs that the end of a process cut off are told as such before it.
    pub(crate) fn begin(journal: Journal) -> Self {
        let key = Key::from(RUN_KEY);
        for run in journal.take_cut_off() {
            journal.append(run, &key, Event::Interrupted);
        }
        let run = journal.append_began(&key);
        Self { journal, run }
    }

    /// Tells how the run ended.
    pub(crate) fn end(&self, counts: Counts, took_us: u64) {
        let count = |units: usize| units as u64;
        let event = Event::Ended {
            done: count(counts.done),
            failed: count(counts.failed),
            skipped: count(counts.skipped),
            cancelled: count(counts.cancelled),
            took_us,
        };
        self.append(&Key::from(RUN_KEY), event);
    }

    pub(crate) fn id(&self) -> RunId {
        self.run
    }

    pub(crate) fn options(&self) -> &JournalOptions {
        self.journal.options()
    }

    /// Tells what happened to a unit.
    pub(crate) fn append(&self, key: &Key, event: Event) {
        self.journal.append(self.run, key, event);
    }
}
