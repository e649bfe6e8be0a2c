//! Progress and log lines of a running unit, within their limits.
//!
//! Progress reports in quick succession are merged into the last one; log lines beyond the byte budget are counted
//! and written as `Dropped`. Both wait here for the next line or report, for the run's sweep, or for the end of the
//! attempt, whichever comes first, so nothing pending is lost.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Key;
use crate::journal::RunJournal;
use crate::wire::{Event, Progress};

/// The log of one unit; silent before its start and after its end.
#[derive(Debug)]
pub(crate) struct UnitLog {
    journal: RunJournal,
    key: Key,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    is_open: bool,
    last_progress: Option<Instant>,
    pending: Option<Progress>,
    /// Bytes of the log budget used up, as of `counted`.
    used: u64,
    counted: Option<Instant>,
    dropped_lines: u64,
    dropped_bytes: u64,
    /// What the attempt says it made, as JSON.
    summary: Option<String>,
    /// Whether the run's sweep already knows that something waits.
    is_awaited: bool,
}

/// Whether something was written at once, or waits for the run's next sweep.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Now,
    Later,
}

impl UnitLog {
    pub(crate) fn new(journal: RunJournal, key: Key) -> Self {
        Self {
            journal,
            key,
            state: Mutex::default(),
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Says that an attempt begins.
    pub(crate) fn open(&self, attempt: u32) {
        let mut state = self.state.lock();
        state.is_open = true;
        state.last_progress = None;
        state.summary = None;
        self.journal.append(&self.key, Event::Started { attempt });
    }

    /// Says the last thing of an attempt, after everything that waits.
    pub(crate) fn close(&self, mut last: Event) {
        let mut state = self.state.lock();
        self.write_pending(&mut state);
        state.is_open = false;
        if let Event::Done { summary, .. } = &mut last {
            *summary = state.summary.take();
        }
        self.journal.append(&self.key, last);
    }

    pub(crate) fn progress(&self, progress: Progress) -> Written {
        let mut state = self.state.lock();
        if !state.is_open {
            return Written::Now;
        }
        let now = Instant::now();
        let every = self.journal.options().progress_every;
        if state.last_progress.is_some_and(|last| now < last + every) {
            state.pending = Some(progress);
            return state.later();
        }
        state.last_progress = Some(now);
        state.pending = None;
        self.journal.append(&self.key, Event::Progress(progress));
        Written::Now
    }

    pub(crate) fn log(&self, line: String) -> Written {
        let mut state = self.state.lock();
        if !state.is_open {
            return Written::Now;
        }
        let bytes = line.len() as u64;
        if state.takes(bytes, self.journal.options().log_bytes) {
            self.write_dropped(&mut state);
            self.journal.append(&self.key, Event::Log { line });
            return Written::Now;
        }
        state.dropped_lines += 1;
        state.dropped_bytes += bytes;
        state.later()
    }

    /// Keeps what the attempt made, for its last event.
    pub(crate) fn summary(&self, json: String) {
        self.state.lock().summary = Some(json);
    }

    /// Tells what waits.
    pub(crate) fn sweep(&self) {
        let mut state = self.state.lock();
        state.is_awaited = false;
        if state.is_open {
            if state.pending.is_some() {
                state.last_progress = Some(Instant::now());
            }
            self.write_pending(&mut state);
        }
    }

    fn write_pending(&self, state: &mut LogState) {
        self.write_dropped(state);
        if let Some(progress) = state.pending.take() {
            self.journal.append(&self.key, Event::Progress(progress));
        }
    }

    fn write_dropped(&self, state: &mut LogState) {
        let lines = std::mem::take(&mut state.dropped_lines);
        let bytes = std::mem::take(&mut state.dropped_bytes);
        if lines > 0 {
            self.journal
                .append(&self.key, Event::Dropped { lines, bytes });
        }
    }
}

impl LogState {
    /// Calls for a sweep, once.
    fn later(&mut self) -> Written {
        if std::mem::replace(&mut self.is_awaited, true) {
            Written::Now
        } else {
            Written::Later
        }
    }

    /// Takes bytes from the budget, which fills up again within a second.
    fn takes(&mut self, bytes: u64, budget: u64) -> bool {
        let now = Instant::now();
        if let Some(counted) = self.counted {
            let back = (now - counted).as_secs_f64() * budget as f64;
            self.used = self.used.saturating_sub(back as u64);
        }
        self.counted = Some(now);
        let fits = self.used.saturating_add(bytes) <= budget;
        if fits {
            self.used += bytes;
        }
        fits
    }
}
