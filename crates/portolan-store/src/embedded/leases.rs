//! When leases end. The tables say which leases exist and which keys belong to them; their time is only in memory and
//! starts again with the process, as in etcd with a new leader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::{Clock, LeaseId};

/// The leases that are alive.
pub(super) struct Leases {
    clock: Arc<dyn Clock>,
    timers: Mutex<BTreeMap<LeaseId, Timer>>,
}

#[derive(Clone, Copy)]
struct Timer {
    granted: Duration,
    ends: Duration,
}

impl Leases {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            timers: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(super) fn start(&self, lease: LeaseId, granted: Duration) {
        let ends = self.clock.now() + granted;
        self.timers.lock().insert(lease, Timer { granted, ends });
    }

    /// Starts the time of a lease again; `None` if it has ended.
    pub(super) fn renew(&self, lease: LeaseId) -> Option<Duration> {
        let now = self.clock.now();
        let mut timers = self.timers.lock();
        let timer = timers.get_mut(&lease)?;
        timer.ends = now + timer.granted;
        Some(timer.granted)
    }

    /// What a lease was granted for and what is left of it.
    pub(super) fn times(&self, lease: LeaseId) -> Option<(Duration, Duration)> {
        let now = self.clock.now();
        let timer = *self.timers.lock().get(&lease)?;
        Some((timer.granted, timer.ends.saturating_sub(now)))
    }

    pub(super) fn exists(&self, lease: LeaseId) -> bool {
        self.timers.lock().contains_key(&lease)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.timers.lock().is_empty()
    }

    /// Whether the time of one is over.
    pub(super) fn has_ended(&self) -> bool {
        let now = self.clock.now();
        self.timers.lock().values().any(|timer| timer.ends <= now)
    }

    /// Takes a lease away; from now on nobody can renew it.
    pub(super) fn end(&self, lease: LeaseId) -> bool {
        self.timers.lock().remove(&lease).is_some()
    }

    /// Takes away those whose time is over, the earliest first.
    pub(super) fn take_ended(&self) -> Vec<LeaseId> {
        let now = self.clock.now();
        let mut timers = self.timers.lock();
        let over = timers.iter().filter(|(_, timer)| timer.ends <= now);
        let mut over: Vec<(Duration, LeaseId)> =
            over.map(|(lease, timer)| (timer.ends, *lease)).collect();
        over.sort_unstable();
        for (_, lease) in &over {
            timers.remove(lease);
        }
        over.into_iter().map(|(_, lease)| lease).collect()
    }
}
