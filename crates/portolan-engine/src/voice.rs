//! What a running unit says: progress and log lines, held to their limits.
//!
//! Progress in quick succession is merged into the last report; log lines beyond the byte budget are counted and told
//! as `Dropped`. Both wait here for the next thing said, for the run's sweep, or for the end of the attempt, whichever
//! comes first, so that nothing pending is ever lost.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Key;
use crate::journal::RunJournal;
use crate::wire::{Event, Progress};

/// The voice of one unit; silent before its start and after its end.
#[derive(Debug)]
pub(crate) struct Voice {
    journal: RunJournal,
    key: Key,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
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

/// Whether the run's sweep must come to tell what waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Now,
    Later,
}

impl Voice {
    pub(crate) fn new(journal: RunJournal, key: Key) -> Self {
        Self {
            journal,
            key,
            said: Mutex::default(),
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Says that an attempt begins.
    pub(crate) fn open(&self, attempt: u32) {
        let mut said = self.said.lock();
        said.is_open = true;
        said.last_progress = None;
        said.summary = None;
        self.journal.append(&self.key, Event::Started { attempt });
    }

    /// Says the last thing of an attempt, after everything that waits.
    pub(crate) fn close(&self, mut last: Event) {
        let mut said = self.said.lock();
        self.tell_pending(&mut said);
        said.is_open = false;
        if let Event::Done { summary, .. } = &mut last {
            *summary = said.summary.take();
        }
        self.journal.append(&self.key, last);
    }

    pub(crate) fn progress(&self, progress: Progress) -> Told {
        let mut said = self.said.lock();
        if !said.is_open {
            return Told::Now;
        }
        let now = Instant::now();
        let every = self.journal.options().progress_every;
        if said.last_progress.is_some_and(|last| now < last + every) {
            said.pending = Some(progress);
            return said.later();
        }
        said.last_progress = Some(now);
        said.pending = None;
        self.journal.append(&self.key, Event::Progress(progress));
        Told::Now
    }

    pub(crate) fn log(&self, line: String) -> Told {
        let mut said = self.said.lock();
        if !said.is_open {
            return Told::Now;
        }
        let bytes = line.len() as u64;
        if said.takes(bytes, self.journal.options().log_bytes) {
            self.tell_dropped(&mut said);
            self.journal.append(&self.key, Event::Log { line });
            return Told::Now;
        }
        said.dropped_lines += 1;
        said.dropped_bytes += bytes;
        said.later()
    }

    /// Keeps what the attempt made, for its last event.
    pub(crate) fn summary(&self, json: String) {
        self.said.lock().summary = Some(json);
    }

    /// Tells what waits.
    pub(crate) fn sweep(&self) {
        let mut said = self.said.lock();
        said.is_awaited = false;
        if said.is_open {
            if said.pending.is_some() {
                said.last_progress = Some(Instant::now());
            }
            self.tell_pending(&mut said);
        }
    }

    fn tell_pending(&self, said: &mut Said) {
        self.tell_dropped(said);
        if let Some(progress) = said.pending.take() {
            self.journal.append(&self.key, Event::Progress(progress));
        }
    }

    fn tell_dropped(&self, said: &mut Said) {
        let lines = std::mem::take(&mut said.dropped_lines);
        let bytes = std::mem::take(&mut said.dropped_bytes);
        if lines > 0 {
            self.journal
                .append(&self.key, Event::Dropped { lines, bytes });
        }
    }
}

impl Said {
    /// Calls for a sweep, once.
    fn later(&mut self) -> Told {
        if std::mem::replace(&mut self.is_awaited, true) {
            Told::Now
        } else {
            Told::Later
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
