//! The time of day, behind a trait so that tests can live through years.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the time of day.
pub trait TimeSource: Send + Sync + 'static {
    /// Time since 1970.
    fn now(&self) -> Duration;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemTimeSource;

impl TimeSource for SystemTimeSource {
    fn now(&self) -> Duration {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or_default()
    }
}

/// A clock that is set by hand, for tests.
#[derive(Debug, Default)]
pub struct ManualTime(AtomicU64);

impl ManualTime {
    /// A clock that stands at so many seconds since 1970.
    pub fn new(seconds: u64) -> Self {
        Self(AtomicU64::new(seconds))
    }

    /// Moves it forward.
    pub fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_secs(), Ordering::SeqCst);
    }
}

impl TimeSource for ManualTime {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// A time with microseconds, always as many digits: texts are in the order of times.
pub(crate) fn rfc3339_micros(time: Duration) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    format!("{stamp:.6}")
}

/// A time as RFC 3339 text in UTC, in whole seconds.
pub(crate) fn rfc3339(time: Duration) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    stamp.to_string()
}
