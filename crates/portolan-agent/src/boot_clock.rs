//! The time since the machine was started, also while it sleeps: a lease is over after a sleep, whatever the wall clock says.

use std::sync::Mutex;
use std::time::Duration;

/// A clock that only goes forward, and whose zero is of no interest.
pub trait BootClock: Send + Sync {
    /// The time since the machine was started.
    fn now(&self) -> Duration;
}

/// The machine's own clock (`CLOCK_BOOTTIME`).
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineBootClock;

impl BootClock for MachineBootClock {
    fn now(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        )
    }
}

/// A clock for tests, which stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualBootClock(Mutex<Duration>);

impl ManualBootClock {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        *self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) += by;
    }
}

impl BootClock for ManualBootClock {
    fn now(&self) -> Duration {
        *self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
