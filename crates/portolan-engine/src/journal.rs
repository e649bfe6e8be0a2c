//! The numbered record of everything that happens to units.
//!
//! ```text
//!  engine ──append──▶ tail (lock): number, ring of chunks, state
//!                        │ memory only: visible at once
//!                        ▼
//!                    committer thread ──one write and one fsync per group──▶ sink: segment files, or another one
//!                        │ visible when written (durable: when synced)
//!                        ▼
//!  readers ◀── chunk shared with the ring when near, from the sink when far
//! ```
//!
//! Only the engine appends lifecycle events; other code publishes domain events, and reads. A reader is only a
//! position, and it pulls events when it wants to, so a reader that never returns costs nothing. A crash never
//! removes an event that a reader of a durable journal has seen.

mod archive;
mod committer;
mod files;
mod reader;
mod ring;
mod segment;
mod sink;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::state::State;
use crate::wire::{Event, Record};
use crate::{Key, RunId};

pub use files::JournalFiles;
pub use reader::{Batch, ReadError, Reader};
use ring::Ring;
pub use sink::{History, MemorySink, Sink};
pub(crate) use writer::RunJournal;

/// How a journal behaves; the defaults suit a command and a server alike.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// What `at` counts from: the wall clock in milliseconds when the journal is made. The engine reads no wall clock.
    pub epoch_ms: u64,
    /// How many bytes of events stay in memory; with their JSON it may be twice as many while they are read.
    pub ring_bytes: usize,
    /// How many bytes a segment file has before the next one is begun.
    pub segment_bytes: u64,
    /// How many bytes of segment files are kept; the oldest go first.
    pub keep_bytes: u64,
    /// How often at most a unit's progress becomes an event.
    pub progress_every: Duration,
    /// How many runs that ended [`Journal::state`] knows of; the oldest are forgotten first.
    pub keep_runs: usize,
    /// Whether [`Journal::state`] knows of units at all: nobody asks a command where its units stand, and with thousands of
    /// them that takes megabytes.
    pub keep_units: bool,
    /// How many bytes of log lines a unit may say at once; as much is granted anew every second.
    pub log_bytes: u64,
}

/// When an event on file counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the operating system has it: it survives the end of the process, not that of the machine.
    Written,
    /// When the disk has it. Events that arrive during one sync share the next.
    Synced,
}

/// Why a journal could not be opened or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error("cannot {act} `{}`", path.display())]
    Io {
        /// The failed act.
        act: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// Another process writes this journal.
    #[error("the journal in `{}` is in use", .0.display())]
    InUse(PathBuf),
    /// A sink that is no file cannot keep events.
    #[error("cannot keep events")]
    Sink(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// A record that is not the newest is damaged.
    #[error("the journal file `{}` is damaged at byte {offset}", path.display())]
    Damaged {
        /// The segment file.
        path: PathBuf,
        /// Where the damaged record begins.
        offset: u64,
    },
}

/// The journal of one or more runs: a handle that is cheap to clone.
///
/// When the last handle is gone, what was appended is written and readers come to their end.
#[derive(Debug, Clone)]
pub struct Journal {
    owner: Arc<Owner>,
}

/// Ends the committer with the last handle; readers do not hold it.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    committer: Option<JoinHandle<()>>,
}

/// What the engine, the committer and readers have in common.
#[derive(Debug)]
struct Shared {
    options: JournalOptions,
    origin: Instant,
    tail: Mutex<Tail>,
    /// Tells the committer that there is something to write, or that it shall end.
    work: Condvar,
    /// Tells the engine that the ring has room again.
    room: Condvar,
    /// The newest number that readers may see.
    visible: AtomicU64,
    closed: AtomicBool,
    /// Readers and flushers that wait for `news`; nobody is woken when it is zero.
    waiting: AtomicUsize,
    news: Notify,
    /// What a sink keeps, for readers that fell behind the ring.
    history: Option<Arc<dyn History>>,
    /// One reader at a time asks for far events; the others then find them at hand.
    turn: Semaphore,
}

/// The newest end of the journal.
#[derive(Debug)]
struct Tail {
    ring: Ring,
    state: State,
    last: u64,
    /// The newest number that is safe on file; follows `last` when there is no file.
    committed: u64,
    filing: Filing,
    /// Runs that had not ended when the process that wrote them did.
    cut_off: Vec<RunId>,
}

/// Whether events go to a file.
#[derive(Debug)]
enum Filing {
    Off,
    On,
    /// The last handle is gone; the committer writes what is left.
    Ending,
    /// Writing failed; events stay in memory and `flush` says why.
    Failed(JournalError),
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            epoch_ms: 0,
            ring_bytes: 8 << 20,
            segment_bytes: 64 << 20,
            keep_bytes: u64::MAX,
            progress_every: Duration::from_millis(100),
            keep_runs: State::KEPT_RUNS,
            keep_units: true,
            log_bytes: 256 << 10,
        }
    }
}

// === impl Journal ===

impl Journal {
    /// A journal that keeps the newest events in memory and forgets older ones.
    pub fn in_memory(options: JournalOptions) -> Self {
        let state = State::keeping(options.keep_runs);
        let shared = Shared::new(options, state, None);
        Self {
            owner: Arc::new(Owner {
                shared: Arc::new(shared),
                committer: None,
            }),
        }
    }

    /// A journal in segment files of a directory, continued where it ended.
    ///
    /// A record torn by a crash at the very end is cut off; it was never acknowledged.
    pub fn open(
        directory: &Path,
        durability: Durability,
        options: JournalOptions,
    ) -> Result<Self, JournalError> {
        let (writer, state) = segment::open(directory, durability, &options)?;
        Self::keeping(writer, state, options)
    }

    /// A journal whose events go to a sink, continued after what the sink holds: `state` is made of that, and is
    /// [`State::default`] for a sink without events.
    ///
    /// # Errors
    /// When the thread that writes cannot be started.
    pub fn keeping(
        sink: impl Sink,
        state: State,
        options: JournalOptions,
    ) -> Result<Self, JournalError> {
        let shared = Arc::new(Shared::new(options, state, Some(sink.history())));
        let committer = committer::start(Arc::clone(&shared), sink)?;
        Ok(Self {
            owner: Arc::new(Owner {
                shared,
                committer: Some(committer),
            }),
        })
    }

    /// The number of the newest event that readers can see; zero when there is none.
    pub fn last(&self) -> u64 {
        self.shared().visible.load(Ordering::SeqCst)
    }

    /// Where every unit stands now; a reader from [`State::seq`] on continues it.
    pub fn state(&self) -> State {
        self.shared().tail.lock().state.clone()
    }

    /// A reader of every event after the given number.
    pub fn after(&self, seq: u64) -> Reader {
        Reader::new(Arc::clone(self.shared()), seq)
    }

    /// Waits until everything appended so far is as safe as the journal makes it, and returns its newest number.
    pub async fn flush(&self) -> Result<u64, JournalError> {
        let target = self.shared().tail.lock().last;
        self.shared()
            .until(|shared| {
                let tail = shared.tail.lock();
                match &tail.filing {
                    _ if tail.committed >= target => Some(Ok(target)),
                    Filing::Failed(error) => Some(Err(error.clone())),
                    _ => None,
                }
            })
            .await
    }

    /// Declares that no events follow: readers end when they have seen everything.
    pub fn close(&self) {
        self.shared().close();
    }

    pub(crate) fn options(&self) -> &JournalOptions {
        &self.shared().options
    }

    /// Gives the event the next number. Waits for the disk only when the ring is full of unwritten events.
    pub(crate) fn append(&self, run: RunId, key: &Key, event: Event) -> u64 {
        self.shared().append(Some(run), key, event)
    }

    /// Appends the first event of a run, which names it.
    fn append_began(&self, key: &Key) -> RunId {
        RunId::from(self.shared().append(None, key, Event::Began))
    }

    /// Runs of an earlier process that nobody has told the end of.
    fn take_cut_off(&self) -> Vec<RunId> {
        std::mem::take(&mut self.shared().tail.lock().cut_off)
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut tail = self.shared.tail.lock();
        if matches!(tail.filing, Filing::On) {
            tail.filing = Filing::Ending;
        }
        drop(tail);
        self.shared.work.notify_all();
        if let Some(committer) = self.committer.take() {
            // The committer does not panic; if it did, there is nobody left to tell.
            let _ = committer.join();
        }
        self.shared.close();
    }
}

// === impl Shared ===

impl Shared {
    fn new(options: JournalOptions, state: State, history: Option<Arc<dyn History>>) -> Self {
        let last = state.seq();
        let cut_off = state.running();
        let filing = if history.is_some() {
            Filing::On
        } else {
            Filing::Off
        };
        Self {
            options,
            origin: Instant::now(),
            tail: Mutex::new(Tail {
                ring: Ring::after(last),
                state,
                last,
                committed: last,
                filing,
                cut_off,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            visible: AtomicU64::new(last),
            closed: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            news: Notify::new(),
            history,
            turn: Semaphore::new(1),
        }
    }

    /// Appends an event of a run, or of the run that it begins; returns its number.
    fn append(&self, run: Option<RunId>, key: &Key, event: Event) -> u64 {
        let mut tail = self.tail.lock();
        while matches!(tail.filing, Filing::On) && tail.ring.is_stuffed(self.options.ring_bytes) {
            self.room.wait(&mut tail);
        }
        let seq = tail.last + 1;
        let record = Record {
            seq,
            at: self.now(),
            run: run.unwrap_or(RunId::from(seq)),
            key: key.clone(),
            event,
        };
        tail.last = seq;
        if self.options.keep_units {
            tail.state.apply(&record);
        } else {
            tail.state.pass(&record);
        }
        tail.ring.push(record);
        if matches!(tail.filing, Filing::On) {
            drop(tail);
            self.work.notify_one();
        } else {
            self.release(tail, None);
        }
        seq
    }

    /// Makes everything up to `committed` (all, if not given) visible and forgets what the ring cannot hold.
    fn release(&self, mut tail: parking_lot::MutexGuard<'_, Tail>, committed: Option<u64>) {
        let upto = committed.unwrap_or(tail.last);
        if committed.is_some() || matches!(tail.filing, Filing::Off) {
            tail.committed = upto;
        }
        tail.ring.written(upto);
        let forgotten = tail.ring.shrink(self.options.ring_bytes);
        self.visible.store(upto, Ordering::SeqCst);
        drop(tail);
        drop(forgotten);
        self.room.notify_all();
        self.announce();
    }

    /// Records around a number that was written; what is not at hand is read on another thread.
    async fn read_history(&self, seq: u64) -> Result<Arc<[Record]>, ReadError> {
        let history = self.history.as_ref().ok_or(ReadError::Interrupted)?;
        if let Some(found) = history.at_hand(seq) {
            return Ok(found);
        }
        let _turn = self.turn.acquire().await;
        if let Some(found) = history.at_hand(seq) {
            return Ok(found);
        }
        let history = Arc::clone(history);
        let read = tokio::task::spawn_blocking(move || history.read(seq));
        read.await.unwrap_or(Err(ReadError::Interrupted))
    }

    fn now(&self) -> u64 {
        self.options.epoch_ms + self.origin.elapsed().as_millis() as u64
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.announce();
    }

    /// Whether a reader after the given number has something to do: to read on, or to end.
    fn has_after(&self, seq: u64) -> bool {
        let is_closed = self.closed.load(Ordering::SeqCst);
        self.visible.load(Ordering::SeqCst) > seq || is_closed && self.tail.lock().last <= seq
    }

    fn announce(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.news.notify_waiters();
        }
    }

    /// Waits until `ready` gives something; it is asked again after every announcement.
    async fn until<T>(&self, ready: impl Fn(&Self) -> Option<T>) -> T {
        /// Counts a waiter for as long as it waits, also when its future is dropped.
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        if let Some(value) = ready(self) {
            return value;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        loop {
            // Enlisted before asking, so that an announcement in between is not missed.
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if let Some(value) = ready(self) {
                return value;
            }
            news.await;
        }
    }
}
