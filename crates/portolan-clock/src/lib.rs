//! A clock for leases that goes on while the machine sleeps.
//!
//! A lease counts from the moment it was asked for, on the clock of whoever holds it. The ordinary monotonic clock stands
//! still while a machine sleeps, and the wall clock can be set: by either of them a holder would take its lease for alive
//! long after others saw it end. [`BootClock`] has neither fault.
//!
//! What people write as a date or a time of day follows the wall clock all the same: [`WallClock`].

#![warn(missing_docs)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Tells the time since some fixed moment.
pub trait Clock: Send + Sync + 'static {
    /// The time since then; it never goes back.
    fn now(&self) -> Duration;
}

/// The time since the machine was started, sleep included (`CLOCK_BOOTTIME`).
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        )
    }
}

/// Tells the date, as far as the machine knows it.
pub trait WallClock: Send + Sync + 'static {
    /// The time since 1970; it can go back and leap.
    fn since_1970(&self) -> Duration;
}

/// The date of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDate;

impl WallClock for SystemDate {
    fn since_1970(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default()
    }
}

/// A clock for tests, which stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Duration>);

impl ManualClock {
    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        *self.0.lock() += by;
    }
}

impl WallClock for ManualClock {
    fn since_1970(&self) -> Duration {
        *self.0.lock()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_the_start_never_goes_back() {
        let before = BootClock.now();
        assert!(before > Duration::ZERO);
        assert!(BootClock.now() >= before);
    }

    #[test]
    fn a_manual_clock_stands_still_until_it_is_moved() {
        let clock = ManualClock::default();
        assert_eq!(clock.now(), clock.since_1970());
        clock.advance(Duration::from_secs(3));
        assert_eq!(clock.now(), Duration::from_secs(3));
    }
}
