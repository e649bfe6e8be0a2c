//! A clock for leases that also counts while the machine sleeps.

use std::time::Duration;

use parking_lot::Mutex;

/// Tells the time since some fixed moment.
pub trait Clock: Send + Sync + 'static {
    /// The time since then; it never goes back.
    fn now(&self) -> Duration;
}

/// The time since the machine was started, sleep included. The ordinary monotonic clock stands still while a machine
/// sleeps, and an owner would take its lease for alive long after others saw it end.
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }
}

/// A clock that a test sets.
#[derive(Default)]
pub struct ManualClock(Mutex<Duration>);

impl ManualClock {
    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        *self.0.lock() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.0.lock()
    }
}
