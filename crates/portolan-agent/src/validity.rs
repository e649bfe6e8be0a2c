//! Until when the node may do something without a server: the end of its certificate, by its own clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use portolan_clock::WallClock;

/// Until when the node may do something without a server.
pub(crate) struct NodeValidity {
    clock: Arc<dyn WallClock>,
    /// When the certificate ends, since 1970.
    expires: Mutex<Duration>,
}

impl NodeValidity {
    pub(crate) fn new(clock: Arc<dyn WallClock>, expires: Duration) -> Self {
        Self {
            clock,
            expires: Mutex::new(expires),
        }
    }

    /// The certificate of the node ends at this time.
    pub(crate) fn set_expiry(&self, expires: Duration) {
        *self.expires.lock().unwrap_or_else(PoisonError::into_inner) = expires;
    }

    /// Whether the certificate has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let expires = *self.expires.lock().unwrap_or_else(PoisonError::into_inner);
        self.clock.since_1970() >= expires
    }

    /// The date.
    pub(crate) fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.clock.since_1970().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use portolan_clock::ManualClock;

    use super::*;

    #[test]
    fn nothing_may_be_done_after_the_end_of_the_certificate() {
        let clock = Arc::new(ManualClock::default());
        let validity = NodeValidity::new(Arc::clone(&clock) as _, Duration::from_hours(1));
        assert!(!validity.has_ended());
        clock.advance(Duration::from_hours(1));
        assert!(validity.has_ended());
        validity.set_expiry(Duration::from_hours(2));
        assert!(!validity.has_ended());
        assert_eq!(validity.now().to_string(), "1970-01-01T01:00:00Z");
    }
}
