//! What a connection is doing and its current deadline: the one place where timeouts are decided.
//!
//! ```text
//! accepted ──header_time──▶ request ──handler_time──▶ answer ──response_time──▶ idle ──idle_time──▶ request …
//! ```
//!
//! HTTP/2 has several requests at once: the earliest of their deadlines applies. The connection has the timeout, not
//! the body, because a body is not polled while its reader does not read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Why a connection is closed by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Closed {
    /// The first request's headers took too long.
    Headers,
    /// No further request came.
    Idle,
    /// A request had no answer in time.
    Handler,
    /// An answer was read too slowly.
    SlowReader,
    /// A newer connection needed the place.
    Evicted,
    /// The server ends.
    Drained,
}

impl Closed {
    /// Its name in metrics and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Idle => "idle",
            Self::Handler => "handler",
            Self::SlowReader => "slow-reader",
            Self::Evicted => "evicted",
            Self::Drained => "drained",
        }
    }
}

/// A time and what it means when it has come.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    closed: Closed,
}

/// What one connection does.
pub(crate) struct Activity {
    state: Mutex<State>,
    changed: Notify,
    idle_time: Duration,
}

struct State {
    /// Counts while no request runs.
    waiting: Deadline,
    /// Of each request that runs.
    running: BTreeMap<u64, Deadline>,
    next: u64,
    draining: bool,
    /// When [`Activity::overdue`] looks again by itself. It is woken only for what comes before: a busy connection is not
    /// polled twice for each request.
    looks_at: Option<Instant>,
    /// Set when the server ends: how long an answer may go without a piece being taken.
    stall: Option<Duration>,
    evicted: bool,
}

/// A request that runs until this is dropped.
pub(crate) struct Running {
    activity: Arc<Activity>,
    number: u64,
}

impl Activity {
    /// A connection that has just been accepted.
    pub(crate) fn new(header_time: Duration, idle_time: Duration) -> Self {
        let waiting = Deadline {
            at: Instant::now() + header_time,
            closed: Closed::Headers,
        };
        let state = State {
            waiting,
            running: BTreeMap::new(),
            next: 0,
            looks_at: None,
            draining: false,
            stall: None,
            evicted: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            idle_time,
        }
    }

    /// A request has come; it must be answered within this time.
    pub(crate) fn begin(self: &Arc<Self>, time: Duration) -> Running {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let deadline = Deadline {
            at: Instant::now() + time,
            closed: Closed::Handler,
        };
        state.running.insert(number, deadline);
        self.wake_before(deadline.at, state);
        Running {
            activity: Arc::clone(self),
            number,
        }
    }

    /// Closes the connection for a newer one, unless a request runs; returns whether it does.
    pub(crate) fn evict(&self) -> bool {
        let mut state = self.state();
        state.evicted |= state.running.is_empty();
        let evicted = state.evicted;
        drop(state);
        self.changed.notify_one();
        evicted
    }

    /// Lets requests end as long as their answers are taken, and waits for no further ones than may be on their way.
    pub(crate) fn drain(&self, grace: Duration, stall: Duration) {
        let (at, stalled) = (Instant::now() + grace, Instant::now() + stall);
        let mut state = self.state();
        state.draining = true;
        state.stall = Some(stall);
        for deadline in state.running.values_mut() {
            let is_answering = deadline.closed == Closed::SlowReader;
            if is_answering && stalled < deadline.at {
                *deadline = Deadline {
                    at: stalled,
                    closed: Closed::Drained,
                };
            }
        }
        if at < state.waiting.at {
            let closed = Closed::Drained;
            state.waiting = Deadline { at, closed };
        }
        drop(state);
        self.changed.notify_one();
    }

    /// A piece of an answer was taken: an ending server waits for the next one.
    fn taken(&self, number: u64) {
        let mut state = self.state();
        let Some(stall) = state.stall else {
            return;
        };
        if let Some(deadline) = state.running.get_mut(&number)
            && deadline.closed == Closed::Drained
        {
            deadline.at = Instant::now() + stall;
        }
    }

    /// Returns when a deadline has passed.
    pub(crate) async fn overdue(&self) -> Closed {
        loop {
            let Deadline { at, closed } = self.next_deadline();
            if at <= Instant::now() {
                return closed;
            }
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    fn next_deadline(&self) -> Deadline {
        let mut state = self.state();
        if state.evicted {
            return Deadline {
                at: Instant::now(),
                closed: Closed::Evicted,
            };
        }
        let running = state.running.values().min_by_key(|deadline| deadline.at);
        let next = running.copied().unwrap_or(state.waiting);
        state.looks_at = Some(next.at);
        next
    }

    /// Wakes who waits for the next deadline if it would look only after this new one.
    fn wake_before(&self, at: Instant, state: MutexGuard<'_, State>) {
        let looks_before = state.looks_at.is_some_and(|looks_at| looks_at <= at);
        drop(state);
        if !looks_before {
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment, so a poisoned lock still holds a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// What says that a piece of the answer was taken.
    pub(crate) fn taking(&self) -> impl Fn() + Send + 'static {
        let (activity, number) = (Arc::clone(&self.activity), self.number);
        move || activity.taken(number)
    }

    /// The answer begins; it must have been read within this time.
    pub(crate) fn answering(&self, time: Duration) {
        let mut state = self.activity.state();
        let (time, closed) = match state.stall {
            Some(stall) => (stall.min(time), Closed::Drained),
            None => (time, Closed::SlowReader),
        };
        let at = Instant::now() + time;
        state.running.insert(self.number, Deadline { at, closed });
        self.activity.wake_before(at, state);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.running.remove(&self.number);
        let closed = if state.draining {
            Closed::Drained
        } else {
            Closed::Idle
        };
        let at = Instant::now() + self.activity.idle_time;
        state.waiting = Deadline { at, closed };
        self.activity.wake_before(at, state);
    }
}
