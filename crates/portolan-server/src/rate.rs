//! How many requests each identity may make.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Identities that are remembered; the fullest allowances are forgotten first.
const MAX_IDENTITIES: usize = 10_000;

/// Requests a second and at once, for each identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateLimits {
    pub(crate) per_second: u32,
    pub(crate) burst: u32,
}

/// What is left to each identity.
pub(crate) struct Rates {
    limits: Mutex<RateLimits>,
    left: Mutex<HashMap<String, (f64, Instant)>>,
}

impl Rates {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self {
            limits: Mutex::new(limits),
            left: Mutex::default(),
        }
    }

    pub(crate) fn set(&self, limits: RateLimits) {
        *self.limits.lock() = limits;
    }

    /// Takes one request out; otherwise says how long to wait for the next.
    pub(crate) fn take(&self, identity: &str) -> Result<(), Duration> {
        let limits = *self.limits.lock();
        let (rate, burst) = (
            f64::from(limits.per_second.max(1)),
            f64::from(limits.burst.max(1)),
        );
        let now = Instant::now();
        let mut left = self.left.lock();
        let refill = |(had, at): (f64, Instant)| {
            (had + now.duration_since(at).as_secs_f64() * rate).min(burst)
        };
        if left.len() >= MAX_IDENTITIES && !left.contains_key(identity) {
            left.retain(|_, allowance| refill(*allowance) < burst);
        }
        let entry = left.entry(identity.to_owned()).or_insert((burst, now));
        *entry = (refill(*entry), now);
        if entry.0 < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - entry.0) / rate));
        }
        entry.0 -= 1.0;
        Ok(())
    }
}
