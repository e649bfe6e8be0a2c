//! How a run on this node is steered from outside: how far it may go, whether it goes on, and the lease under which it
//! starts steps.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portolan_fleet::NodeStop;
use tokio_util::sync::CancellationToken;

use crate::lease::DispatchLease;

/// The lease of the agent, which all its runs share.
pub(crate) type SharedLease = Arc<Mutex<DispatchLease>>;

/// How often something that nobody is told of is looked at: whether the lease came back, whether a lock is free.
const LOOK: Duration = Duration::from_millis(100);

/// Steers one run.
pub(super) struct RunControl {
    inner: Mutex<Inner>,
    changed: Condvar,
    lease: SharedLease,
    /// Ends the step at work.
    pub(super) kill: CancellationToken,
}

struct Inner {
    phase: usize,
    /// Whether the server has ordered the run over the newest stream. A new stream brings a new lease, and the run may have
    /// been given up while there was none.
    is_confirmed: bool,
    stop: Option<StopReason>,
}

/// Why a run does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The server wants the node to end.
    Cancelled,
    /// The agent ends; the run goes on when it is back.
    Suspended,
}

impl From<StopReason> for NodeStop {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Cancelled => Self::Cancelled,
            StopReason::Suspended => Self::AgentEnds,
        }
    }
}

impl RunControl {
    pub(super) fn new(phase: usize, lease: SharedLease) -> Self {
        Self {
            inner: Mutex::new(Inner {
                phase,
                is_confirmed: true,
                stop: None,
            }),
            changed: Condvar::new(),
            lease,
            kill: CancellationToken::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the run pass the barriers below a phase.
    pub(super) fn open(&self, phase: usize) {
        let mut inner = self.lock();
        inner.phase = inner.phase.max(phase);
        inner.is_confirmed = true;
        self.changed.notify_all();
    }

    /// There is a new stream: no step is started until the server orders the run again.
    pub(super) fn doubt(&self) {
        self.lock().is_confirmed = false;
    }

    /// The phase that the run may take.
    pub(super) fn phase(&self) -> usize {
        self.lock().phase
    }

    /// Ends the run after its current step; with `now`, that is ended as well.
    pub(super) fn stop(&self, reason: StopReason, now: bool) {
        self.lock().stop.get_or_insert(reason);
        if now {
            self.kill.cancel();
        }
        self.changed.notify_all();
    }

    /// Why the run was stopped, if it was.
    pub(super) fn stopped(&self) -> Option<StopReason> {
        self.lock().stop
    }

    /// Waits until a step may be started: nobody stopped the run, the server still wants it, and the lease is valid.
    pub(super) fn wait_for_lease(&self) -> Result<(), NodeStop> {
        self.wait_until(|inner| {
            let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
            inner.is_confirmed && lease.may_start()
        })
    }

    /// Waits until a barrier is open.
    pub(super) fn wait_for_barrier(&self, barrier: usize) -> Result<(), NodeStop> {
        self.wait_until(|inner| inner.phase > barrier)
    }

    /// Waits until something holds that nobody tells; `Err` when the run was stopped meanwhile.
    pub(super) fn wait_while_not(&self, mut holds: impl FnMut() -> bool) -> Result<(), NodeStop> {
        self.wait_until(|_| holds())
    }

    /// Waits for some time; `false` when the run was stopped meanwhile.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let inner = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(inner, time, |inner| inner.stop.is_none());
        waited.is_ok_and(|(inner, _)| inner.stop.is_none())
    }

    fn wait_until(&self, mut holds: impl FnMut(&Inner) -> bool) -> Result<(), NodeStop> {
        let mut inner = self.lock();
        loop {
            if let Some(reason) = inner.stop {
                return Err(reason.into());
            }
            if holds(&inner) {
                return Ok(());
            }
            let waited = self.changed.wait_timeout(inner, LOOK);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
